/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=240 promise=P4,P8 wrap=fdri_live_process_read
 * ctest: without=tsan (its threads take turns)
 * P4, P8: a copy from outside is many readings. The process acts between two of them, at each place in turn, and the
 * copy is whole. Actions: a burst that begins and merges epochs, first calls of a thread, threads that come and go, a
 * rewind. A thread that rests has an exact ledger. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader/live/find_process.h"
#include "tests/support/sanitized.h"

enum { REGIONS = 40, PIECE = 2048, FEWER = SANITIZED ? 3 : 1 };
static fdr_region region[REGIONS];
static unsigned reads, when;
static size_t epochs;
static void (*what)(void);

int __real_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count);
int __wrap_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count);
int __wrap_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count)
{
    int e = 0;
    for (size_t at = 0, n; at < count && !e; at += n) { /* the kernel does not copy a long piece at once, either */
        n = count - at < PIECE ? count - at : PIECE;
        if (reads++ == when && what) what();
        e = __real_fdri_live_process_read(p, off + at, (uint8_t *)to + at, n);
    }
    return e;
}

/* ---- actions of the process ---- */

static void calls(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        fdr_enter(region[i % 3]);
        fdr_enter(region[i % REGIONS]);
        fdr_leave(region[i % REGIONS]);
        fdr_leave(region[i % 3]);
    }
}
static void burst(void) { calls(20000); }

static void *comes_and_goes(void *unused)
{
    calls(500);
    return unused;
}
static void threads(void)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, comes_and_goes, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
}

/* A thread that has a name and no event yet. Its first event decides whether its location counts in ns. */
static sem_t go, done;
static sem_t named;
static void *in_ns(void *unused)
{
    fdr_thread_name("in ns");
    sem_post(&named);
    for (uint64_t at = 1000;; at += 1000000) {
        while (sem_wait(&go)) {}
        for (int i = 0; i < 2000; i++) {
            fdr_enter_at(region[0], at += 10);
            fdr_leave_at(region[0], at += 10);
        }
        sem_post(&done);
    }
    return unused;
}
static void first_calls(void)
{
    sem_post(&go);
    while (sem_wait(&done)) {}
}

/* A rewind removes the calls since the mark, and no others. */
enum { STAY = 3000, FORGOTTEN = 400 };
static unsigned stay_before, forgets;
static void rewinds(void)
{
    fdr_rewind();
    forgets++;
}

/* ---- the copy ---- */

static struct fdr_file *copy(uint8_t **bytes, size_t *count)
{
    struct fdri_live_process p;
    struct fdr_file *f;
    char message[512] = "";
    if (!fdri_live_process_find((uint32_t)getpid(), &p, message, sizeof message)) fail_msg("%s", message);
    int fd = memfd_create("copy", MFD_CLOEXEC);
    reads = 0; /* the readings that find the process do not count */
    assert_int_equal(fdri_live_external_copy(&p, fd, "between", FDRI_LIVE_EXTERNAL_FILE), 0);
    fdri_live_process_close(&p);
    *count = (size_t)lseek(fd, 0, SEEK_END);
    *bytes = mmap(NULL, *count, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(*bytes != MAP_FAILED);
    close(fd);
    if (fdr_file_open_memory(*bytes, *count, &f, message, sizeof message) != FDR_WHOLE)
        fail_msg("at read %u: %s", when, message);
    return f;
}

/* Returns the number of locations whose ledger is not exact. */
static unsigned check_ledger(struct fdr_file *f)
{
    const struct fdr_ledger_row *row;
    size_t n = fdr_ledger(f, &row), i = 0;
    unsigned moved = 0;
    for (size_t at = 0; at < fdr_location_count(f); at++) {
        uint64_t sum = 0, before, after;
        const struct fdr_location_info *l = fdr_location_info(f, at);
        for (; i < n && row[i].location == l->id; i++)
            sum += row[i].kept + row[i].filtered + row[i].reduced + row[i].lost;
        fdr_ledger_bounds(f, l->id, &before, &after);
        if (sum > after || sum < before)
            fail_msg("at read %u, location %u: %llu not in %llu .. %llu", when, l->id, (unsigned long long)sum,
                     (unsigned long long)before, (unsigned long long)after);
        moved += before != after;
        if (before != after && !strcmp(l->name, "rests")) fail_msg("at read %u: one that rests", when);
    }
    return moved;
}

/* The epochs' table and rows are of one moment, and no row moved during a change. If the current epoch claims to be
 * exact, the epochs add up to the whole run. */
static size_t check_epochs(struct fdr_file *f)
{
    const struct fdr_epoch_info *e;
    const struct fdr_total *total;
    uint64_t sum = 0;
    size_t n = fdr_epochs(f, &e), totals = fdr_totals(f, &total);
    for (size_t i = 0; i < n; i++) {
        sum += e[i].calls;
        if (!e[i].exact && !e[i].current) fail_msg("at read %u of %u: epoch %u is not exact", when, reads, e[i].index);
        if (!e[i].current) continue;
        for (size_t k = 0; k < totals; k++) sum -= total[k].location == e[i].location ? total[k].calls : 0;
        if (e[i].exact && sum)
            fail_msg("at read %u of %u: epochs of location %u are %lld calls more than there were", when, reads,
                     e[i].location, (long long)sum);
        sum = 0;
    }
    return n;
}

static unsigned look(void)
{
    uint8_t *bytes;
    size_t count;
    struct fdr_file *f = copy(&bytes, &count);
    if (fdr_file_verify(f) != FDR_WHOLE) fail_msg("at read %u of %u: %s", when, reads, fdr_file_damage(f, 0));
    unsigned moved = check_ledger(f);
    epochs = check_epochs(f);
    fdr_file_close(f);
    munmap(bytes, count);
    return moved;
}

/* ---- each action at every place ---- */

static void *rests(void *unused)
{
    fdr_thread_name("rests");
    calls(20000);
    fdr_enter(region[1]);
    sem_post(&done);
    for (;;) pause();
    return unused;
}

static void start(void)
{
    char name[16];
    pthread_t t;
    /* With less than 2 MiB a thread may find no room for its epochs. Then these are not exact. */
    const struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .arena = "anonymous", .buffer = "2M", .signal = "none"};
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    sem_init(&named, 0, 0);
    assert_int_equal(pthread_create(&t, NULL, rests, NULL), 0);
    while (sem_wait(&done)) {}
}

