/* SPDX-License-Identifier: MIT */
/* Leaves a function by longjmp out of a signal handler, at an instruction of one's choice: x86-64 steps one by one.
 * Behind tests/support/api_fixture.h. Where nothing can be stepped this is the whole test, and skips it; the rest
 * stands in #ifdef CAN_STEP. */
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
    /* the library lets no handler in here */
    if (sigismember(&((const ucontext_t *)context)->uc_sigmask, SIGUSR1)) return;
    if (steps_until && !--steps_until) siglongjmp(steps_away, 1);
}

static inline void steps_begin(void)
{
    sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = steps_at_each, .sa_flags = SA_SIGINFO}, NULL);
}
static inline void steps_on(void) { __asm__ volatile("pushfq\n orl $0x100, (%%rsp)\n popfq" : : : "memory", "cc"); }
static inline void steps_off(void) { __asm__ volatile("pushfq\n andl $~0x100, (%%rsp)\n popfq" : : : "memory", "cc"); }

/* Leaves f at instruction n; false: it has no more than that. */
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

/* Bins on their way when it was left are nobody's from then on, though counted by their partition or as free still. */
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
