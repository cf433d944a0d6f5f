/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 serial promise=P10
 * ctest: without=asan (its handlers take longer there than fdr waits for stacks) */
/* P10: a snapshot of the watchdog has the native stacks of all threads. It interrupts no system call of the program. It
 * waits for threads that wait for a processor. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/deaths.h"

#define APART __attribute__((noinline))

static pthread_mutex_t locked = PTHREAD_MUTEX_INITIALIZER;
static bool stop;
static sem_t over;
static int slept = -1;
enum { OTHERS = 4, NICE = 17 }; /* beside so many processes of nice 0, a thread of nice 17 runs after half a second */
static bool last;               /* the spinner gets almost no processor time */
static int crowded = -1;        /* a processor with other processes, where the spinner has the least priority */
static volatile unsigned after; /* work after a call, so that the compiler makes it no jump */

/* ---- four ways to stand ---- */

static void APART waits_for_the_lock(void)
{
    pthread_mutex_lock(&locked);
    pthread_mutex_unlock(&locked);
    after++;
}
static void APART sleeps_long(void)
{
    struct timespec t = {5, 0};
    slept = nanosleep(&t, NULL);
    after++;
}
static void be_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}
static void APART turns_round(void)
{
    if (crowded >= 0) {
        be_on(crowded);
        if (last) assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}), 0);
        else assert_int_equal(setpriority(PRIO_PROCESS, (id_t)gettid(), NICE), 0);
    }
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) after++;
}
/* The thread never wakes. A thread that a look finds on the way to a processor does not count as hanging. */
static void APART hears_nothing(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    sem_wait(&over);
    after++;
}

struct way {
    const char *name;
    void (*stand)(void);
    const char *region; /* a name that says that the thread waits for others: it is not idle */
};
static const struct way ways[] = {{"locker", waits_for_the_lock, "a"},
                                  {"sleeper", sleeps_long, "barrier b"},
                                  {"spinner", turns_round, "spin"},
                                  {"deaf", hears_nothing, "barrier d"}};
enum { WAYS = sizeof ways / sizeof *ways };
static uint32_t tids[WAYS];
static pthread_barrier_t all_there;

static void *stand(void *which)
{
    const struct way *w = which;
    fdr_thread_name(w->name);
    pthread_setname_np(pthread_self(), w->name);
    fdr_region r = fdr_region_define(w->region, NULL, 0);
    pthread_barrier_wait(&all_there);
    fdr_enter(r);
    __atomic_store_n(&tids[w - ways], fdri_record_self.loc->tid, __ATOMIC_RELAXED);
    w->stand();
    fdr_leave(r);
    return NULL;
}

static void start(pthread_t *t, const char *watchdog)
{
    struct fdr_config c = death_config(death_place());
    c.watchdog = watchdog;
    c.disk = "1G";
    pthread_mutex_lock(&locked);
    sem_init(&over, 0, 0);
    pthread_barrier_init(&all_there, NULL, WAYS);
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < WAYS; i++) assert_int_equal(pthread_create(&t[i], NULL, stand, (void *)(uintptr_t)&ways[i]), 0);
}

static void await_snapshot(void)
{
    for (int i = 0; i < 6000 && !fdr_usage().snapshots; i++) usleep(5000);
    for (int i = 0; i < 6000 && !*fdr_last_snapshot(); i++) usleep(5000);
}

static void end(pthread_t *t)
{
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    sem_post(&over);
    pthread_mutex_unlock(&locked);
    for (int i = 0; i < WAYS; i++) pthread_join(t[i], NULL);
    fdr_finalize();
}

/* ---- one thread in the file ---- */

/* Finds the thread in the file and checks it; returns its number. */
static size_t thread_of(struct fdr_file *f, int way)
{
    const struct fdr_crash_thread_info *t;
    size_t n = fdr_crash_threads(f, &t);
    for (size_t i = 0; i < n; i++)
        if (t[i].tid == tids[way]) {
            assert_string_equal(t[i].name, ways[way].name);
            assert_true(t[i].answered);
            assert_true(t[i].pc && t[i].sp);
            return i;
        }
    fail_msg("%s is not there", ways[way].name);
    return 0;
}

/* Is a function of this program among its frames? A return address lies after the call in it. */
static bool has(struct fdr_file *f, size_t thread, void (*function)(void))
{
    const struct fdr_crash_frame *r;
    uint64_t from = (uint64_t)(uintptr_t)function;
    for (size_t i = 0, n = fdr_crash_frames(f, thread, &r); i < n; i++)
        if (r[i].address >= from && r[i].address < from + 400) return true;
    return false;
}

static void check_stacks(const char *path)
{
    struct fdr_file *f = NULL;
    char message[200] = "";
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    assert_string_equal(fdr_file_info(f)->reason_kind, "watchdog");
    for (int i = 0; i < WAYS; i++) {
        size_t n = thread_of(f, i);
        if (!has(f, n, ways[i].stand)) fail_msg("%s: its function is not on its stack", ways[i].name);
    }
    fdr_file_close(f);
}

