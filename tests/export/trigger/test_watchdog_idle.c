/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10 */
/* P10: the watchdog says nothing of threads that wait for work, however long: the threads of an idle server. It reports
 * threads that wait for a lock, by the name of the lock's holder, and waits in places where no thread waits usually. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "export/snapshot/snapshot.h"
#include "export/trigger/trigger.h"
#include "tests/support/observed_process.h"
#include "tests/support/wait_for_snapshots.h"

#include <fdr/reader.h>

static const uint64_t second = 1000000000u;
static uint64_t now;

/* A watchdog of one second. Only this thread looks, at times that it makes up. */
static void start(const char *ignore)
{
    snapshots_start((struct fdr_config){.name = "w", .watchdog_ignore = ignore});
    fdri_snapshot_view.watchdog_ns = second;
    fdri_trigger_watchdog_start();
    now = 1000 * second;
}

static void look(unsigned quarters)
{
    while (quarters--) fdri_trigger_watchdog_look(now += second / 4);
}

/* ---- threads that stand; `finish` ends their waits ---- */

enum way { CONDITION, TIMED_CONDITION, SEMAPHORE, EPOLL, ACCEPT, POLL, READ, SLEEP, JOIN, LOCK, TIMED_LOCK, RW_LOCK };
static pthread_mutex_t mutex, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw_held = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore, begun;
static bool finished;       /* guarded by mutex */
static int channel[2];      /* readable when finished */
static int server = -1;     /* accepts when finished */
static pthread_t first;     /* the thread to join */
static unsigned generation; /* guarded by mutex; work for threads of CONDITION */

static void wait_for_condition(const struct timespec *until)
{
    pthread_mutex_lock(&mutex);
    for (unsigned mine = generation; !finished && mine == generation;) {
        if (until) pthread_cond_timedwait(&condition, &mutex, until);
        else pthread_cond_wait(&condition, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static void wait_by(enum way way)
{
    struct timespec far = {4000000000, 0};
    struct epoll_event event = {.events = EPOLLIN};
    struct pollfd p = {.fd = channel[0], .events = POLLIN};
    char c;
    int e;
    switch (way) {
    case CONDITION: wait_for_condition(NULL); break;
    case TIMED_CONDITION: wait_for_condition(&far); break;
    case SEMAPHORE:
        while (sem_wait(&semaphore)) {}
        break;
    case EPOLL:
        e = epoll_create1(0);
        epoll_ctl(e, EPOLL_CTL_ADD, channel[0], &event);
        while (epoll_wait(e, &event, 1, -1) < 0) {}
        close(e);
        break;
    case ACCEPT: close(accept(server, NULL, NULL)); break;
    case POLL:
        while (poll(&p, 1, -1) < 0) {}
        break;
    case READ:
        while (read(channel[0], &c, 1) < 0) {}
        break;
    case SLEEP: nanosleep(&(struct timespec){5, 0}, NULL); break;
    case JOIN: pthread_join(first, NULL); break;
    case LOCK:
        pthread_mutex_lock(&held);
        pthread_mutex_unlock(&held);
        break;
    case TIMED_LOCK:
        if (!pthread_mutex_timedlock(&held, &far)) pthread_mutex_unlock(&held);
        break;
    case RW_LOCK:
        pthread_rwlock_rdlock(&rw_held);
        pthread_rwlock_unlock(&rw_held);
        break;
    }
}

static struct standing {
    enum way way;
    const char *region;
    unsigned calls; /* before it waits */
    pthread_t thread;
    pid_t tid; /* atomic */
} standing[32];
static size_t standing_count;

static void *stand(void *argument)
{
    struct standing *s = argument;
    fdr_region outer = fdr_region_define("outer", NULL, 0), call = fdr_region_define("call", NULL, 0);
    fdr_region inner = fdr_region_define(s->region, NULL, 0);
    prctl(PR_SET_NAME, "bio_close");
    fdr_enter(outer);
    for (unsigned i = 0; i < s->calls; i++) {
        fdr_enter(call);
        fdr_leave(call);
    }
    do {
        fdr_enter(inner);
        __atomic_store_n(&s->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
        sem_post(&begun);
        wait_by(s->way);
        fdr_leave(inner);
        pthread_mutex_lock(&mutex);
        bool over = finished || s->way != CONDITION;
        pthread_mutex_unlock(&mutex);
        if (over) break;
    } while (1);
    fdr_leave(outer);
    return NULL;
}

static void await_waits(void)
{
    while (sem_wait(&begun)) {}
    for (size_t i = 0; i < standing_count; i++)
        while (state_of(__atomic_load_n(&standing[i].tid, __ATOMIC_ACQUIRE)) != 'S') sleep_ms(1);
}

static void add(enum way way, const char *region, unsigned calls)
{
    struct standing *s = &standing[standing_count++];
    *s = (struct standing){.way = way, .region = region, .calls = calls};
    assert_int_equal(pthread_create(&s->thread, NULL, stand, s), 0);
    if (standing_count == 1) first = s->thread;
    await_waits();
}

static void prepare(const char *ignore)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX}; /* a name outside of the file system begins with 0 */
    finished = false;
    standing_count = 0;
    sem_init(&begun, 0, 0);
    sem_init(&semaphore, 0, 0);
    assert_int_equal(pipe(channel), 0);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "fdr-test-watchdog-idle-%d", (int)getpid());
    assert_int_equal(bind(server, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server, 4), 0);
    pthread_mutex_init(&mutex, NULL);
    pthread_mutex_lock(&held);
    pthread_rwlock_wrlock(&rw_held);
    start(ignore);
}

static void finish(void)
{
    pthread_mutex_lock(&mutex);
    finished = true;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < standing_count; i++) {
        sem_post(&semaphore);
        assert_int_equal(write(channel[1], "x", 1), 1);
    }
    shutdown(server, SHUT_RDWR);
    pthread_mutex_unlock(&held);
    pthread_rwlock_unlock(&rw_held);
    bool joined = standing[standing_count - 1].way == JOIN; /* the first one */
    for (size_t i = joined; i < standing_count; i++) pthread_join(standing[i].thread, NULL);
    close(channel[0]);
    close(channel[1]);
    close(server);
    forget_snapshots();
}

