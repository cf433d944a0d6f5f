/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P7
 * P7: a recording ended early, because fdr_ending left a bundle or its file was truncated. The process starts another
 * one, which is as whole as the first: its bundles, threads and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static struct fdr_config config;
static bool finalizes;

static void *wait_here(void *unused)
{
    fdr_enter(fdr_region_define("waits", NULL, 0));
    for (;;) pause();
    return unused;
}

static void record(void)
{
    fdr_region r = fdr_region_define("work", NULL, 0);
    for (int i = 0; i < 100; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
}

/* The number of threads with this name. */
static int threads(const char *name)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; (e = readdir(d));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (!f) continue;
        if (fgets(comm, sizeof comm, f)) n += strncmp(comm, name, strlen(name)) == 0;
        fclose(f);
    }
    closedir(d);
    return n;
}

static void again(void)
{
    if (finalizes) fdr_finalize();
    if (fdr_init(&config)) _exit(2);
    for (int i = 0; i < 200 && threads("fdr-dumper") > 1; i++) usleep(10000); /* an old one may be ending */
    if (threads("fdr-dumper") != 1) _exit(3);
    record();
}

static void end_and_die(void)
{
    pthread_t t;
    pthread_create(&t, NULL, wait_here, NULL);
    record();
    for (int i = 0; i < 3; i++) {
        if (fdr_ending("abort", 3) != 1) _exit(1);
        again();
    }
    *nowhere = 1;
}

/* SIGBUS: fdr puts anonymous memory in place of the arena and stops recording. */
static void cut_and_go_on(void)
{
    DIR *d = opendir(config.live_dir);
    record();
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", config.live_dir, e->d_name);
        if (e->d_name[0] != '.' && truncate(path, 0)) _exit(1);
    }
    closedir(d);
    record();
    again();
    if (fdr_snapshot("second")) _exit(4);
    fdr_finalize();
    if (threads("fdr-")) _exit(5);
    _exit(0);
}

static int bundles(const char *dir, int signal, const char *reason)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));) {
        char path[600], message[200] = "";
        const struct fdr_crash_cause_info *cause;
        const struct fdr_crash_thread_info *thread;
        struct fdr_file *f;
        if (!strstr(e->d_name, ".fdr")) continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s: %s", path, message);
        if (strcmp(fdr_file_info(f)->reason, reason) == 0) {
            assert_int_equal(fdr_crash_causes(f, &cause), 1);
            assert_int_equal(cause[0].signal, signal);
            size_t count = fdr_crash_threads(f, &thread);
            assert_true(count >= 3); /* this thread, the waiting thread and the dumper */
            assert_true(thread[0].faulting && thread[0].answered && thread[0].register_count);
            assert_true(thread[0].tid == cause[0].tid);
            assert_non_null(fdr_crash_text(f, "maps", NULL));
            const char *wrong = death_check(f);
            if (wrong) fail_msg("%s: %s", path, wrong);
            n++;
        }
        fdr_file_close(f);
    }
    closedir(d);
    return n;
}

static void P7_a_recording_after_one_that_was_ended(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        pid_t pid;
        const struct death_place *p = death_place();
        config = death_config(p);
        config.crash = "exit";
        config.signal = "USR1";
        config.arena = i & 1 ? "anonymous" : "mapped";
        finalizes = i & 2;
        int status = death_of(&config, end_and_die, &pid);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) fail_msg("wait status %x", (unsigned)status);
        assert_int_equal(bundles(p->dir, 0, "ended by abort"), 3);
        assert_int_equal(bundles(p->dir, SIGSEGV, "crash: SIGSEGV"), 1);
        assert_string_equal(death_file(p->live), "");
    }
}

static void P7_a_recording_after_one_whose_file_was_cut(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        pid_t pid;
        const struct death_place *p = death_place();
        config = death_config(p);
        config.signal = "USR1";
        finalizes = i & 1;
        int status = death_of(&config, cut_and_go_on, &pid);
        if (status) fail_msg("wait status %x", (unsigned)status);
        struct fdr_file *f;
        char message[200] = "";
        if (fdr_file_open(death_file(p->dir), &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
        const struct fdr_ledger_row *row;
        uint64_t presented = 0;
        for (size_t n = fdr_ledger(f, &row), k = 0; k < n; k++) presented += row[k].presented;
        assert_int_equal(presented, 101);
        fdr_file_close(f);
        assert_string_equal(death_file(p->live), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P7_a_recording_after_one_that_was_ended),
                                       cmocka_unit_test(P7_a_recording_after_one_whose_file_was_cut)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
