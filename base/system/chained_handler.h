/* SPDX-License-Identifier: MIT */
/* The handlers that a signal had before ours, and passing it on to them. There may be several: who was installed in
 * front of ours, and stayed when ours went, is what ours finds the next time, and calls ours, which it had found
 * itself.
 *
 *   signal -> ours -> theirs -> ours -> what was there before */
#ifndef FDRI_BASE_SYSTEM_CHAINED_HANDLER_H
#define FDRI_BASE_SYSTEM_CHAINED_HANDLER_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { FDRI_SYSTEM_PREVIOUS_MOST = 4 };
struct fdri_system_previous {
    uint64_t handler[FDRI_SYSTEM_PREVIOUS_MOST]; /* atomic: one word each, so that a handler reads a whole one */
    uint32_t count;                              /* atomic: the last of them is what ours found when it was installed */
    int number;                                  /* of the signal */
    struct sigaction action[FDRI_SYSTEM_PREVIOUS_MOST]; /* for who puts them back */
};

/* Puts `ours` in its place. One at a time. */
bool fdri_system_previous_install(struct fdri_system_previous *p, int number, const struct sigaction *ours);
/* Is this one of ours, with three arguments, what the signal calls now? */
bool fdri_system_previous_ours(int number, void (*ours)(int, siginfo_t *, void *));
/* Puts back what was there, where ours is still what the signal calls; else it stays, and passes on. */
void fdri_system_previous_restore(struct fdri_system_previous *p, int number, void (*ours)(int, siginfo_t *, void *));
/* Would ours pass the signal on to a handler? */
bool fdri_system_previous_any(const struct fdri_system_previous *p);

/* In our handler. Async-signal-safe. */
/* Is it called by a handler that this thread is passing the signal on to? `code`: where ours returns to. */
bool fdri_system_previous_gives_back(int number, const void *code);
void fdri_system_previous_pass(const struct fdri_system_previous *p, bool given_back, int number, siginfo_t *info,
                               void *context);
#endif
