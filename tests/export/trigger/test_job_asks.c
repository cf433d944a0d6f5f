/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=120
 * A trigger of one rank with `scope job` takes a snapshot of every rank. These are ranks with its live directory, and
 * ranks on another node, which share FDR_DIR only. A rank that is stopped is said not to be reached. Two ranks that ask
 * at once get one snapshot of each rank. Other jobs take none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/deaths.h"

enum { RANKS = 4 };
static char said[4096];

struct rank {
    pid_t pid;
    int begin, end; /* to the rank: fire; end */
};

static int wait_byte(int fd)
{
    char byte;
    return (int)read(fd, &byte, 1);
}

/* One rank: begins, says so, fires its trigger when told, and goes on until its pipe closes. */
static void run_rank(int n, const char *job, const char *live, int ready, int begin, int end)
{
    const struct death_place *p = death_place_as_it_is();
    struct fdr_config c = death_config(p);
    char number[12], err[300];
    snprintf(number, sizeof number, "%d", n);
    setenv("PMIX_NAMESPACE", job, 1);
    setenv("OMPI_COMM_WORLD_RANK", number, 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    snprintf(err, sizeof err, "%.255s/err.%d", p->dir, n);
    if (!freopen(err, "a", stderr)) _exit(97);
    c.live_dir = live;
    c.signal = "USR1";
    c.triggers = "all: api scope job";
    if (fdr_init(&c)) _exit(98);
    fdr_marker(fdr_marker_define("m"), 1);
    if (write(ready, "r", 1) != 1) _exit(96);
    if (wait_byte(begin) == 1) fdr_trigger_fire(1, 5);
    wait_byte(end);
    fdr_finalize();
    _exit(0);
}

static void start(struct rank *r, int n, const char *job, const char *live)
{
    int begin[2], end[2], ready[2];
    assert_int_equal(pipe(begin) | pipe(end) | pipe(ready), 0);
    fflush(NULL);
    r->pid = fork();
    if (r->pid == 0) {
        close(begin[1]), close(end[1]);
        for (int fd = 3; fd < 256; fd++) /* pipes of other ranks */
            if (fd != begin[0] && fd != end[0] && fd != ready[1]) close(fd);
        run_rank(n, job, live, ready[1], begin[0], end[0]);
    }
    close(begin[0]), close(end[0]), close(ready[1]);
    assert_int_equal(wait_byte(ready[0]), 1);
    close(ready[0]);
    *r = (struct rank){r->pid, begin[1], end[1]};
}

static void fire(const struct rank *r) { assert_int_equal(write(r->begin, "f", 1), 1); }

static void end_all(struct rank *r, int count)
{
    for (int i = 0; i < count; i++) close(r[i].begin), close(r[i].end);
    for (int i = 0; i < count; i++) waitpid(r[i].pid, NULL, 0);
}

/* The words of rank n so far. */
static const char *words_of(int n)
{
    char path[300];
    snprintf(path, sizeof path, "%.255s/err.%d", death_place_as_it_is()->dir, n);
    FILE *f = fopen(path, "r");
    said[f ? fread(said, 1, sizeof said - 1, f) : 0] = 0;
    if (f) fclose(f);
    return said;
}

static void wait_for_words(int n, const char *words)
{
    for (int i = 0; i < 3000 && !strstr(words_of(n), words); i++) usleep(10000);
    if (!strstr(said, words)) fail_msg("rank %d did not say '%s' but: %s", n, words, said);
}

static int snapshots_of(int n)
{
    char end[20];
    snprintf(end, sizeof end, ".r%d.1.fdr", n);
    int count = death_count(death_place_as_it_is()->dir, end);
    snprintf(end, sizeof end, ".r%d.2.fdr", n);
    return count + death_count(death_place_as_it_is()->dir, end);
}

static void all_ranks(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct rank r[RANKS + 1];
    char other_node[300];
    snprintf(other_node, sizeof other_node, "%.255s-node", p->live);
    for (int i = 0; i < RANKS; i++) start(&r[i], i, "job.1", i == 3 ? other_node : p->live);
    start(&r[4], 9, "job.2", p->live);
    fire(&r[0]);
    wait_for_words(0, "4 of 4 ranks took a snapshot");
    for (int i = 0; i < RANKS; i++) assert_int_equal(snapshots_of(i), 1);
    assert_int_equal(snapshots_of(9), 0);
    struct fdr_file *f = NULL;
    assert_int_equal(fdr_file_open(death_find(p->dir, ".r3.1.fdr"), &f, NULL, 0), FDR_WHOLE);
    assert_string_equal(fdr_file_info(f)->reason_kind, "job");
    assert_non_null(strstr(fdr_file_info(f)->reason, "rank 0 on "));
    assert_non_null(strstr(fdr_file_info(f)->reason, "trigger all: api"));
    fdr_file_close(f);
    end_all(r, RANKS + 1);
    assert_int_equal(death_count(p->live, ".part") + death_count(p->dir, ".part"), 0);
    rmdir(other_node);
}

static void one_is_stopped(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct rank r[RANKS];
    for (int i = 0; i < RANKS; i++) start(&r[i], i, "job.1", p->live);
    kill(r[2].pid, SIGSTOP);
    fire(&r[1]);
    wait_for_words(1, "3 of 4 ranks took a snapshot; not reached: 2");
    assert_int_equal(snapshots_of(2), 0);
    kill(r[2].pid, SIGCONT);
    end_all(r, RANKS);
}

static void two_ask_at_once(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct rank r[RANKS];
    for (int i = 0; i < RANKS; i++) start(&r[i], i, "job.1", p->live);
    for (int i = 0; i < RANKS; i++) kill(r[i].pid, SIGSTOP);
    fire(&r[0]), fire(&r[1]);
    for (int i = 0; i < RANKS; i++) kill(r[i].pid, SIGCONT);
    for (int i = 0; i < 3000 && !strstr(words_of(0), "4 of 4") && !strstr(words_of(1), "4 of 4"); i++) usleep(10000);
    for (int i = 0; i < RANKS; i++) assert_int_equal(snapshots_of(i), 1);
    end_all(r, RANKS);
}

static void without_a_job(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct rank r;
    start(&r, -1, "", p->live);
    fire(&r);
    wait_for_words(-1, "only its own snapshot");
    end_all(&r, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_ranks), cmocka_unit_test(one_is_stopped),
                                       cmocka_unit_test(two_ask_at_once), cmocka_unit_test(without_a_job)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
