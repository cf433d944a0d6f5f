/* SPDX-License-Identifier: MIT */
/* Where the calling thread's stack ends, and how far it reaches, by the kernel's tables. */
#define _GNU_SOURCE
#include "base/stack/thread_stack.h"

#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "base/system/syscall.h"
#include "base/system/signal_mask.h"

enum { PIECE = 512 };

/* The parser of maps: each line is FROM-TO and a rest that does not matter. */
struct lines {
    uint64_t value, from;
    enum { FROM, TO, REST } field;
};

/* True: the mapping of this line contains `within`; it begins at l->from. */
static bool parse_char(struct lines *l, char c, uint64_t within)
{
    if (l->field == REST) {
        if (c == '\n') *l = (struct lines){0};
        return false;
    }
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit >= 0) {
        l->value = l->value << 4 | (uint64_t)digit;
        return false;
    }
    bool found = l->field == TO && l->from <= within && within < l->value;
    if (l->field == FROM) l->from = l->value;
    l->field = l->field == FROM ? TO : REST;
    l->value = 0;
    return found;
}

/* Signals are blocked, because a handler that leaves by longjmp would leave the descriptor open. */
static uint64_t mapping_in(const char *path, uint64_t within)
{
    char piece[PIECE];
    struct lines l = {0};
    uint64_t from = 0;
    sigset_t old;
    fdri_system_signals_block(&old);
    int fd = fdri_system_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    for (long n = fd < 0 ? 0 : 1; n > 0 && !from;) {
        n = fdri_system_read(fd, piece, sizeof piece);
        for (long i = 0; i < n && !from; i++)
            if (parse_char(&l, piece[i], within)) from = l.from;
    }
    if (fd >= 0) fdri_system_close(fd);
    fdri_system_signals_restore(&old);
    return from;
}

/* The beginning of the mapping that contains `within`; 0: none does. After the end of the process's first thread,
 * /proc/self/maps is empty; then the maps of the calling thread serve. */
static uint64_t mapping_of(uint64_t within)
{
    uint64_t from = mapping_in("/proc/self/maps", within);
    return from ? from : mapping_in("/proc/thread-self/maps", within);
}

/* First thread: the random bytes that the kernel puts above the outermost frame. Others: the C library's descriptor
 * lies at the end of the stack, even of a stack that the program provided. */
uint64_t fdri_stack_own_end(bool first_thread)
{
    return first_thread ? (uint64_t)getauxval(AT_RANDOM) : (uint64_t)(uintptr_t)pthread_self();
}

uint64_t fdri_stack_own_bytes(bool first_thread)
{
    int saved = errno;
    uint64_t end = fdri_stack_own_end(first_thread), from = 0;
    struct rlimit most;
    if (!first_thread) from = mapping_of(end);       /* a guard page ends the stack's mapping */
    else if (end && !getrlimit(RLIMIT_STACK, &most)) /* this stack grows up to its limit */
        from = end - fdri_bits_min(fdri_bits_min((uint64_t)most.rlim_cur, 1u << 30), end);
    errno = saved;
    return from ? end - from : 0;
}

bool fdri_stack_alternate_was_left(uint64_t frame)
{
    stack_t s;
    if (sigaltstack(NULL, &s) || s.ss_flags & (SS_ONSTACK | SS_DISABLE)) return false;
    return frame - (uint64_t)(uintptr_t)s.ss_sp < s.ss_size;
}

bool fdri_stack_alternate_in_use(void)
{
    stack_t s;
    return sigaltstack(NULL, &s) == 0 && s.ss_flags & SS_ONSTACK;
}

bool fdri_stack_returns_to_kernel(uint64_t code)
{
#if defined(__x86_64__)
    static const uint8_t sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}; /* mov $15,%rax; syscall */
#elif defined(__aarch64__)
    static const uint8_t sigreturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}; /* mov x8,#139; svc #0 */
#else
    static const uint8_t sigreturn[1];
    return false;
#endif
    return code && memcmp((const void *)(uintptr_t)code, sigreturn, sizeof sigreturn) == 0;
}
