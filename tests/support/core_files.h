/* SPDX-License-Identifier: MIT */
/* Reads notes and the arena out of the core files of child processes. Tests include this file. */
#ifndef FDRI_TESTS_CORES_H
#define FDRI_TESTS_CORES_H

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include "tests/support/deaths.h"

struct core_note {
    bool found;
    int signal;
    int pid;
    uint64_t pc, sp;
    struct user_regs_struct registers;
    size_t fp_bytes, state_bytes;  /* 0: the core has no such note */
    uint8_t fp[512], state[16384]; /* NT_FPREGSET; NT_X86_XSTATE, which begins with the same */
    siginfo_t info;
};

/* Copies a note's content, at most `room` bytes. */
static inline size_t copy_note(void *to, size_t room, const uint8_t *from, size_t bytes)
{
    memcpy(to, from, bytes < room ? bytes : room);
    return bytes < room ? bytes : room;
}

/* Reads the notes of the first thread. The kernel writes the thread that died first. */
static inline void read_notes(const uint8_t *at, uint64_t bytes, struct core_note *t)
{
    bool first = true;
    for (Elf64_Nhdr n; bytes >= sizeof n;) {
        memcpy(&n, at, sizeof n);
        uint64_t name = (n.n_namesz + 3ull) & ~3ull, size = (n.n_descsz + 3ull) & ~3ull;
        if (sizeof n + name + size > bytes) return;
        const uint8_t *d = at + sizeof n + name;
        if (n.n_type == NT_PRSTATUS && first && n.n_descsz >= sizeof(struct elf_prstatus)) {
            struct elf_prstatus s;
            struct user_regs_struct *r = &t->registers;
            memcpy(&s, d, sizeof s);
            memcpy(r, &s.pr_reg, sizeof *r);
#if defined(__x86_64__)
            t->pc = r->rip, t->sp = r->rsp;
#else
            t->pc = r->pc, t->sp = r->sp;
#endif
            t->signal = s.pr_cursig;
            t->pid = s.pr_pid;
            t->found = true;
            first = false;
        }
        if (n.n_type == NT_SIGINFO) copy_note(&t->info, sizeof t->info, d, n.n_descsz);
        if (n.n_type == NT_FPREGSET && !t->fp_bytes) t->fp_bytes = copy_note(t->fp, sizeof t->fp, d, n.n_descsz);
        if (n.n_type == NT_X86_XSTATE && !t->state_bytes)
            t->state_bytes = copy_note(t->state, sizeof t->state, d, n.n_descsz);
        at += sizeof n + name + size;
        bytes -= sizeof n + name + size;
    }
}

static inline struct core_note read_core(const char *path)
{
    struct core_note t = {0};
    struct stat st;
    int fd = open(path, O_RDONLY);
    const uint8_t *m = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 4096
                           ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                           : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (m == MAP_FAILED) return t;
    const Elf64_Ehdr *e = (const void *)m;
    for (int i = 0; i < e->e_phnum; i++) {
        const Elf64_Phdr *p = (const void *)(m + e->e_phoff + (uint64_t)i * sizeof *p);
        if (p->p_type == PT_NOTE && p->p_offset + p->p_filesz <= (uint64_t)st.st_size)
            read_notes(m + p->p_offset, p->p_filesz, &t);
    }
    munmap((void *)(uintptr_t)m, (size_t)st.st_size);
    return t;
}

/* Finds and reads the core file that a child left in its working directory. */
static inline struct core_note core_of(const struct fdr_config *c, void (*die)(void), int *status)
{
    struct core_note t = {0};
    char path[600];
    pid_t pid;
    const struct death_place *p = death_place();
    *status = death_of(c, die, &pid);
    DIR *d = opendir(p->dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, "core", 4)) continue;
        snprintf(path, sizeof path, "%.255s/%.255s", p->dir, e->d_name);
        t = read_core(path);
    }
    if (d) closedir(d);
    return t;
}
#endif