static void P10_stacks_of_all_threads(void **state)
{
    (void)state;
    pthread_t t[WAYS];
    char path[512], recovered[600], message[200];
    struct stat st;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it delays signals until a thread waits, and gives the handler another context */
#endif
    start(t, "400ms");
    await_snapshot();
    snprintf(path, sizeof path, "%s", fdr_last_snapshot());
    check_stacks(path);
    assert_int_equal(stat(path, &st), 0);
    assert_true((uint64_t)st.st_size <= fdri_life_recording.arena.super->arena_bytes + 65536);
    struct sigaction now = {.sa_handler = SIG_IGN};
    for (int i = 0; i < 2000 && now.sa_handler != SIG_DFL; i++) { /* fdr may still ask a thread that hung later */
        assert_int_equal(sigaction(SIGURG, NULL, &now), 0);
        if (now.sa_handler != SIG_DFL) usleep(5000);
    }
    assert_true(now.sa_handler == SIG_DFL); /* fdr has restored the action */
    end(t);
    assert_int_equal(slept, 0); /* it slept for the whole time */

    struct fdr_file *f = NULL;
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    snprintf(recovered, sizeof recovered, "%.500s.recovered.fdr", path);
    assert_int_equal(fdr_file_recover(f, recovered, message, sizeof message), 0);
    fdr_file_close(f);
    check_stacks(recovered);
}

/* ---- a thread that hardly ever gets a processor ---- */

static void crowd(pid_t *others)
{
    for (int i = 0; i < OTHERS; i++) {
        if ((others[i] = fork())) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_on(crowded);
        for (;;) after++;
    }
}

static void disperse(const pid_t *others)
{
    for (int i = 0; i < OTHERS; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
}

static void choose_processor(void)
{
    cpu_set_t mine;
#if defined(__SANITIZE_THREAD__)
    skip(); /* as in the first test */
#endif
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    if (CPU_COUNT(&mine) < 2) skip(); /* the dumper would lack a processor, too */
    for (crowded = 0; !CPU_ISSET(crowded, &mine);) crowded++;
}

static void P10_thread_waiting_for_a_processor_is_awaited(void **state)
{
    (void)state;
    pthread_t t[WAYS];
    pid_t others[OTHERS];
    char path[512];
    choose_processor();
    crowd(others);
    stop = false;
    start(t, "400ms");
    await_snapshot();
    snprintf(path, sizeof path, "%s", fdr_last_snapshot());
    disperse(others);
    end(t);
    crowded = -1;
    check_stacks(path);
}

/* Also if a report takes longer than the time after which a thread hangs. */
static void P10_each_hang_is_reported_once(void **state)
{
    (void)state;
    pthread_t t[WAYS];
    pid_t others[OTHERS];
    choose_processor();
    crowd(others);
    last = true;
    stop = false;
    start(t, "400ms");
    await_snapshot();
    sleep(2); /* for a thread that began to hang later */
    uint64_t snapshots = fdr_usage().snapshots, later;
    sleep(5);
    later = fdr_usage().snapshots;
    disperse(others);
    end(t);
    last = false;
    crowded = -1;
    assert_int_equal(snapshots, later);
}

static void *idles(void *all_done)
{
    sem_wait(all_done);
    return NULL;
}

/* A snapshot has room for 256 stacks. Those of hanging threads are among them, whichever threads came first. */
static void P10_few_hanging_threads_among_many(void **state)
{
    enum { IDLE = 300 };
    (void)state;
    pthread_t t[WAYS], idle[IDLE];
    pthread_attr_t small;
    sem_t all_done;
    char before[512];
#if defined(__SANITIZE_THREAD__)
    skip(); /* as in the first test */
#endif
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    snprintf(before, sizeof before, "%s", fdr_last_snapshot());
    sem_init(&all_done, 0, 0);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (int i = 0; i < IDLE; i++) assert_int_equal(pthread_create(&idle[i], &small, idles, &all_done), 0);
    start(t, "1600ms"); /* all of them begin to hang within a quarter of that */
    for (int i = 0; i < 6000 && !strcmp(fdr_last_snapshot(), before); i++) usleep(5000);
    assert_string_not_equal(fdr_last_snapshot(), before);
    snprintf(before, sizeof before, "%s", fdr_last_snapshot());
    end(t);
    check_stacks(before);
    for (int i = 0; i < IDLE; i++) sem_post(&all_done);
    for (int i = 0; i < IDLE; i++) pthread_join(idle[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_stacks_of_all_threads), cmocka_unit_test(P10_thread_waiting_for_a_processor_is_awaited),
        cmocka_unit_test(P10_each_hang_is_reported_once), cmocka_unit_test(P10_few_hanging_threads_among_many)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
