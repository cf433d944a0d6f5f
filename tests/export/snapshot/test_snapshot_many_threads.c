/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=300 promise=P6,P8
 * P6, P8: a snapshot of a process with very many threads has the events of all, from inside and from outside. This
 * holds if the tail has no room for all of them. If the tail is damaged, it also holds for the recovered file. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "tests/support/sanitized.h"

enum { THREADS = SANITIZED ? 400 : 2000, CALLS = 7 };

static pthread_barrier_t all_there, over;
static pthread_t thread[THREADS];
static char directory[] = "/tmp/fdr-many-XXXXXX";
static fdr_region call, open_call;
static uint8_t *image; /* the snapshot; aligned to a page */
static size_t bytes;

static void *work(void *unused)
{
    for (int i = 0; i < CALLS; i++) {
        fdr_enter(call);
        fdr_leave(call);
    }
    fdr_enter(open_call);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&over);
    return unused;
}

static int begin(void **state)
{
    (void)state;
    struct fdr_config c = {.size = sizeof c, .ignore_environment = 1, .buffer = "64M", .signal = "none", .crash = "0"};
    assert_non_null(mkdtemp(directory));
    c.dir = c.live_dir = directory;
    c.arena = "anonymous";
    assert_int_equal(fdr_init(&c), 0);
    call = fdr_region_define("call", NULL, 0);
    open_call = fdr_region_define("open", NULL, 0);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 128 * 1024);
    pthread_barrier_init(&all_there, NULL, THREADS + 1);
    pthread_barrier_init(&over, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], &a, work, NULL), 0);
    pthread_attr_destroy(&a);
    pthread_barrier_wait(&all_there);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    pthread_barrier_wait(&over);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    fdr_finalize();
    free(image);
    return rmdir(directory);
}

/* Counts the enters of closed calls, and of open ones. */
static void count(struct fdr_file *f, size_t *closed, size_t *open)
{
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    assert_non_null(it);
    *closed = *open = 0;
    while (fdr_iter_next(it, &e)) {
        if (e.kind != FDR_ENTER) continue;
        const struct fdr_definition *d = fdr_definition(f, FDR_REGION_DEFINITION, e.id);
        *closed += strcmp(d->name, "call") == 0;
        *open += strcmp(d->name, "open") == 0;
    }
    fdr_iter_close(it);
}

static void shows_all_threads(struct fdr_file *f)
{
    size_t closed, open;
    count(f, &closed, &open);
    assert_int_equal(closed, THREADS * CALLS);
    assert_int_equal(open, THREADS);
}

static void snapshot_has_all_threads(void **state)
{
    (void)state;
    struct fdr_file *f;
    struct stat st;
    char message[256];
    assert_int_equal(fdr_snapshot("many"), 0);
    FILE *in = fopen(fdr_last_snapshot(), "r");
    assert_non_null(in);
    assert_int_equal(fstat(fileno(in), &st), 0);
    bytes = (size_t)st.st_size;
    image = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    assert_int_equal(fread(image, 1, bytes, in), bytes);
    fclose(in);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    unlink(fdr_last_snapshot());
    shows_all_threads(f);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    fdr_file_close(f);
}

static void outside_snapshot_has_all_threads(void **state)
{
    (void)state;
    struct fdr_file *f;
    char message[256] = "";
    enum fdr_verdict v = fdr_process_open((uint32_t)getpid(), true, &f, message, sizeof message);
    if (v != FDR_WHOLE) fail_msg("%s", message);
    shows_all_threads(f);
    fdr_file_close(f);
}

static struct fdri_arena_tail *tail(void)
{
    return (void *)(image + ((const struct fdri_arena_superblock *)image)->arena_bytes);
}

/* The tail has room for the newest ten threads only. The events of the others end where their location blocks say. */
static void events_beyond_a_full_tail_are_kept(void **state)
{
    (void)state;
    struct fdr_file *f;
    char message[256];
    struct fdri_arena_spare *spare = (void *)(image + FDRI_ARENA_SPARE_OFF);
    const uint32_t all = tail()->count;
    const struct fdri_arena_spare before = *spare;
    assert_true(all >= THREADS);
    tail()->count = 10;
    spare->tail_check = fdri_arena_check32(tail(), spare->tail_bytes);
    spare->check = fdri_arena_spare_check(spare);
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_WHOLE);
    shows_all_threads(f);
    uint64_t from, to;
    const struct fdr_ledger_row *rows;
    assert_true(fdr_ledger(f, &rows) >= THREADS);
    /* the oldest thread is not in the tail, so its ledger has no bounds */
    fdr_ledger_bounds(f, rows[0].location, &from, &to);
    assert_true(from == 0 && to == UINT64_MAX);
    fdr_file_close(f);
    tail()->count = all;
    *spare = before;
}

static void damaged(uint64_t from, uint64_t to)
{
    struct fdr_file *f;
    char message[256], path[] = "/tmp/fdr-many-recovered-XXXXXX";
    uint8_t *was = malloc(to - from);
    memcpy(was, image + from, to - from);
    memset(image + from, 0, to - from);
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_DAMAGED);
    shows_all_threads(f);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    fdr_file_close(f);
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    shows_all_threads(f);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    fdr_file_close(f);
    unlink(path);
    memcpy(image + from, was, to - from);
    free(was);
}

static void a_lost_tail_costs_no_event(void **state)
{
    (void)state;
    uint64_t at = ((const struct fdri_arena_superblock *)image)->arena_bytes;
    damaged(at, at + 4096);         /* the head of the tail */
    damaged(at + 8192, at + 12288); /* some of its entries */
    damaged(at + 4096, bytes);      /* the rest of it, and the checks behind it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshot_has_all_threads),
        cmocka_unit_test(outside_snapshot_has_all_threads),
        cmocka_unit_test(events_beyond_a_full_tail_are_kept),
        cmocka_unit_test(a_lost_tail_costs_no_event),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}
