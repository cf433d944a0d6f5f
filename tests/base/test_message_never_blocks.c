/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P10
 * P10: a message on standard error never ends or blocks the program. The pipe has no reader or is full, or the file may
 * not grow. A message is one line, whatever text it quotes. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/message.h"

static int both[2]; /* a pipe */

static void nobody_reads(void) { close(both[0]); }
static void full(void)
{
    static const char bytes[4096];
    fcntl(both[1], F_SETFL, O_NONBLOCK);
    while (write(both[1], bytes, sizeof bytes) > 0) {}
    while (write(both[1], bytes, 1) > 0) {}
    fcntl(both[1], F_SETFL, 0);
}
static void may_not_grow(void)
{
    const struct rlimit none = {0, RLIM_INFINITY};
    FILE *f = tmpfile();
    setrlimit(RLIMIT_FSIZE, &none);
    dup2(fileno(f), both[1]);
}
static void closed(void) { fcntl(both[1], F_SETFD, FD_CLOEXEC); }

/* Runs a child that prints a message, and returns its wait status. The child checks its signal mask and errno. */
static int status_of(void (*prepare)(void), bool is_closed, bool one_waits)
{
    int status;
    assert_int_equal(pipe(both), 0);
    pid_t child = fork();
    if (child == 0) {
        sigset_t mask, pipe_only, waiting;
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        alarm(20);
        prepare();
        if (is_closed) close(STDERR_FILENO);
        else dup2(both[1], STDERR_FILENO);
        sigemptyset(&pipe_only);
        sigaddset(&pipe_only, SIGPIPE);
        if (one_waits) {
            sigprocmask(SIG_BLOCK, &pipe_only, NULL);
            raise(SIGPIPE); /* the program's own pending SIGPIPE must stay pending */
        }
        errno = 77;
        fdri_text_message("something of %d", 1);
        if (errno != 77) _exit(1);
        sigprocmask(SIG_BLOCK, NULL, &mask);
        sigpending(&waiting);
        if (sigismember(&mask, SIGPIPE) != one_waits || sigismember(&waiting, SIGPIPE) != one_waits) _exit(2);
        _exit(0);
    }
    close(both[1]);
    waitpid(child, &status, 0);
    close(both[0]);
    return status;
}

static void P10_a_message_never_ends_the_process(void **state)
{
    (void)state;
    assert_int_equal(status_of(nobody_reads, false, false), 0);
    assert_int_equal(status_of(nobody_reads, false, true), 0);
    assert_int_equal(status_of(full, false, false), 0);
    assert_int_equal(status_of(may_not_grow, false, false), 0);
    assert_int_equal(status_of(closed, true, false), 0);
}

static void one_plain_line(void **state)
{
    char text[128] = "";
    int kept = dup(STDERR_FILENO);
    (void)state;
    assert_int_equal(pipe(both), 0);
    dup2(both[1], STDERR_FILENO);
    fdri_text_message("'%s'", "a\nb\x1b[31m\x7f \xc2\x9b"
                              "31m \xc3\xa4");
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_true(read(both[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, "fdr: 'a?b?[31m? ??31m \xc3\xa4'\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_a_message_never_ends_the_process),
                                       cmocka_unit_test(one_plain_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
