/* SPDX-License-Identifier: MIT */
/* A process that dies: its signal handlers, and the bundle that they leave. Neighbour: snapshot/, for copying.
 * Two kinds of files:
 *
 *   at start, in a healthy process         on the fatal path: no allocation, no lock, no formatting
 *   crash_start.c         handlers         crash_handler.c     the handler: cause, save, raise again
 *   signal_functions.c    sigaction        program_handlers.c  the program's own handlers, called first
 *   crash_context.c       command line     program_actions.c   which these are, with FDR_CRASH=first
 *   alternate_stack.c     signal stacks    crash_threads.c     registers and stacks of all threads
 *   bundle_descriptors.c  descriptors      crash_section.c     the section behind the arena
 *                                          stack_words.c       the stored words of a stack
 *                                          bundle_file.c       the file; removal of the live file
 *   bundle_room.c  room for a bundle       crash_epochs.c, fingerprint.c
 *
 * Files of the second kind call each other, base/system/syscall.h, and the functions listed in
 * tests/export/crash/test_crash_path_symbols.sh; nothing else. */
#ifndef FDRI_EXPORT_CRASH_CRASH_PATH_H
#define FDRI_EXPORT_CRASH_CRASH_PATH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/fd/kept_open.h"
#include "export/crash/stack_words.h"
#include "export/view.h"
#include "format/arena/crash_section.h"

enum { FDRI_CRASH_STEM_MAX = 288, FDRI_CRASH_CONTEXT_BYTES = 16384, FDRI_CRASH_SPARE = 2, FDRI_CRASH_WHATS = 12 };

struct fdri_crash_signal {
    int number;
    bool fault;         /* a fault; else a request to end, handled only where the default action is installed */
    const char *reason; /* text of the superblock */
    bool installed;
    bool chained; /* fdr_handlers_chain() put our handler in front of `previous` */
    struct sigaction previous;
};
enum { FDRI_CRASH_SIGNALS = 10 };
/* A mark in sa_flags of a handler that fdr_handlers_chain() put in front. For signals other than SIGCHLD the flag means
 * nothing. A program that later puts back the action it had found puts fdr's handler back without this mark. */
enum { FDRI_CRASH_CHAINED = SA_NOCLDSTOP };
extern struct fdri_crash_signal fdri_crash_signals[FDRI_CRASH_SIGNALS];

/* std::exception_ptr: the thrown object. It is not trivially copyable, so the ABI returns it in memory, as it does with
 * this large struct. */
struct fdri_crash_thrown {
    const void *object, *unused[3];
};

struct fdri_crash {
    int pid;                  /* of the recording process; 0: none */
    bool arena_hidden;        /* the arena is not mapped in children made without atfork handlers (crash_start.c) */
    int child_with_view;      /* pid of such a child that mapped a private view; 0: none */
    bool exit_bundle_left;    /* exit or the like left the bundle; a second one is not written */
    struct fdri_fd_kept file; /* an unnamed file in FDR_DIR */
    struct fdri_fd_kept spare[FDRI_CRASH_SPARE]; /* the crash closes these, so it can open as many files */
    char live_dir[512];
    char stem[FDRI_CRASH_STEM_MAX];            /* "NAME.HOST.PID[.rRANK]." */
    uint8_t context[FDRI_CRASH_CONTEXT_BYTES]; /* entries of the section that are known at start */
    uint32_t context_bytes, context_count;
    const void *const *abort_message; /* of the C library, or NULL */
    /* Of the C++ runtime, or NULL. Functions for the type of the exception being handled and for the thrown object. The
     * start of type_infos with one base. The library's own what() functions. Only those are safe to call in a dying
     * process. */
    void *(*exception_type)(void);
    struct fdri_crash_thrown (*current_exception)(void);
    const void *single_base, *what_function[FDRI_CRASH_WHATS];
    uint64_t abort_at, abort_bytes; /* code of abort(); 0 bytes: unknown */
};
extern struct fdri_crash fdri_crash;

