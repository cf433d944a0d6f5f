/* SPDX-License-Identifier: MIT */
/* Leaves a function by longjmp out of a signal handler, at any chosen instruction: x86-64 can run step by step. Include
 * it after tests/support/api_fixture.h and put the test into #ifdef CAN_STEP. Elsewhere this file is the whole test and
 * skips it. */
#ifndef FDRI_TESTS_STEPS_H
#define FDRI_TESTS_STEPS_H
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define CAN_STEP 1
static sigjmp_buf steps_away;
static volatile uint32_t steps_until; /* instructions */

static void steps_at_each(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    /* the library blocks signals here, so no handler could run */
    if (sigismember(&((const ucontext_t *)context)->uc_sigmask, SIGUSR1)) return;
    if (steps_until && !--steps_until) siglongjmp(steps_away, 1);
}

static inline void steps_begin(void)
{
    sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = steps_at_each, .sa_flags = SA_SIGINFO}, NULL);
}
static inline void steps_on(void) { __asm__ volatile("pushfq\n orl $0x100, (%%rsp)\n popfq" : : : "memory", "cc"); }
static inline void steps_off(void) { __asm__ volatile("pushfq\n andl $~0x100, (%%rsp)\n popfq" : : : "memory", "cc"); }

/* Leaves f at instruction n. Returns false if f ended before. */
static inline bool leave_at(void (*f)(void), uint32_t n)
{
    steps_until = n;
    if (!sigsetjmp(steps_away, 1)) {
        steps_on();
        f();
        steps_off();
    }
    bool left = !steps_until;
    steps_until = 0;
    return left;
}

/* The next instruction to leave at: each of the first ones, in which the fast paths lie. Of longer paths some, 10 %
 * apart: the way to each of them costs as many signals as its number. */
static inline uint32_t instruction_after(uint32_t n, uint32_t each) { return n < each ? n + 1 : n + 1 + n / 10; }

/* Checks the bins. Bins in transit when f was left belong to no thread afterwards; the counts may still include
 * them. */
static inline void whole(uint32_t n)
{
    char text[160];
    const char *wrong = fdri_bins_check(&fdri_life_recording.arena, text, sizeof text);
    if (wrong && !strstr(wrong, "bins lost") && !strstr(wrong, "miscounted")) fail_msg("left at %u: %s", n, wrong);
}
#else
int main(void)
{
    printf("skipped: steps single instructions of x86-64, without sanitizers\n");
    return 77;
}
#endif
#endif
