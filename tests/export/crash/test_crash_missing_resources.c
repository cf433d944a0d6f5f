/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=60 promise=P7,P10
 * P7, P10: the process dies by a fault while it lacks a directory, descriptors, file size or time. It dies of that
 * signal and leaves a recording, complete or in part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;

static void fault(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 10000; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
    *nowhere = 1;
}
static void limit(int what, rlim_t to)
{
    struct rlimit l = {to, to};
    if (setrlimit(what, &l)) _exit(1);
}
static void files_limited(void) { limit(RLIMIT_FSIZE, 100000), fault(); }
static void descriptors_limited(void) { limit(RLIMIT_NOFILE, 5), fault(); }
static void directory_gone(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/gone", death_place_as_it_is()->dir);
    rmdir(path);
    fault();
}
static void small_from_the_start(void)
{
    struct fdr_config c = death_config(death_place_as_it_is());
    limit(RLIMIT_FSIZE, 100000);
    if (fdr_init(&c)) _exit(1);
    fault();
}

/* Checks that the wait status is that of the fault, and that the only file lies in `where`. Returns its verdict. */
static enum fdr_verdict dies(struct fdr_config *c, void (*die)(void), const char *where)
{
    struct fdr_file *f;
    char message[200] = "";
    pid_t pid;
    int status = death_of(c, die, &pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    const char *left = death_file(where);
    if (!death_ends_with(left, ".crash.fdr")) fail_msg("'%s' in %s", left, where);
    enum fdr_verdict v = fdr_file_open(left, &f, message, sizeof message);
    assert_non_null(f);
    assert_string_equal(fdr_file_info(f)->state, "crashed");
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
    if (v == FDR_WHOLE) assert_null(death_check(f));
    else
        assert_true(strstr(message, "FDR_CRASH_DEADLINE") || strstr(message, "the crash section is missing") ||
                    strstr(message, "RLIMIT_FSIZE reached"));
    fdr_file_close(f);
    return v;
}

static void the_live_file_where_no_copy_can_be(void **state)
{
    (void)state;
    char path[600];
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    assert_int_equal(dies(&c, files_limited, p->live), FDR_DAMAGED); /* it may not grow: no crash section */
    p = death_place();
    assert_int_equal(dies(&c, descriptors_limited, p->dir), FDR_WHOLE);
    p = death_place();
    c.dir = "/proc/self/no/such/directory";
    assert_int_equal(dies(&c, fault, p->live), FDR_WHOLE);
    p = death_place();
    c.dir = "/proc"; /* a directory that cannot be written */
    assert_int_equal(dies(&c, fault, p->live), FDR_WHOLE);
    p = death_place();
    snprintf(path, sizeof path, "%s/gone", p->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    c.dir = path;
    assert_int_equal(dies(&c, directory_gone, p->live), FDR_WHOLE);
    p = death_place();
    c.dir = p->dir;
    c.disk = "100K"; /* the quota of fdr, FDR_DISK */
    assert_int_equal(dies(&c, fault, p->live), FDR_WHOLE);
}

static void P10_no_room_from_the_start(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    assert_int_equal(dies(NULL, small_from_the_start, p->dir), FDR_DAMAGED); /* as many bytes as the limit allows */
    assert_string_equal(death_file(p->live), "");
}

/* An anonymous arena exists nowhere else. FDR_DISK compares the size that the bundle takes, not the size of the arena.
 * A partial bundle is better than none. */
static void more_than_may_be_on_disk(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    c.arena = "anonymous";
    c.buffer = "4M";
    c.disk = "1M";
    assert_int_equal(dies(&c, fault, p->dir), FDR_WHOLE);
    p = death_place();
    c.disk = "16K";
    assert_int_equal(dies(&c, fault, p->dir), FDR_DAMAGED);
}

static void the_deadline(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    c.crash_deadline = "1ns";
    assert_int_equal(dies(&c, fault, p->live), FDR_WHOLE);
    p = death_place();
    c.arena = "anonymous";
    assert_int_equal(dies(&c, fault, p->dir), FDR_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_live_file_where_no_copy_can_be),
                                       cmocka_unit_test(P10_no_room_from_the_start),
                                       cmocka_unit_test(more_than_may_be_on_disk), cmocka_unit_test(the_deadline)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