static void between(void (*happens)(void), unsigned steps)
{
    what = NULL;
    look();
    unsigned last = reads, moved = 0;
    what = happens;
    for (unsigned i = 0; i < steps; i++) {
        /* half of the steps for the meta blocks, which come first */
        when = i < steps / 2 ? i : (unsigned)((unsigned long long)last * i / steps);
        moved += look();
    }
    what = NULL;
    if (happens == burst) assert_true(moved > 0);
}

static void P8_burst_during_a_copy(void **state)
{
    (void)state;
    between(burst, 160 / FEWER);
    assert_true(epochs > 8); /* there were epochs to merge */
}
static void P8_threads_that_come_and_go(void **state)
{
    (void)state;
    between(threads, 60 / FEWER);
}

static void P8_first_calls_of_a_thread_during_a_copy(void **state)
{
    pthread_t t;
    (void)state;
    for (unsigned i = 0; i < 24 / FEWER; i++) {
        what = NULL;
        look();
        when = reads * i / (24 / FEWER);
        assert_int_equal(pthread_create(&t, NULL, in_ns, NULL), 0);
        while (sem_wait(&named)) {}
        what = first_calls;
        look();
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    what = NULL;
}

/* All calls before the mark are kept. The first reading of a bin may precede the rewind, and the second may follow
 * it. */
static void P4_rewind_during_a_copy(void **state)
{
    (void)state;
    struct fdr_read_event e;
    const fdr_region stays = fdr_region_define("stays", NULL, 0), goes = fdr_region_define("goes", NULL, 0);
    unsigned places = 60 / FEWER, last;
    what = NULL;
    look();
    last = reads;
    for (unsigned i = 0; i < places; i++) {
        for (unsigned n = 0; n < STAY / 60; n++) fdr_enter(stays), fdr_leave(stays);
        stay_before += STAY / 60;
        fdr_rewind_mark();
        for (unsigned n = 0; n < FORGOTTEN; n++) fdr_enter(goes), fdr_leave(goes);
        uint8_t *bytes;
        size_t count, shown = 0;
        what = rewinds;
        when = (unsigned)((unsigned long long)last * i / places);
        struct fdr_file *f = copy(&bytes, &count);
        struct fdr_iter *it = fdr_iter_open(f, NULL);
        while (fdr_iter_next(it, &e)) shown += e.kind == FDR_ENTER && e.id == stays && !e.reduced;
        fdr_iter_close(it);
        fdr_file_close(f);
        munmap(bytes, count);
        if (shown != stay_before) fail_msg("at read %u of %u: %zu of %u calls", when, reads, shown, stay_before);
    }
    what = NULL;
    assert_true(forgets >= places * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P4_rewind_during_a_copy), /* first, before memory is full */
        cmocka_unit_test(P8_burst_during_a_copy),
        cmocka_unit_test(P8_threads_that_come_and_go),
        cmocka_unit_test(P8_first_calls_of_a_thread_during_a_copy),
    };
    start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