/* ---- */

static void P10_idle_server_raises_nothing(void **state)
{
    static const enum way ways[] = {CONDITION, CONDITION, TIMED_CONDITION, SEMAPHORE, EPOLL, ACCEPT,
                                    POLL,      READ,      SLEEP,           JOIN};
    (void)state;
    prepare(NULL);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) add(ways[i], "wait_for_work", 0);
    look(400);
    unsigned found = snapshots(NULL, 0);
    finish();
    assert_int_equal(found, 0);
}

/* They went to their place when they began, as idle threads do. */
static void P10_waits_for_locks_are_reported_with_the_holder(void **state)
{
    static const enum way ways[] = {LOCK, TIMED_LOCK, RW_LOCK};
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char path[600], message[256], holder[64];
        struct fdr_file *f = NULL;
        prepare(NULL);
        add(CONDITION, "wait_for_work", 0);
        add(ways[i], "work", 0);
        look(8);
        unsigned found = snapshots(path, sizeof path);
        assert_int_equal(found, 1);
        assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
        const char *why = fdr_file_info(f)->reason;
        snprintf(holder, sizeof holder, "for a lock of thread %d (", (int)getpid());
        bool known = ways[i] != RW_LOCK;
        if (!strstr(why, known ? holder : "for a lock, ") || !strstr(why, "; 1 idle")) fail_msg("'%s'", why);
        fdr_file_close(f);
        finish();
    }
}

/* pthread_cond_wait takes its mutex before it returns. A thread that cannot get it waits for a lock. */
static void P10_condition_that_waits_for_its_mutex_is_reported(void **state)
{
    (void)state;
    prepare(NULL);
    add(CONDITION, "wait_for_work", 0);
    look(20);
    unsigned idle = snapshots(NULL, 0);
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&condition);
    for (char text[64] = ""; !strstr(text, " 0x80 0x2 ");) { /* FUTEX_WAIT of a private futex, while it is 2 */
        char path[64];
        snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)standing[0].tid);
        FILE *f = fopen(path, "re");
        assert_non_null(f);
        if (!fgets(text, sizeof text, f)) *text = 0;
        fclose(f);
    }
    look(20);
    unsigned found = snapshots(NULL, 0);
    pthread_mutex_unlock(&mutex);
    finish();
    assert_int_equal(idle, 0);
    assert_int_equal(found, 1);
}

/* A thread that has worked, and waits where no thread has waited before, is reported; where it has waited three times
 * it is idle. */
static void P10_a_place_becomes_usual(void **state)
{
    unsigned found[4];
    (void)state;
    prepare(NULL);
    add(CONDITION, "wait_for_answer", 300);
    for (int i = 0; i < 4; i++) {
        look(8);
        found[i] = snapshots(NULL, 0);
        pthread_mutex_lock(&mutex);
        generation++;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
        await_waits();
    }
    finish();
    assert_int_equal(found[0], 1);
    assert_int_equal(found[3], found[2]);
}

/* Also in a new place, after the thread has worked. */
static void P10_a_long_sleep_is_idle(void **state)
{
    (void)state;
    prepare(NULL);
    add(SLEEP, "keep_house", 300);
    look(8);
    unsigned found = snapshots(NULL, 0);
    finish();
    assert_int_equal(found, 0);
}

static void P10_mpi_is_never_idle(void **state)
{
    (void)state;
    prepare(NULL);
    add(EPOLL, "MPI_Recv", 0);
    look(8);
    unsigned found = snapshots(NULL, 0);
    finish();
    assert_int_equal(found, 1);
}

static void P10_ignored_threads_raise_nothing(void **state)
{
    (void)state;
    prepare("timer,bio_*");
    add(LOCK, "work", 0);
    look(40);
    unsigned found = snapshots(NULL, 0);
    finish();
    assert_int_equal(found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_idle_server_raises_nothing),
                                       cmocka_unit_test(P10_waits_for_locks_are_reported_with_the_holder),
                                       cmocka_unit_test(P10_condition_that_waits_for_its_mutex_is_reported),
                                       cmocka_unit_test(P10_a_place_becomes_usual),
                                       cmocka_unit_test(P10_a_long_sleep_is_idle),
                                       cmocka_unit_test(P10_mpi_is_never_idle),
                                       cmocka_unit_test(P10_ignored_threads_raise_nothing)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
