/* SPDX-License-Identifier: MIT */
/* A process that dies: its signal handlers, and the bundle that they leave. Neighbours: snapshot/ for copying.
 * Two kinds of files:
 *
 *   at start, in a healthy process       on the fatal path: no allocation, no lock, no formatting
 *   crash_start.c    handlers            crash_handler.c          the handler: chain, save, raise again
 *   crash_context.c  command line, ...   crash_threads.c  registers and stacks of all threads
 *   alternate_stack.c    alternate stacks    crash_section.c  the section behind the arena
 *   bundle_descriptors.c    descriptors         stack_words.c          what is kept of a stack
 *                                        bundle_file.c         the file
 *                                        crash_epochs.c   epochs in it that moved while it was copied
 *
 * The second kind calls nothing but each other, base/system/syscall.h and what
 * tests/export/crash/test_crash_path_symbols.sh lists. */
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
    bool fault;         /* else a request to end: handled only where the default action stands */
    const char *reason; /* text of the superblock */
    bool installed;
    bool chained; /* fdr_handlers_chain() put us in front of `previous` */
    struct sigaction previous;
};
enum { FDRI_CRASH_SIGNALS = 10 };
/* In our flags where we are in front of one who was installed after us, and says nothing of other signals than SIGCHLD:
 * whoever puts back what it had found puts us back without it. */
enum { FDRI_CRASH_CHAINED = SA_NOCLDSTOP };
extern struct fdri_crash_signal fdri_crash_signals[FDRI_CRASH_SIGNALS];

/* std::exception_ptr: what was thrown. It is no plain value, so it is returned in memory, as whatever is large. */
struct fdri_crash_thrown {
    const void *object, *nothing[3];
};

struct fdri_crash {
    int pid;                  /* whose recording; 0: none */
    bool hidden;              /* children made without atfork handlers do not have the arena (crash_start.c) */
    int seen_by;              /* such a child that has a view of its own; 0: none */
    bool ended;               /* its bundle was left by exit or the like: no other one is */
    struct fdri_fd_kept file; /* an unnamed file in FDR_DIR */
    struct fdri_fd_kept spare[FDRI_CRASH_SPARE]; /* closed by the crash, which then has that many to open */
    char live_dir[512];
    char stem[FDRI_CRASH_STEM_MAX];            /* "NAME.HOST.PID[.rRANK]." */
    uint8_t context[FDRI_CRASH_CONTEXT_BYTES]; /* entries of the section that are known at start */
    uint32_t context_bytes, context_count;
    const void *const *abort_message; /* of the C library, or NULL */
    /* Of the C++ runtime, or NULL: the type of the exception that is being handled and what was thrown; how types with
     * one base begin; and those what() that may be called in a process that dies: the library's own. */
    void *(*exception_type)(void);
    struct fdri_crash_thrown (*current_exception)(void);
    const void *single_base, *what[FDRI_CRASH_WHATS];
    uint64_t abort_at, abort_bytes; /* code of abort(); 0 bytes: not known */
};
extern struct fdri_crash fdri_crash;

/* What is known of the death under way; written by the thread that got here first. */
struct fdri_crash_death {
    const struct fdri_crash_signal *signal;
    uint32_t tid;
    uint64_t until_ns; /* CLOCK_MONOTONIC: the deadline; atomic, 0: what stands above is not there yet */
    struct fdri_arena_crash_cause cause[8]; /* 0: of the death; one without a signal does not count */
    uint32_t causes;                        /* atomic */
};
extern struct fdri_crash_death fdri_crash_death;

/* ---- crash_handler.c ---- */
bool fdri_crash_dies(void);   /* of a signal, now: its file is being written, or was */
void fdri_crash_reset(void);  /* as if none had been left: one was, and the process went on */
void fdri_crash_forget(void); /* the same in a forked child: the thread that died is not there, either */
void fdri_crash_on_signal(int number, siginfo_t *info, void *context);
bool fdri_crash_catch(int number, bool chained); /* makes the handler above that of a signal */
/* crash_start.c; also in the handler */
bool fdri_crash_arena_visible_again(void);
/* The same for a process that calls exit, or is ended `by` something else that is no signal; it goes on. `context`:
 * where, as a signal would give it. */
bool fdri_crash_exit(const char *by, int status, const void *context);

/* ---- crash_threads.c ---- */
void fdri_crash_threads_maps(void); /* reads the memory map: where code and stacks are */
/* what the calling thread is to tell of when it is asked in a handler */
void fdri_crash_threads_fault(const void *context);
void fdri_crash_threads_self(const void *context); /* the calling thread's registers and stack */
void fdri_crash_threads_others(void);              /* asks all others, waits for a bounded time */
void fdri_crash_threads_add(void);                 /* entries for all of them */
void fdri_crash_threads_release(void);             /* those that answered go on */
void fdri_crash_threads_reset(void);
extern struct fdri_crash_maps fdri_crash_maps;

/* ---- crash_section.c ---- */
/* One that is being put together: memory of `room` bytes, aligned to 8. */
struct fdri_crash_section {
    uint8_t *bytes;
    uint32_t room, used, count;
};
void fdri_crash_section_open(struct fdri_crash_section *s);
/* One entry of up to three parts; false: no room. */
bool fdri_crash_section_put(struct fdri_crash_section *s, enum fdri_arena_crash_kind kind, const void *a,
                            uint32_t a_bytes, const void *b, uint32_t b_bytes, const void *c, uint32_t c_bytes);
void fdri_crash_section_close(struct fdri_crash_section *s); /* its header; nothing is put into it any more */
/* That of the crash. */
extern struct fdri_crash_section fdri_crash_section;
bool fdri_crash_section_add(enum fdri_arena_crash_kind kind, const void *a, uint32_t a_bytes, const void *b,
                            uint32_t b_bytes, const void *c, uint32_t c_bytes);
void fdri_crash_section_begin(void);
void fdri_crash_section_abort(void);
void fdri_crash_section_texts(void);
void fdri_crash_section_end(void);
/* Text of /proc/self/`path` as an entry. */
void fdri_crash_section_proc(const char *path);

/* ---- bundle_file.c ---- */
void fdri_crash_bundle_spend(void); /* the spare descriptors */
void fdri_crash_bundle_write(void);
/* Before the deadline. 0 or -errno. */
int fdri_crash_bundle_put(int fd, const void *from, uint64_t count, uint64_t off);
/* value in decimal, NUL behind it; returns the end. */
char *fdri_crash_decimal(char *to, uint64_t value);
char *fdri_crash_append(char *to, const char *end, const char *text);

/* ---- crash_epochs.c ---- */
/* A number that is another one when epochs have moved. */
uint64_t fdri_crash_epochs_changes(void);
/* Those of all locations once more into the copy fd, if they moved since there were so many changes. 0 or -errno. */
int fdri_crash_epochs_put(int fd, uint64_t changes);

/* ---- start ---- */
void fdri_crash_bundle_open(void);
void fdri_crash_bundle_close(void);
void fdri_crash_context(void);

#endif
