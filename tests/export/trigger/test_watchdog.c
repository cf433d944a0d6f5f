/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10 */
/* P10: the watchdog distinguishes a hang from a computation, reports it once, and names the region. Its memory does not
 * grow with the number of threads that come and go. */
#include <fdr/fdr.h>
#include <fdr/tally.h>
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "export/snapshot/snapshot.h"
#include "export/trigger/trigger.h"
#include "tests/support/wait_for_snapshots.h"
#include "tests/support/observed_process.h"

#include <fdr/reader.h>
#include <malloc.h>
#include <semaphore.h>
#include <sys/syscall.h>

static void start(const char *watchdog) { snapshots_start((struct fdr_config){.name = "w", .watchdog = watchdog}); }

static sem_t inside;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* this thread holds it while others hang */
static pid_t newest;                                     /* id of the newest thread */
static void *waits(void *region)
{
    newest = (pid_t)syscall(SYS_gettid);
    fdr_thread_name("hanging");
    fdr_enter(fdr_region_define("outer", NULL, 0));
    fdr_enter(*(fdr_region *)region);
    sem_post(&inside);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    fdr_leave(*(fdr_region *)region);
    fdr_leave(fdr_region_define("outer", NULL, 0));
    return NULL;
}

/* Starts a thread that waits for a lock in the region. */
static pthread_t waiting_in(fdr_region *region)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, waits, region), 0);
    while (sem_wait(&inside)) {}
    while (state_of(newest) != 'S') sleep_ms(1);
    return t;
}

static const uint64_t second = 1000000000u;

/* Rules have names looked up by the dumper. Waits until it sleeps; the watchdog is off, so it does not look again. */
static void wait_for_dumper(void)
{
    char path[300], text[600];
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *e; (e = readdir(tasks));) {
        for (bool sleeps = e->d_name[0] == '.'; !sleeps; sleep_ms(1)) {
            snprintf(path, sizeof path, "/proc/self/task/%s/stat", e->d_name);
            FILE *f = fopen(path, "r");
            size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
            if (f) fclose(f);
            text[n] = 0;
            sleeps = !strstr(text, "(fdr-dumper) ") || strstr(text, "(fdr-dumper) S");
        }
    }
    closedir(tasks);
}

/* A watchdog of one second without the dumper. Only this thread looks, at times that it makes up. */
static void start_unwatched_with(struct fdr_config c)
{
    snapshots_start(c);
    wait_for_dumper();
    fdri_snapshot_view.watchdog_ns = second;
    fdri_trigger_watchdog_start();
    sem_init(&inside, 0, 0);
    pthread_mutex_trylock(&gate);
}

static void start_unwatched(void) { start_unwatched_with((struct fdr_config){.name = "w"}); }

/* The dumper woke up late by this time. */
static void stop_for(uint64_t *now, uint64_t ns)
{
    *now += ns;
    fdri_trigger_watchdog_late(ns);
}

static void look(uint64_t *now, unsigned quarters)
{
    while (quarters--) fdri_trigger_watchdog_look(*now += second / 4);
}

/* Three threads hang: one snapshot, and no other until they have moved. */
static void one_snapshot_for_a_hang(void **state)
{
    enum { HANGING = 3 };
    char path[600], message[256];
    pthread_t t[HANGING];
    struct fdr_file *f = NULL;
    uint64_t now = 1000 * second;
    (void)state;
    start_unwatched();
    fdr_region stuck = fdr_region_define("stuck_here", NULL, 0);
    for (int i = 0; i < HANGING; i++) {
        t[i] = waiting_in(&stuck);
        look(&now, 1); /* the watchdog finds them one after the other */
    }
    look(&now, 1); /* the first has stood for 3/4 s, the last for 1/4 s */
    /* Delays of 1 ms are normal wake-ups and must not be subtracted. */
    for (int i = 0; i < 1000; i++) fdri_trigger_watchdog_late(second / 1000);
    unsigned early = snapshots(NULL, 0);
    look(&now, 2); /* includes the look that waits for the other threads */
    unsigned found = snapshots(path, sizeof path);
    look(&now, 40);
    unsigned later = snapshots(NULL, 0);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < HANGING; i++) pthread_join(t[i], NULL);
    assert_int_equal(early, 0);
    assert_int_equal(found, 1);
    assert_int_equal(later, 1);
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    assert_string_equal(fdr_file_info(f)->reason_kind, "watchdog");
    const char *why = fdr_file_info(f)->reason;
    char holder[64];
    snprintf(holder, sizeof holder, "for a lock of thread %d (", (int)getpid());
    if (!strstr(why, "stuck_here") || !strstr(why, "hanging") || !strstr(why, "and 2 more") || !strstr(why, holder))
        fail_msg("'%s'", why);
    assert_true(fdr_file_info(f)->trigger_value == second + second / 4);
    fdr_file_close(f);
    forget_snapshots();
}

static volatile unsigned long sink;
static void burn(unsigned ms)
{
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    do {
        for (int i = 0; i < 100000; i++) sink += (unsigned long)i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < (long)ms);
}

