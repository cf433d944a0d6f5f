/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=180 promise=P7,P10
 * ctest: without=tsan (it runs handlers where its own functions wait)
 * A program that crashes again and again leaves the first bundle, the newest, the one of the longest run, and an exact
 * counter. Another place of death is another fingerprint. 64 processes that die at once exceed the limit of all bundles
 * by one at most, and each leaves one file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "export/snapshot/snapshot.h"
#include "tests/support/deaths.h"

enum { DEATHS = 9, WRITERS = 64 };
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static void here(void) { *nowhere = 1; }
static void there(void) { *nowhere = 2; }
__attribute__((noinline)) static void fails(void) { abort(); }
/* Other code than fails(), so that no compiler or linker makes one function of both. */
static volatile int other;
__attribute__((noinline)) static void also_aborts(void) { other = 7, abort(); }
static void aborts(void) { fails(); }
static void asked(void) { raise(SIGTERM); }

struct told {
    unsigned files, kinds;
    uint64_t deaths, bytes, fingerprint[16];
};

/* The facts in the bundles of a directory. */
static void tell(const char *dir, struct told *t)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        struct fdr_file *f = NULL;
        struct stat st;
        snprintf(path, sizeof path, "%.255s/%.255s", dir, e->d_name);
        if (!death_ends_with(path, ".crash.fdr") || stat(path, &st)) continue;
        assert_int_equal(fdr_file_open(path, &f, NULL, 0), FDR_WHOLE);
        const struct fdr_file_info *i = fdr_file_info(f);
        unsigned k = 0;
        while (k < t->kinds && t->fingerprint[k] != i->fingerprint) k++;
        if (k == t->kinds && k < 16) t->fingerprint[t->kinds++] = i->fingerprint;
        t->files++;
        t->deaths += 1 + i->alike;
        t->bytes += (uint64_t)st.st_blocks * 512;
        assert_true(i->fingerprint != 0);
        fdr_file_close(f);
    }
    closedir(d);
}

static struct told all_of(const struct death_place *p)
{
    struct told t = {0};
    tell(p->dir, &t);
    tell(p->live, &t);
    return t;
}

static void die_again(const struct fdr_config *c, void (*how)(void), int times)
{
    pid_t pid;
    for (int i = 0; i < times; i++) assert_true(WIFSIGNALED(death_of(c, how, &pid)));
}

static void a_loop_collapses(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    die_again(&c, here, DEATHS);
    struct told t = all_of(p);
    assert_int_equal(t.deaths, DEATHS);
    assert_int_equal(t.kinds, 1);
    assert_in_range(t.files, 3, 4); /* the last death has no start behind it */
    assert_int_equal(death_count(p->live, ".fdr"), 0);
}

static void places_and_causes_differ(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    void (*const ways[])(void) = {here, there, aborts, also_aborts, asked};
    for (int i = 0; i < 5; i++) die_again(&c, ways[i], 2);
    struct told t = all_of(p);
    assert_int_equal(t.kinds, 5);
    assert_int_equal(t.files, 10);
}

static void off_keeps_all(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    c.crash_total = "off";
    die_again(&c, here, 5);
    assert_int_equal(death_count(p->dir, ".crash.fdr"), 5);
}

/* Requests to end leave the live file, renamed; these collapse, too. */
static void live_files_collapse(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    die_again(&c, asked, DEATHS);
    struct told t = all_of(p);
    assert_int_equal(t.deaths, DEATHS);
    assert_in_range(t.files, 3, 4);
    assert_int_equal(death_count(p->dir, ".fdr"), 0);
}

/* Room for the bundle that is there and for one more, but not for twice as much. */
static void bundles_of_one_directory_count_once(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    struct told t = {0};
    char total[24];
    int status;
    c.buffer = "256K", c.dir = p->live, c.crash_free = "0";
    die_again(&c, here, 1);
    tell(p->live, &t);
    snprintf(total, sizeof total, "%llu", (unsigned long long)(t.bytes * 3 / 2 + (1 << 20) + (1 << 18)));
    c.crash_total = total;
    if (fork() == 0) {
        death_child();
        if (fdr_init(&c)) _exit(98);
        _exit(((struct fdri_arena_superblock *)(void *)fdri_snapshot_view.base)->bundle_bytes ? 0 : 1);
    }
    assert_true(wait(&status) > 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void writer(const struct fdr_config *c, int ready, int go)
{
    char byte = 0;
    death_child();
    if (!freopen("/dev/null", "w", stderr) || fdr_init(c)) _exit(98);
    if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 0) _exit(97);
    here();
    _exit(99);
}

static void many_writers_at_once(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    c.buffer = "256K";
    c.crash_total = "4M"; /* three bundles of 256 KiB and at most 1 MiB more */
    int ready[2], go[2], died = 0;
    char byte;
    assert_int_equal(pipe(ready) | pipe(go), 0);
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) close(go[1]), writer(&c, ready[1], go[0]);
    for (int i = 0; i < WRITERS; i++) assert_int_equal(read(ready[0], &byte, 1), 1);
    close(go[1]); /* all at once */
    for (int status; wait(&status) > 0;) died += WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
    assert_int_equal(died, WRITERS);
    struct told t = {0};
    tell(p->dir, &t);
    assert_in_range(t.files, 1, 4);
    assert_true(t.bytes <= (4u << 20) + (5u << 18));
    tell(p->live, &t);
    assert_int_equal(t.deaths, WRITERS);
    assert_int_equal(t.files, WRITERS);
    close(ready[0]), close(ready[1]), close(go[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_loop_collapses),
                                       cmocka_unit_test(places_and_causes_differ),
                                       cmocka_unit_test(off_keeps_all),
                                       cmocka_unit_test(live_files_collapse),
                                       cmocka_unit_test(bundles_of_one_directory_count_once),
                                       cmocka_unit_test(many_writers_at_once)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
