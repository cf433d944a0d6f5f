/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P8
 * P8: the open calls of a thread, read from outside, are calls that were open together, whatever the thread does
 * meanwhile. The reader runs in steps, and at any of its instructions a handler moves the stack. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>
#include <fdr/fdr.h>

#include "recorder/record/sample_stream.h"
#include "sampler/samples/samples_view.h"

enum { DEPTH = 5, KINDS = 2, NO_MOVE = 0 };

static fdr_region region[DEPTH + 3][KINDS];
static struct fdr_sampled *stream;
static uint32_t tid;
static sem_t came, go_on;

/* ---- the thread: a stack of DEPTH calls, and moves that change it ---- */

static void enter(unsigned depth, unsigned kind) { fdr_enter(region[depth][kind]); }
static void leave(unsigned depth, unsigned kind) { fdr_leave(region[depth][kind]); }

enum { OTHER_LEAF = 1, OTHER_BRANCH, DEEPER, UP, ABOVE, BACK, MOVES = UP };

static void make_move(int what)
{
    static unsigned above;
    switch (what) {
    case OTHER_LEAF: /* the innermost call ends, and another begins */
        leave(DEPTH, 0);
        enter(DEPTH, 1);
        break;
    case OTHER_BRANCH:
        leave(DEPTH, 0), leave(DEPTH - 1, 0), leave(DEPTH - 2, 0);
        enter(DEPTH - 2, 1), enter(DEPTH - 1, 1), enter(DEPTH, 1);
        break;
    case DEEPER: /* a call begins and ends: the stack is as before */
        enter(DEPTH + 1, 1);
        leave(DEPTH + 1, 1);
        break;
    case UP: leave(DEPTH, 0), leave(DEPTH - 1, 0); break;
    case ABOVE: enter(DEPTH + 1, 0), above = 1; break;
    case BACK:
        if (above) leave(DEPTH + 1, 0);
        above = 0;
        fdr_leave(region[1][0]); /* closes all inside */
        for (unsigned d = 1; d <= DEPTH; d++) enter(d, 0);
        break;
    default: break;
    }
}

static pthread_t none;

/* Begins a recording; `body` is the thread to read, which posts `came`. NULL: it is this thread. */
static pthread_t begin(void *(*body)(void *))
{
    struct fdr_config c = {.size = sizeof c, .arena = "anonymous", .buffer = "8M", .signal = "none"};
    pthread_t t = none;
    assert_int_equal(fdr_init(&c), 0);
    for (unsigned d = 1; d < DEPTH + 3; d++)
        for (unsigned k = 0; k < KINDS; k++) {
            char name[20];
            snprintf(name, sizeof name, "depth %u %u", d, k);
            region[d][k] = fdr_region_define(name, "test", d);
        }
    sem_init(&came, 0, 0);
    sem_init(&go_on, 0, 0);
    tid = (uint32_t)gettid();
    for (unsigned d = 1; !body && d <= DEPTH; d++) enter(d, 0);
    if (body) assert_int_equal(pthread_create(&t, NULL, body, NULL), 0);
    if (body) sem_wait(&came);
    assert_non_null(stream = fdr_sampled_open(tid, "read", FDR_BY_WALL_TIME, 1000000));
    return t;
}

/* ---- what is read ---- */

/* The stack after a move, as kinds by depth. Returns its depth. */
static unsigned expected(int what, unsigned kind[DEPTH + 2])
{
    memset(kind, 0, (DEPTH + 2) * sizeof *kind);
    if (what == OTHER_LEAF) kind[DEPTH] = 1;
    if (what == OTHER_BRANCH) kind[DEPTH - 2] = kind[DEPTH - 1] = kind[DEPTH] = 1;
    return what == UP ? DEPTH - 2 : what == ABOVE ? DEPTH + 1 : DEPTH;
}

/* True: the calls are the outermost ones of this stack, and all of it if they are said to be. */
static bool is_stack_after(const struct fdri_samples_open_calls *c, int what)
{
    unsigned kind[DEPTH + 2], depth = expected(what, kind);
    if (c->count > depth || (c->whole && c->count != depth)) return false;
    for (unsigned d = 1; d <= c->count; d++)
        if (c->region[d - 1] != region[d][kind[d]]) return false;
    return true;
}

static void quiet_thread_is_read_whole(void **state)
{
    static struct fdri_samples_open_calls c, again;
    (void)state;
    begin(NULL);
    for (int what = 0; what <= ABOVE; what++) {
        make_move(what);
        fdri_record_open_calls(stream, &c);
        assert_true(c.known && c.whole && !c.cut && is_stack_after(&c, what));
        assert_int_equal(c.depth, c.count);
        fdri_record_open_calls(stream, &again);
        assert_true(again.tick == c.tick && again.made == c.made && again.depth == c.depth);
        make_move(BACK);
        fdri_record_open_calls(stream, &again); /* no move is unseen, even one that leaves the stack as it was */
        assert_true(again.tick != c.tick);
    }
    fdr_finalize();
}

