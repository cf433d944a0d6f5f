/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * P10: a program without standard input, output and error forks while fdr opens files. fdr puts placeholders on
 * descriptors 0 to 2 meanwhile; no child may inherit one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"

enum { CHILDREN = SANITIZED ? 100 : 400, NO_START = 101, NO_FORK = 102, MOST_SAID = 100 };

static void *snapshots(void *unused)
{
    for (;;) fdr_snapshot("s");
    return unused;
}

/* Placeholders are descriptors of the root directory. */
static bool has_placeholder(void)
{
    char name[32], to[8];
    for (int fd = 0; fd < 3; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        if (readlink(name, to, sizeof to) == 1 && to[0] == '/') return true;
    }
    return false;
}

/* Exits with the number of children that inherited a placeholder. */
static void daemon_with_children(void)
{
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "1M",
                                 .keep = "2",
                                 .signal = "none",
                                 .crash = "0",
                                 .dir = scratch};
    pthread_t t;
    int status, with = 0;
    for (int fd = 0; fd < 3; fd++) close(fd);
    if (fdr_init(&c)) _exit(NO_START);
    fdr_region r = fdr_region_define("r", NULL, 0);
    fdr_enter(r), fdr_leave(r);
    if (pthread_create(&t, NULL, snapshots, NULL)) _exit(NO_START);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child < 0) _exit(NO_FORK);
        if (child == 0) _exit(has_placeholder());
        if (waitpid(child, &status, 0) != child) _exit(NO_FORK);
        with += status != 0;
    }
    _exit(with < MOST_SAID ? with : MOST_SAID);
}

static void P10_no_child_keeps_a_placeholder(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) daemon_with_children();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Ends the daemon in the middle of its snapshots. */
static int leave(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", scratch);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_no_child_keeps_a_placeholder)};
    return cmocka_run_group_tests(tests, scratch_make, leave);
}
