/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=600 promise=P3,P7
 * ctest: without=asan,tsan (kills at every store, also at theirs)
 * P3, P7: SIGKILL at every store of a thread in a full buffer. It attaches, claims bins, gives back bins of ended
 * threads and merges their accounts, rewinds, and ends. The file must be whole. Accounts and totals contain all
 * presented events except the one under way, and no invented ones. FDR_TEST_STEPS=N records longer. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/kill_at_every_store.h"

enum { THREADS = 32, STEPPED = 0 };

/* The events each thread presented; a marker has the thread's number in its upper half. */
static struct shared {
    volatile uint32_t tid, calls[THREADS], markers[THREADS], ends[THREADS], claimed, folded, rewound;
} * shared;

static struct plan {
    const char *strategy, *buffer, *bin;
    uint32_t sleepers, ended; /* threads that existed before, and the number of events each of them presented */
    uint32_t events, steps;
    bool rewinds;
} plan;

static void count(volatile uint32_t *n) { *n = *n + 1; }

/* Nested calls of several depths, with points between them. */
static void present(uint32_t thread, uint32_t events)
{
    uint32_t open[8], depth = 0, random = 12345 + thread;
    for (uint32_t i = 0; i < events || depth; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t dice = random >> 24;
        if (dice < 40) {
            fdr_marker(1, (uint64_t)thread << 32 | shared->markers[thread]);
            count(&shared->markers[thread]);
        } else if (i < events && depth < 8 && (dice < 140 || depth == 0)) {
            fdr_enter(open[depth++] = 1 + (random >> 12) % 5);
            count(&shared->calls[thread]);
        } else if (depth) {
            fdr_leave(open[--depth]);
            count(&shared->ends[thread]);
        }
        if (!plan.rewinds || thread != STEPPED) continue;
        if (i % 64 < 8) fdr_rewind_mark();
        else if (i % 64 >= 40) fdr_rewind();
    }
}

static pthread_barrier_t filled;
static void *sleeper(void *thread)
{
    present((uint32_t)(uintptr_t)thread, plan.events);
    pthread_barrier_wait(&filled);
    pause(); /* until it is killed */
    return NULL;
}
static void *brief(void *thread)
{
    present((uint32_t)(uintptr_t)thread, plan.events);
    return NULL;
}

/* Bins that other live threads hold, and the number of merged threads. */
static void others(uint32_t *held, uint32_t *folded)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    *held = *folded = 0;
    for (uint32_t off = a->super->location_first; off;) {
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        if (l->flags & FDRI_ARENA_LOCATION_ENDED) *folded += l->tid;
        else if (l->flags & FDRI_ARENA_LOCATION_LIVE && l != fdri_record_self.loc) *held += l->bins_held;
        off = l->next;
    }
}

static void *stepped(void *unused)
{
    uint32_t before, after, folded;
    others(&before, &folded);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    shared->tid = (uint32_t)syscall(SYS_gettid); /* last, because the reader of tid then waits for the traced thread */
    raise(SIGSTOP);
    present(STEPPED, plan.steps);
    others(&after, &folded);
    shared->claimed = before - after;
    shared->rewound = (uint32_t)fdr_usage().filtered;
    shared->folded = folded;
    return unused; /* the end of the thread is stepped through, too */
}

static _Noreturn void child(const struct fdr_config *config)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    pthread_t t;
    death_child();
    if (fdr_init(config)) _exit(1);
    for (int i = 0; i < 5; i++) fdr_region_define(names[i], NULL, 0);
    fdr_marker_define("m");
    pthread_barrier_init(&filled, NULL, plan.sleepers + 1);
    for (uintptr_t i = 1; i <= plan.ended; i++)
        if (pthread_create(&t, NULL, brief, (void *)i) || pthread_join(t, NULL)) _exit(2);
    for (uintptr_t i = 1; i <= plan.sleepers; i++)
        if (pthread_create(&t, NULL, sleeper, (void *)(plan.ended + i))) _exit(2);
    pthread_barrier_wait(&filled);
    if (pthread_create(&t, NULL, stepped, NULL)) _exit(2);
    for (;;) pause();
}

/* ---- checks of the file ---- */

