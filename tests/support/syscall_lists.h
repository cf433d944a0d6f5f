/* SPDX-License-Identifier: MIT */
/* Lists of system calls: compares them with docs/CRASH.md, and makes them filters that kill at any other call. Tests
 * include this file. */
#ifndef FDRI_TESTS_CALLS_H
#define FDRI_TESTS_CALLS_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/support/deaths.h"

#define CALL(name)                                                                                                     \
    {                                                                                                                  \
#name, SYS_##name                                                                                              \
    }
struct call {
    const char *name;
    int number; /* -1: this architecture lacks the call */
};

/* From now on a system call other than these `count` kills the process; this holds for all threads. Returns false if
 * the kernel has no such filters. */
static inline bool calls_filter(const struct call *allowed, size_t count)
{
    struct sock_filter code[256];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        if (allowed[i].number < 0) continue;
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i].number, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {(unsigned short)n, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static inline const char *calls_page(void)
{
    static char text[65536];
    char path[512];
    const char *source = getenv("FDR_SOURCE");
    snprintf(path, sizeof path, "%s/docs/CRASH.md", source ? source : ".");
    FILE *f = fopen(path, "re");
    if (!f) return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

/* Compares `list` with the list behind the words `title` in docs/CRASH.md. */
static inline void calls_compare(const char *title, const struct call *list, size_t count)
{
    const char *text = calls_page();
    size_t listed = 0;
    if (!text) skip();
    char *p = strstr(text, title);
    assert_non_null(p);
    p = strchr(p, '`');
    char *end = p ? strchr(p + 1, '`') : NULL;
    assert_non_null(end);
    *end = 0;
    for (char *name = strtok(p + 1, " \n"); name; name = strtok(NULL, " \n"), listed++) {
        size_t i = 0;
        while (i < count && strcmp(list[i].name, name)) i++;
        if (i == count) fail_msg("docs/CRASH.md allows %s, the test does not", name);
    }
    assert_int_equal(listed, count);
}
#endif