/* A long computation is no hang. A thread without open regions may sleep. */
static void a_computation_is_no_hang(void **state)
{
    (void)state;
    start("100ms");
    fdr_region r = fdr_region_define("compute", NULL, 0);
    fdr_enter(r);
    burn(500);
    fdr_leave(r);
    sleep_ms(400);
    assert_int_equal(snapshots(NULL, 0), 0);
    forget_snapshots();
}

static bool release;
static void *spin(void *region)
{
    fdr_enter(*(fdr_region *)region);
    while (!__atomic_load_n(&release, __ATOMIC_RELAXED)) sink++;
    fdr_leave(*(fdr_region *)region);
    return NULL;
}

/* Many libraries wait without sleeping. The region's name shows that it waits. */
static void busy_waiting_is_a_hang(void **state)
{
    char path[600], message[256];
    pthread_t t;
    struct fdr_file *f = NULL;
    (void)state;
    start("300ms");
    fdr_region barrier = fdr_region_define("MPI_Barrier", NULL, 0);
    release = false;
    assert_int_equal(pthread_create(&t, NULL, spin, &barrier), 0);
    bool came = comes(1);
    __atomic_store_n(&release, true, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    assert_true(came);
    snapshots(path, sizeof path);
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    if (!strstr(fdr_file_info(f)->reason, "stood in MPI_Barrier")) fail_msg("'%s'", fdr_file_info(f)->reason);
    fdr_file_close(f);
    forget_snapshots();
}

/* While a process is stopped the watchdog does not look either, so that time does not count. The test makes the time
 * up. */
static void a_stopped_process_is_no_hang(void **state)
{
    uint64_t now = 1000 * second;
    (void)state;
    start_unwatched();
    fdr_region r = fdr_region_define("waits_here", NULL, 0);
    pthread_t t = waiting_in(&r);
    look(&now, 2);
    stop_for(&now, 10 * second);
    for (int i = 0; i < 2; i++) { /* delays shorter than the interval of looks count, too */
        look(&now, 1);
        stop_for(&now, second / 4 - 1);
        stop_for(&now, second / 4 - 1);
    }
    look(&now, 1); /* now the thread has stood for a second */
    unsigned early = snapshots(NULL, 0);
    look(&now, 1); /* the look that makes sure */
    unsigned found = snapshots(NULL, 0);
    look(&now, 20);
    stop_for(&now, 10 * second); /* the watchdog must not report the same hang again */
    look(&now, 20);
    unsigned later = snapshots(NULL, 0);
    pthread_mutex_unlock(&gate);
    pthread_join(t, NULL);
    assert_int_equal(early, 0);
    assert_int_equal(found, 1);
    assert_int_equal(later, 1);
    forget_snapshots();
}

/* ---- events that are counted but not stored ---- */

/* ---- threads in calls of MPI, as libfdr-mpi counts them ---- */

/* This thread runs in a region whose name says nothing. The counters say whether it waits. */
static unsigned reports_of_a_call(unsigned waits_for, bool with_region)
{
    const struct {
        uint32_t tid, rest[5];
    } key = {.tid = (uint32_t)syscall(SYS_gettid)};
    uint64_t now = 1000 * second;
    fdr_tally row;
    start_unwatched();
    fdr_region in = fdr_region_define("exchange_halo", NULL, 0), call = fdr_region_define("MPI_Sendrecv", NULL, 0);
    fdr_enter(in);
    if (!with_region) fdr_leave(in);
    assert_int_equal(fdr_tally_make(FDR_TALLY_CALL, &key, &row), 0);
    const uint64_t words[] = {(uint64_t)7 << 20 | call, ((now - second) & ~(uint64_t)0xffff) | 7,
                              (uint64_t)waits_for << 32 | 7};
    assert_int_equal(fdr_tally_set_all(&row, 1, words), 0);
    look(&now, 20);
    unsigned found = snapshots(NULL, 0);
    forget_snapshots();
    return found;
}

static void who_spins_inside_mpi_waits(void **state)
{
    enum { SENDRECV = 3, NOTHING = 9 };
    (void)state;
    assert_int_equal(reports_of_a_call(SENDRECV, true), 1);
    assert_int_equal(reports_of_a_call(SENDRECV, false), 1); /* the regions of MPI may be filtered */
    assert_int_equal(reports_of_a_call(NOTHING, true), 0);
}

static fdr_region called;
static void calls(void)
{
    fdr_enter(called);
    fdr_leave(called);
}
static void marks(void) { fdr_marker(1, 1); }

/* This thread runs, and its region's name says that it waits. Calling `what` is movement; afterwards it stands. */
static void moves_while(void (*what)(void))
{
    uint64_t now = 1000 * second;
    for (int i = 0; i < 40; i++) {
        what();
        look(&now, 1);
    }
    unsigned moving = snapshots(NULL, 0);
    look(&now, 10);
    unsigned standing = snapshots(NULL, 0);
    assert_int_equal(moving, 0);
    assert_int_equal(standing, 1);
    forget_snapshots();
}

static void calls_deeper_than_is_recorded_move(void **state)
{
    (void)state;
    start_unwatched_with((struct fdr_config){.depth = "1"});
    called = fdr_region_define("called", NULL, 0);
    fdr_enter(fdr_region_define("waits_here", NULL, 0));
    moves_while(calls);
}

static void events_in_a_pause_move(void **state)
{
    (void)state;
    start_unwatched();
    called = fdr_region_define("called", NULL, 0);
    fdr_enter(fdr_region_define("waits_here", NULL, 0));
    fdr_pause();
    moves_while(calls);
    fdri_trigger_watchdog_start();
    moves_while(marks);
    fdr_resume();
}

static void calls_that_rules_keep_out_move(void **state)
{
    char rules[300];
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* rules need fdr's own thread for names, and it reads the watchdog's time that this test sets */
#endif
    snprintf(rules, sizeof rules, "%s/rules", directory);
    FILE *f = fopen(rules, "w");
    assert_non_null(f);
    fputs("exclude name called\n", f);
    fclose(f);
    start_unwatched_with((struct fdr_config){.filter = rules});
    called = fdr_region_define("called", NULL, 0);
    fdr_enter(fdr_region_define("waits_here", NULL, 0));
    moves_while(calls);
    unlink(rules);
}

/* This thread runs. Whole words in the region's name decide whether it waits. */
static void names_say_that_it_waits(void **state)
{
    static const struct {
        const char *name;
        unsigned reports;
    } names[] = {{"mutex_lock", 1},
                 {"pthread_mutex_timedlock", 1},
                 {"busyPolling", 1},
                 {"readLock", 1},
                 {"_ZN5Mutex4lockEv", 1},
                 {"SPIN_LOCK", 1},
                 {"spin", 1},
                 {"PMPI_Waitall", 1},
                 {"poll_events", 1},
                 {"gomp_team_barrier", 1},
                 {"await", 1},
                 {"recvfrom", 1},
                 {"block_solve", 0},
                 {"adjoint_sweep", 0},
                 {"spinor_update", 0},
                 {"pollution", 0},
                 {"clock_model", 0},
                 {"BLOCK_SIZE", 0},
                 {"Matrix::multiply", 0},
                 {"lockstep", 0},
                 {"_ZN5Solve5blockEv", 0},
                 {"RWLock", 1},
                 {"MCSLock::acquire", 1},
                 {"_Z4lockv", 1},
                 {"_Z4spini", 1},
                 {"_Z5blockv", 0},
                 {"_Z8lockstepv", 0},
                 {"pthread_rwlock_wrlock", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t now = 1000 * second;
        start_unwatched();
        fdr_enter(fdr_region_define(names[i].name, NULL, 0));
        look(&now, 10);
        unsigned found = snapshots(NULL, 0);
        if (found != names[i].reports) fail_msg("%s: %u reports", names[i].name, found);
        forget_snapshots();
    }
}

static void *brief(void *region)
{
    fdr_enter(*(fdr_region *)region);
    fdr_leave(*(fdr_region *)region);
    return NULL;
}

/* Location blocks that are not yet or no longer in use have no valid thread id. The watchdog must ignore them. */
static void P10_threads_that_come_and_go(void **state)
{
    (void)state;
    start("10ms");
    fdr_region r = fdr_region_define("brief", NULL, 0);
    for (int i = 0; i < 2000; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, brief, &r), 0);
        pthread_join(t, NULL);
    }
    sleep_ms(50); /* the watchdog looks every 10 ms */
    forget_snapshots();
}