static void *enters(void *unused)
{
    tid = (uint32_t)gettid();
    FDR_REGION("in the thread")
    {
        sem_post(&came);
        sem_wait(&go_on);
    }
    return unused;
}

static void ended_thread_is_unknown(void **state)
{
    static struct fdri_samples_open_calls c;
    (void)state;
    pthread_t t = begin(enters);
    fdri_record_open_calls(stream, &c);
    assert_true(c.known && c.count == 1);
    sem_post(&go_on);
    pthread_join(t, NULL);
    fdri_record_open_calls(stream, &c);
    assert_true(!c.known && c.count == 0);
    struct fdr_sampled *silent = fdr_sampled_open(1, "never recorded", FDR_BY_WALL_TIME, 1000000);
    fdri_record_open_calls(silent, &c);
    assert_true(!c.known && c.count == 0);
    fdr_finalize();
}

/* ---- at each instruction ---- */

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static volatile uint32_t steps_left;
static volatile int then_move;

static void at_each(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (!steps_left || --steps_left) return;
    make_move(then_move);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100; /* the rest at full speed */
}
static void step_on(void) { __asm__ volatile("pushfq\n orl $0x100, (%%rsp)\n popfq" : : : "memory", "cc"); }
static void step_off(void) { __asm__ volatile("pushfq\n andl $~0x100, (%%rsp)\n popfq" : : : "memory", "cc"); }

/* Reads while the stack moves at instruction n. False: the reading was over before. */
static bool read_with_move(struct fdri_samples_open_calls *c, int what, uint32_t n)
{
    then_move = what;
    steps_left = n;
    step_on();
    fdri_record_open_calls(stream, c);
    step_off();
    bool moved = !steps_left;
    steps_left = 0;
    return moved;
}

static void P8_no_torn_stack_at_any_instruction(void **state)
{
    static struct fdri_samples_open_calls c;
    uint32_t tried = 0, not_whole = 0, prefixes = 0;
    (void)state;
    begin(NULL);
    sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = at_each, .sa_flags = SA_SIGINFO}, NULL);
    for (int what = 1; what <= ABOVE; what++)
        for (uint32_t n = (uint32_t)what;; n += 4) { /* together the moves come at each instruction */
            make_move(BACK);
            bool moved = read_with_move(&c, what, n);
            if (!moved) break;
            tried++;
            if (!c.known || (!is_stack_after(&c, NO_MOVE) && !is_stack_after(&c, what)))
                fail_msg("move %d at instruction %u: %u calls, depth %u, whole %d", what, n, c.count, c.depth, c.whole);
            not_whole += !c.whole;
            prefixes += !c.whole && c.count;
        }
    assert_true(tried > 500 && not_whole > 100 && prefixes > 0); /* the race did happen */
    fdr_finalize();
}
#else
static void P8_no_torn_stack_at_any_instruction(void **state)
{
    (void)state;
    print_message("stepping single instructions needs x86-64, without sanitizers\n");
    skip();
}
#endif

/* ---- at full speed ---- */

static bool over; /* atomic */

/* Calls whose kind is that of the call outside, so that mixed kinds would be a torn stack. */
static void *runs(void *unused)
{
    uint64_t random = 88172645463325252u;
    tid = (uint32_t)gettid();
    FDR_REGION("first") {}
    sem_post(&came);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        unsigned kind = random & 1, depth = 1 + (random >> 8) % DEPTH;
        for (unsigned d = 1; d <= depth; d++) enter(d, kind);
        for (unsigned d = depth; d >= 1; d--) leave(d, kind);
    }
    return unused;
}

static void P8_no_torn_stack_at_full_speed(void **state)
{
    static struct fdri_samples_open_calls c;
    (void)state;
    over = false;
    pthread_t t = begin(runs);
    for (int i = 0; i < 100000; i++) {
        fdri_record_open_calls(stream, &c);
        assert_true(c.known && c.count <= DEPTH);
        for (unsigned d = 1; d <= c.count; d++) {
            unsigned kind = c.region[0] == region[1][1];
            if (c.region[d - 1] != region[d][kind]) fail_msg("depth %u has region %u", d, c.region[d - 1]);
        }
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_thread_is_read_whole), cmocka_unit_test(ended_thread_is_unknown),
        cmocka_unit_test(P8_no_torn_stack_at_any_instruction), cmocka_unit_test(P8_no_torn_stack_at_full_speed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
