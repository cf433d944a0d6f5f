/* SPDX-License-Identifier: MIT */
/* A separate process that records, for tests that observe it from outside. */
#ifndef FDRI_TESTS_VICTIM_H
#define FDRI_TESTS_VICTIM_H

#include <errno.h>
#include <fdr/fdr.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/sanitized.h"

/* The child runs `body`, which must call victim_ready once. When body returns, the child ends by _exit(0). */
struct victim {
    pid_t pid;
    int ready;
};
static int victim_pipe = -1;

static inline void victim_ready(void)
{
    char c = 1;
    if (write(victim_pipe, &c, 1) != 1) _exit(99);
}

static inline struct victim victim_start(void (*body)(void *), void *context)
{
    int p[2];
    struct victim v = {-1, -1};
    assert_int_equal(pipe(p), 0);
    fflush(stdout);
    fflush(stderr);
    v.pid = fork();
    assert_true(v.pid >= 0);
    if (v.pid == 0) {
        close(p[0]);
        victim_pipe = p[1];
        alarm(SANITIZED ? 300 : 100); /* ends the child of a failed test, also if it blocks every signal: */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(context);
        _exit(0);
    }
    close(p[1]);
    v.ready = p[0];
    return v;
}

static inline void victim_wait_ready(const struct victim *v)
{
    char c = 0;
    ssize_t n;
    while ((n = read(v->ready, &c, 1)) < 0 && errno == EINTR) {}
    assert_int_equal(n, 1);
}

/* Ends the process by `signal` and returns its wait status. */
static inline int victim_end(struct victim *v, int signal)
{
    int status = 0;
    if (signal) kill(v->pid, signal);
    while (waitpid(v->pid, &status, 0) < 0 && errno == EINTR) {}
    close(v->ready);
    return status;
}

/* State letter of a process, as in /proc: 'T' means stopped. */
static inline char state_of(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    const char *p = strrchr(text, ')');
    return p && p[1] ? p[2] : 0;
}

static inline void victim_stop(const struct victim *v)
{
    kill(v->pid, SIGSTOP);
    for (char s; (s = state_of(v->pid)) != 'T'; usleep(1000))
        if (!s || s == 'Z') fail_msg("it died before it stopped");
}

/* Makes a directory in RAM for this test alone. */
static inline void test_directory(char *path, size_t bytes)
{
    snprintf(path, bytes, "/dev/shm/fdr-test-XXXXXX");
    if (!mkdtemp(path)) {
        snprintf(path, bytes, "/tmp/fdr-test-XXXXXX");
        assert_non_null(mkdtemp(path));
    }
}
static inline void remove_directory(const char *path)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0) fail();
}
#endif
