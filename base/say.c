/* SPDX-License-Identifier: MIT */
#include "base/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"

void fdri_say(const char *format, ...)
{
    int saved = errno; /* of the program, which asked for nothing that could fail */
    char line[1024] = "fdr: ";
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line + 5, sizeof line - 6, format, ap);
    va_end(ap);
    if (n < 0) return;
    size_t length = 5 + ((size_t)n < sizeof line - 6 ? (size_t)n : sizeof line - 7);
    for (size_t i = 5; i < length; i++) /* what a message quotes may hold anything, and it is one line */
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = '?';
    line[length++] = '\n';
    /* no cancellation point: base/signals.h. Failing, there is nobody to tell */
    (void)!syscall(SYS_write, STDERR_FILENO, line, length);
    errno = saved;
}

bool fdri_once(unsigned *flag) { return !fdr_swap_relaxed(flag, 1u); }
