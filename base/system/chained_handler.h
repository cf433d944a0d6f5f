/* SPDX-License-Identifier: MIT */
/* The handlers that a signal had before fdr's, and passing the signal on to them. There may be several. Suppose another
 * library replaced fdr's handler, and remained when fdr removed its own. The next installation finds that library's
 * handler, which passes the signal on to fdr's:
 *
 *   signal -> fdr's handler -> the library's -> fdr's handler -> the handler before both */
#ifndef FDRI_BASE_SYSTEM_CHAINED_HANDLER_H
#define FDRI_BASE_SYSTEM_CHAINED_HANDLER_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { FDRI_SYSTEM_PREVIOUS_MOST = 4 };
struct fdri_system_previous {
    uint64_t handler[FDRI_SYSTEM_PREVIOUS_MOST]; /* atomic, one word each, so that a handler never reads half of one */
    uint32_t count;                              /* atomic: the newest installation found the last of them */
    int number;                                  /* of the signal */
    struct sigaction action[FDRI_SYSTEM_PREVIOUS_MOST]; /* the same handlers, to be put back */
};

/* Installs `ours` and adds the handler that it finds to *p. One thread at a time. False: sigaction failed. */
bool fdri_system_previous_install(struct fdri_system_previous *p, int number, const struct sigaction *ours);
/* True if the signal calls `ours` now; a handler of fdr has three arguments. */
bool fdri_system_previous_ours(int number, void (*ours)(int, siginfo_t *, void *));
/* Puts the previous handler back if the signal still calls `ours`. Otherwise `ours` stays and passes signals on. */
void fdri_system_previous_restore(struct fdri_system_previous *p, int number, void (*ours)(int, siginfo_t *, void *));
/* True if `ours` would pass the signal on to a handler. */
bool fdri_system_previous_any(const struct fdri_system_previous *p);

/* For fdr's handler. Async-signal-safe. */
/* True if fdr's handler was called by a handler to which this thread is passing the signal on. `code`: the return
 * address of fdr's handler. */
bool fdri_system_previous_gives_back(int number, const void *code);
void fdri_system_previous_pass(const struct fdri_system_previous *p, bool given_back, int number, siginfo_t *info,
                               void *context);
#endif
