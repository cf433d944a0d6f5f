/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10 without=tsan (it delivers signals between operations only)
 * P10: a signal that requests a snapshot arrives while the program ends. The program still ends with its own status,
 * not by the signal, and its live file is removed. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <fdr/fdr.h>

#include "tests/support/observed_process.h"

enum { RUNS = 10, STATUS = 7 };

static void child(const char *directory, int begun)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .name = "ends",
                           .buffer = "64M",
                           .dir = directory,
                           .live_dir = directory,
                           .finalize = "snapshot"};
    if (fdr_init(&c) || write(begun, "", 1) != 1) _exit(1);
    fdr_region r = fdr_region_define("r", NULL, 0);
    for (int i = 0; i < 2000000; i++) {
        fdr_enter(r);
        fdr_leave(r);
    }
    exit(STATUS);
}

static int files_with(const char *directory, const char *part)
{
    DIR *d = opendir(directory);
    int n = 0;
    for (const struct dirent *e; d && (e = readdir(d));) n += strstr(e->d_name, part) != NULL;
    if (d) closedir(d);
    return n;
}

static void ends(void)
{
    const struct timespec moment = {0, 500000};
    for (int i = 0; i < RUNS; i++) {
        char directory[64], byte;
        int begun[2], status = 0;
        test_directory(directory, sizeof directory);
        assert_int_equal(pipe(begun), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) child(directory, begun[1]);
        assert_int_equal(read(begun[0], &byte, 1), 1); /* fdr's signal handler is installed */
        while (waitpid(pid, &status, WNOHANG) == 0) {
            kill(pid, SIGUSR1);
            nanosleep(&moment, NULL);
        }
        if (!WIFEXITED(status)) fail_msg("run %d: ended by signal %d", i, WTERMSIG(status));
        assert_int_equal(WEXITSTATUS(status), STATUS);
        assert_int_equal(files_with(directory, ".live.fdr"), 0);
        remove_directory(directory);
        close(begun[0]);
        close(begun[1]);
    }
}

static void P10_a_signal_while_the_program_ends(void **state)
{
    (void)state;
    ends();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_a_signal_while_the_program_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
