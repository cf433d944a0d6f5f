/* SPDX-License-Identifier: MIT */
/* Writing a message without blocking the program and without signals to it. */
#include "base/text/message.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/system/syscall.h"
#include "base/system/signal_mask.h"

enum { PATIENCE_NS = 10000000 };

/* False if stderr takes nothing for 10 ms. A pipe may have a reader that does not read, and the program must not
 * wait. */
static bool may_write(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct timespec left = {0, PATIENCE_NS}; /* the kernel subtracts the time that passed */
    long n;
    do n = fdri_system_result(syscall(SYS_ppoll, &p, 1, &left, NULL, 0));
    while (n == -EINTR);
    return n != 0;
}

/* Writes to stderr. If it has no reader or may not grow, the write raises SIGPIPE or SIGXFSZ, which this function
 * consumes, since the program wrote nothing. All signals are blocked meanwhile: no handler leaves by longjmp, and the
 * program's own pending signals stay. No cancellation point (base/system/signal_mask.h). Errors of the write are
 * ignored. */
static void write_line(const char *line, size_t length)
{
    const uint64_t signals = 1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1);
    const struct timespec at_once = {0};
    sigset_t old;
    if (!may_write()) return;
    fdri_system_signals_block(&old);
    uint64_t before = fdri_system_pending();
    syscall(SYS_write, STDERR_FILENO, line, length);
    uint64_t ours = fdri_system_pending() & signals & ~before;
    if (ours) syscall(SYS_rt_sigtimedwait, &ours, NULL, &at_once, 8);
    fdri_system_signals_restore(&old);
}

/* Replaces control characters, U+0080 to U+009F among them. A message may quote any bytes, but must stay one line and
 * contain no command for a terminal. */
static void make_plain(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i], next = i + 1 < length ? (unsigned char)text[i + 1] : 0;
        bool high = c == 0xc2 && next >= 0x80 && next < 0xa0;
        if (c < 0x20 || c == 0x7f || high) text[i] = '?';
        if (high) text[i + 1] = '?';
    }
}

void fdri_text_message(const char *format, ...)
{
    int saved = errno; /* the program's errno: it called nothing that could fail */
    char line[1024] = "fdr: ";
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line + 5, sizeof line - 6, format, ap);
    va_end(ap);
    if (n < 0) return;
    size_t length = 5 + ((size_t)n < sizeof line - 6 ? (size_t)n : sizeof line - 7);
    make_plain(line + 5, length - 5);
    line[length++] = '\n';
    write_line(line, length);
    errno = saved;
}

bool fdri_text_once(unsigned *flag) { return !fdri_atomic_swap_relaxed(flag, 1u); }
