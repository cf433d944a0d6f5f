/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=60
 * P10: the core file of a process that died with a recording tells what it would have told without: instruction, stack
 * pointer, signal and what came with it. Skipped where no core file is written into the working directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include "tests/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static volatile int zero, many = 1 << 30;

static void record(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 1000; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
}
static void by_segv(void) { record(), *nowhere = 1; }
static void by_fpe(void) { record(), zero = many / zero; }
static void by_ill(void) { record(), __builtin_trap(); }
static void by_abort(void) { record(), abort(); }
static void by_kill(void)
{
    record(), kill(getpid(), SIGSEGV);
    for (;;) pause();
}

struct told {
    bool there;
    int signal;
    uint64_t pc, sp;
    siginfo_t info;
};

/* Notes of the first thread, which is the one that died. */
static void read_notes(const uint8_t *at, uint64_t bytes, struct told *t)
{
    bool first = true;
    for (Elf64_Nhdr n; bytes >= sizeof n;) {
        memcpy(&n, at, sizeof n);
        uint64_t name = (n.n_namesz + 3ull) & ~3ull, size = (n.n_descsz + 3ull) & ~3ull;
        if (sizeof n + name + size > bytes) return;
        const uint8_t *d = at + sizeof n + name;
        if (n.n_type == NT_PRSTATUS && first && n.n_descsz >= sizeof(struct elf_prstatus)) {
            struct elf_prstatus s;
            struct user_regs_struct r;
            memcpy(&s, d, sizeof s);
            memcpy(&r, &s.pr_reg, sizeof r);
#if defined(__x86_64__)
            t->pc = r.rip, t->sp = r.rsp;
#else
            t->pc = r.pc, t->sp = r.sp;
#endif
            t->signal = s.pr_cursig;
            t->there = true;
            first = false;
        }
        if (n.n_type == NT_SIGINFO) memcpy(&t->info, d, n.n_descsz < sizeof t->info ? n.n_descsz : sizeof t->info);
        at += sizeof n + name + size;
        bytes -= sizeof n + name + size;
    }
}

static struct told read_core(const char *path)
{
    struct told t = {0};
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

/* The core that a child left in its working directory. */
static struct told core_of(const struct fdr_config *c, void (*die)(void), int *status)
{
    struct told t = {0};
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

static void P10_the_core_is_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*die)(void);
        int signal;
    } deaths[] = {{"segv", by_segv, SIGSEGV},
                  {"fpe", by_fpe, SIGFPE},
                  {"ill", by_ill, SIGILL},
                  {"abort", by_abort, SIGABRT},
                  {"kill", by_kill, SIGSEGV}};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        struct fdr_config c = death_config(death_place());
        int without, with;
        struct told a = core_of(NULL, deaths[i].die, &without), b = core_of(&c, deaths[i].die, &with);
        if (!a.there) {
            print_message("%s: no core file here: skipped\n", deaths[i].name);
            skip();
        }
        assert_true(b.there);
        assert_int_equal(without, with);
        if (a.signal != deaths[i].signal || b.signal != a.signal)
            fail_msg("%s: signal %d, without %d", deaths[i].name, b.signal, a.signal);
        if (a.pc != b.pc || a.sp != b.sp)
            fail_msg("%s: pc %llx sp %llx, without %llx %llx", deaths[i].name, (unsigned long long)b.pc,
                     (unsigned long long)b.sp, (unsigned long long)a.pc, (unsigned long long)a.sp);
        assert_int_equal(a.info.si_signo, b.info.si_signo);
        assert_int_equal(a.info.si_code, b.info.si_code);
        if (a.info.si_code > 0) assert_ptr_equal(a.info.si_addr, b.info.si_addr);
    }
}

static int clean(void **state)
{
    (void)state;
    death_place_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_the_core_is_the_same)};
    return cmocka_run_group_tests(tests, NULL, clean);
}