/* The death under way; the first dying thread writes it. */
struct fdri_crash_death {
    const struct fdri_crash_signal *signal;
    uint32_t tid;
    uint64_t deadline_ns; /* deadline, CLOCK_MONOTONIC; atomic; 0: the fields above are not valid yet */
    struct fdri_arena_crash_cause cause[8]; /* [0]: the death's own; entries without a signal do not count */
    uint32_t cause_count;                   /* atomic */
};
extern struct fdri_crash_death fdri_crash_death;

/* ---- crash_handler.c ---- */
/* True if a signal is ending the process: its bundle is being written, or was. */
bool fdri_crash_dies(void);
/* Reset the death: a bundle was left and the process went on; in a forked child, without the dying thread. */
void fdri_crash_reset(void);
void fdri_crash_forget(void);
void fdri_crash_on_signal(int number, siginfo_t *info, void *context);
/* Installs fdri_crash_on_signal for a signal; chained: with the mark FDRI_CRASH_CHAINED. False: it failed. */
bool fdri_crash_catch(int number, bool chained);
/* crash_start.c; the handler calls it, too */
bool fdri_crash_arena_visible_again(void);
/* Leaves a bundle of a process that calls exit or ends by the call named `by`, not by a signal; the process goes on.
 * `context`: registers of the call, as a signal handler gets them. */
bool fdri_crash_exit(const char *by, int status, const void *context);

/* ---- crash_threads.c ---- */
void fdri_crash_threads_maps(void); /* reads the memory map: ranges of code and of stacks */
/* Sets the context of the fault; the calling thread reports it if another dying thread asks it from within a
 * handler. */
void fdri_crash_threads_fault(const void *context);
void fdri_crash_threads_self(const void *context); /* the calling thread's registers and stack */
void fdri_crash_threads_others(void);              /* asks all other threads, waits for a bounded time */
void fdri_crash_threads_add(void);                 /* adds entries for all of them to the section */
void fdri_crash_threads_release(void);             /* lets the threads that answered go on */
void fdri_crash_threads_reset(void);
extern struct fdri_crash_maps fdri_crash_maps;

/* ---- crash_section.c ---- */
/* A section under construction, in `room` bytes of memory, aligned to 8. */
struct fdri_crash_section {
    uint8_t *bytes;
    uint32_t room, used, count;
};
void fdri_crash_section_open(struct fdri_crash_section *s);
/* Appends one entry, made of up to three parts; false: no room. */
bool fdri_crash_section_put(struct fdri_crash_section *s, enum fdri_arena_crash_kind kind, const void *a,
                            uint32_t a_bytes, const void *b, uint32_t b_bytes, const void *c, uint32_t c_bytes);
void fdri_crash_section_close(struct fdri_crash_section *s); /* writes its header; no entry may follow */
/* The section of the crash. */
extern struct fdri_crash_section fdri_crash_section;
bool fdri_crash_section_add(enum fdri_arena_crash_kind kind, const void *a, uint32_t a_bytes, const void *b,
                            uint32_t b_bytes, const void *c, uint32_t c_bytes);
void fdri_crash_section_begin(void);
void fdri_crash_section_abort(void);
void fdri_crash_section_texts(void);
void fdri_crash_section_end(void);
/* Adds the text of /proc/self/`path` as an entry. */
void fdri_crash_section_proc(const char *path);

/* ---- bundle_file.c ---- */
void fdri_crash_bundle_spend(void); /* closes the spare descriptors */
void fdri_crash_bundle_write(void);
/* Writes `count` bytes at `off`; gives up at the deadline. 0 or -errno. */
int fdri_crash_bundle_put(int fd, const void *from, uint64_t count, uint64_t off);
/* Writes value in decimal and a NUL; returns the place of the NUL. */
char *fdri_crash_decimal(char *to, uint64_t value);
char *fdri_crash_append(char *to, const char *end, const char *text);

/* ---- crash_epochs.c ---- */
/* A number that changes whenever epochs move. */
uint64_t fdri_crash_epochs_changes(void);
/* Writes the epochs of all locations into the copy fd again, unless fdri_crash_epochs_changes() is still `changes`. 0
 * or -errno. */
int fdri_crash_epochs_put(int fd, uint64_t changes);

/* ---- start ---- */
void fdri_crash_bundle_open(void);
void fdri_crash_bundle_close(void);
void fdri_crash_context(void);

#endif