static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd; /* large blocks lie outside of the heap */
}

/* The watchdog keeps data on live threads only, not on all that ever existed. */
static void P10_memory_does_not_grow_with_threads(void **state)
{
    enum { BEFORE = 5000 };
    uint64_t now = 1000 * second;
    (void)state;
    start_unwatched();
    fdr_region r = fdr_region_define("waits_here", NULL, 0);
    fdr_enter(r);
    look(&now, 1);
    size_t had = allocated();
    for (int i = 0; i < BEFORE; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, brief, &r), 0);
        pthread_join(t, NULL);
    }
    pthread_t t = waiting_in(&r);
    look(&now, 1);
    size_t has = allocated();
    pthread_mutex_unlock(&gate);
    pthread_join(t, NULL);
    fdr_leave(r);
    if (has > had + BEFORE * 8) fail_msg("%zu bytes more behind %d threads", has - had, BEFORE);
    forget_snapshots();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_snapshot_for_a_hang),
                                       cmocka_unit_test(a_computation_is_no_hang),
                                       cmocka_unit_test(busy_waiting_is_a_hang),
                                       cmocka_unit_test(who_spins_inside_mpi_waits),
                                       cmocka_unit_test(a_stopped_process_is_no_hang),
                                       cmocka_unit_test(names_say_that_it_waits),
                                       cmocka_unit_test(calls_deeper_than_is_recorded_move),
                                       cmocka_unit_test(events_in_a_pause_move),
                                       cmocka_unit_test(calls_that_rules_keep_out_move),
                                       cmocka_unit_test(P10_threads_that_come_and_go),
                                       cmocka_unit_test(P10_memory_does_not_grow_with_threads)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