/* Small buffers have no totals rows for markers. Totals count calls even when their memory is full. */
static const char *conserved(struct fdr_file *f)
{
    static char text[160];
    const struct fdr_ledger_row *row;
    const struct fdr_total *total;
    uint64_t calls = 0, ends = 0, presented = 0, totalled = 0;
    for (int i = 0; i < THREADS; i++) {
        calls += shared->calls[i] + shared->markers[i];
        ends += shared->ends[i];
    }
    presented = fdr_file_info(f)->lost_unattached;
    for (size_t n = fdr_ledger(f, &row), i = 0; i < n; i++) presented += row[i].presented;
    for (size_t n = fdr_totals(f, &total), i = 0; i < n; i++)
        if (total[i].class_ == FDR_IN_REGION) totalled += total[i].calls;
    snprintf(text, sizeof text, "%llu presented of %llu, %llu in the totals of %llu", (unsigned long long)presented,
             (unsigned long long)calls, (unsigned long long)totalled, (unsigned long long)ends);
    bool good = presented >= calls && presented <= calls + 1 && totalled >= ends && totalled <= ends + 1;
    return good ? NULL : text;
}

/* The markers are those of one thread, in order. */
static const char *nothing_invented(struct fdr_file *f)
{
    static char text[160];
    struct fdr_select markers = {.classes = 1u << FDR_IN_MARKER};
    struct fdr_iter *it = fdr_iter_open(f, &markers);
    struct fdr_read_event e;
    uint64_t next[THREADS] = {0};
    bool good = true;
    while (good && fdr_iter_next(it, &e)) {
        uint64_t thread = e.field[0] >> 32, number = e.field[0] & UINT32_MAX;
        good = thread < THREADS && number >= next[thread] && number <= shared->markers[thread];
        if (good) next[thread] = number + 1;
        else
            snprintf(text, sizeof text, "marker %llu of thread %llu", (unsigned long long)number,
                     (unsigned long long)thread);
    }
    fdr_iter_close(it);
    return good ? NULL : text;
}

static void look(const uint8_t *bytes, size_t size)
{
    struct fdr_file *f;
    char message[256] = "";
    if (fdr_file_open_memory(bytes, size, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    const char *wrong = death_check(f);
    if (!wrong) wrong = conserved(f);
    if (!wrong) wrong = nothing_invented(f);
    if (wrong) fail_msg("%s, after %u calls: %s", plan.strategy, shared->calls[STEPPED], wrong);
    fdr_file_close(f);
}

static void step_through(struct plan p)
{
    const struct death_place *place = death_place();
    struct fdr_config c = death_config(place);
    const char *wanted = getenv("FDR_TEST_STEPS");
    if (wanted) p.steps = (uint32_t)atoi(wanted);
    plan = p;
    c.strategy = p.strategy;
    c.buffer = p.buffer;
    c.bin = p.bin;
    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) child(&c);
    for (int i = 0; i < 60000 && !shared->tid && waitpid(pid, NULL, WNOHANG) == 0; i++) usleep(1000);
    assert_int_not_equal(shared->tid, 0);
    struct killed_run run = killed_at_every_store((pid_t)shared->tid, place->live, look);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (!run.traced) skip(); /* ptrace is not available here */
    print_message("%s: %llu instructions, %llu of them changed the arena; %u bins claimed, %u threads folded, %u "
                  "records rewound\n",
                  p.strategy, (unsigned long long)run.instructions, (unsigned long long)run.changes, shared->claimed,
                  shared->folded, shared->rewound);
    assert_int_equal(shared->calls[STEPPED], shared->ends[STEPPED]); /* the run was not cut short */
    assert_true((p.rewinds ? shared->rewound : p.sleepers ? shared->claimed : shared->folded) > 0);
}

static void P7_killed_at_every_store_of_claims(void **state)
{
    (void)state;
    step_through((struct plan){"telescope", "112K", "1K", .sleepers = 1, .events = 20000, .steps = 20});
    step_through((struct plan){"last", "112K", "1K", .sleepers = 1, .events = 20000, .steps = 30});
}
static void P7_killed_at_every_store_of_rewinds(void **state)
{
    (void)state;
    step_through((struct plan){"telescope", "128K", "1K", .ended = 1, .events = 20, .steps = 120, .rewinds = true});
    step_through((struct plan){"whole", "128K", "1K", .ended = 1, .events = 3000, .steps = 120, .rewinds = true});
}
static void P7_killed_at_every_store_of_folds(void **state)
{
    (void)state;
    step_through((struct plan){"telescope", "160K", "1K", .ended = 6, .events = 10000, .steps = 80});
    step_through((struct plan){"whole", "128K", "4K", .ended = 12, .events = 3000, .steps = 80});
}

static int begin(void **state)
{
    (void)state;
    setenv("FDR_SYMBOLS", "0", 1);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return (void *)shared == MAP_FAILED;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P7_killed_at_every_store_of_claims),
                                       cmocka_unit_test(P7_killed_at_every_store_of_rewinds),
                                       cmocka_unit_test(P7_killed_at_every_store_of_folds)};
    return cmocka_run_group_tests(tests, begin, death_place_leave);
}
