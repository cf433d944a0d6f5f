/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P10
 * P10: FDR_CHECK finds wrong lists of events, after give-backs and at snapshots. It says so in one line on standard
 * error and a note in the next snapshot, and recording goes on. Where nothing is wrong it is silent, also with threads
 * that take memory from each other; without the setting nothing is walked. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

static void work(int calls)
{
    fdr_region region[8]; /* of this thread */
    define_regions(region, 8);
    for (int i = 0; i < calls; i++) {
        for (int d = 0; d < 8; d++) fdr_enter(region[d]);
        for (int d = 8; d-- > 0;) fdr_leave(region[d]);
    }
}

/* The newest partition of this thread with bins that can be given back. */
static struct fdri_arena_part *some_part(void)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    for (uint32_t off = a->super->location_first; off;) {
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        for (uint32_t part = l->parts_first; part;) {
            struct fdri_arena_part *p = fdri_bins_at(a, part);
            if (p->bins > 2) return p;
            part = p->next;
        }
        off = l->next;
    }
    return NULL;
}

/* Runs `test` in a child whose standard error is returned. */
static const char *said_by(void (*test)(void))
{
    static char said[4096];
    int end[2], status;
    assert_int_equal(pipe(end), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(end[1], STDERR_FILENO);
        test();
        _exit(0);
    }
    close(end[1]);
    size_t used = 0;
    for (ssize_t n; used < sizeof said - 1 && (n = read(end[0], said + used, sizeof said - 1 - used)) > 0;)
        used += (size_t)n;
    said[used] = 0;
    close(end[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status) print_error("%s", said); /* a sanitizer's report */
    assert_int_equal(status, 0);
    return said;
}

static void must(bool good, int line)
{
    if (!good) _exit(line & 127 ? line & 127 : 1);
}
#define MUST(condition) must(condition, __LINE__)

static const char *note_of(struct fdr_file *f)
{
    const struct fdr_note_info *notes;
    size_t n = fdr_notes(f, &notes);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(notes[i].key, "fdr.check")) return notes[i].value;
    return "";
}

static const char *setting = "1", *strategy = "telescope", *pinned = "0", *buffer = "256K";
static void start_small(void)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.buffer = buffer;
    c.check = setting;
    c.strategy = strategy;
    c.pin = pinned;
    c.finalize = NULL;
    MUST(fdr_init(&c) == 0);
    work(20000);
}

static struct fdr_file *snapshot(void)
{
    struct fdr_file *f = NULL;
    MUST(fdr_snapshot("look") == 0);
    MUST(fdr_file_open(fdr_last_snapshot(), &f, NULL, 0) != FDR_UNREADABLE);
    return f;
}

static void miscounted(void)
{
    start_small();
    struct fdri_arena_part *p = some_part();
    MUST(p != NULL);
    fdri_atomic_add_relaxed(&p->bytes, 1u);
    work(20000);
    fdri_atomic_sub_relaxed(&p->bytes, 1u);
    struct fdr_file *f = snapshot();
    MUST(strstr(note_of(f), "after events were given back: bins or bytes of the partition miscounted"));
    MUST(fdr_file_verify(f) == FDR_WHOLE); /* recording went on */
    uint64_t last = fdr_file_info(f)->last_ns;
    fdr_file_close(f);
    work(100);
    f = snapshot();
    MUST(fdr_file_info(f)->last_ns > last);
    fdr_file_close(f);
}

static void another_bin(void)
{
    start_small();
    struct fdri_arena_part *p = some_part();
    MUST(p != NULL);
    struct fdri_arena_bin *b = fdri_bins_bin(&fdri_life_recording.arena, (uint32_t)p->list_head);
    uint32_t seq = b->seq;
    b->seq = seq + 7;
    struct fdr_file *f = snapshot();
    MUST(strstr(note_of(f), "at a snapshot: the oldest bin of a partition is not its own"));
    fdr_file_close(f);
}

static void without_magic(void)
{
    start_small();
    struct fdri_arena_part *p = some_part();
    MUST(p != NULL);
    struct fdri_arena_bin *b = fdri_bins_bin(&fdri_life_recording.arena, (uint32_t)p->list_head);
    b->magic = 1;
    work(SANITIZED ? 60000 : 200000);
    fdr_file_close(snapshot());
}

static void *worker(void *unused)
{
    work(SANITIZED ? 8000 : 30000);
    fdr_rewind_mark();
    work(100);
    fdr_rewind();
    work(5000);
    return unused;
}
static void nothing_wrong(void)
{
    pthread_t t[4];
    start_small();
    for (int round = 0; round < (SANITIZED ? 1 : 3); round++) {
        for (int i = 0; i < 4; i++) MUST(pthread_create(&t[i], NULL, worker, NULL) == 0);
        for (int i = 0; i < 5; i++) {
            struct fdr_file *f = snapshot();
            MUST(!*note_of(f));
            fdr_file_close(f);
        }
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    }
    fdr_finalize();
}

static size_t lines(const char *said, const char *what)
{
    size_t n = 0;
    for (const char *at = said; (at = strstr(at, what)); at++) n++;
    return n;
}

static void P10_a_wrong_count_is_reported_once(void **state)
{
    (void)state;
    const char *said = said_by(miscounted);
    assert_int_equal(lines(said, "FDR_CHECK: after events were given back"), 1);
    assert_int_equal(lines(said, "\n"), 1);
}

static void P10_a_wrong_bin_is_reported_at_a_snapshot(void **state)
{
    (void)state;
    assert_int_equal(lines(said_by(another_bin), "FDR_CHECK: at a snapshot: the oldest bin"), 1);
}

static void P10_cheap_conditions_are_always_on(void **state)
{
    (void)state;
    setting = "0";
    assert_int_equal(lines(said_by(without_magic), "FDR_CHECK: at a snapshot: b->magic == FDRI_ARENA_BIN_MAGIC"), 1);
    setting = "1";
}

static void silent_if_nothing_is_wrong(void **state)
{
    (void)state;
    static const char *const strategies[] = {"telescope", "whole", "last"};
    buffer = "1M";
    for (int i = 0; i < 3; i++) {
        strategy = strategies[i];
        assert_string_equal(said_by(nothing_wrong), "");
    }
    strategy = "telescope";
    pinned = "1ms";
    assert_string_equal(said_by(nothing_wrong), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_a_wrong_count_is_reported_once),
        cmocka_unit_test(P10_a_wrong_bin_is_reported_at_a_snapshot),
        cmocka_unit_test(P10_cheap_conditions_are_always_on),
        cmocka_unit_test(silent_if_nothing_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
