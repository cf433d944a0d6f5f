/* SPDX-License-Identifier: MIT */
/* The crash section, which a fatal signal adds behind the arena (at arena_bytes) instead of a snapshot's tail. It has a
 * header, then entries at multiples of 8. It stores registers. Of each stack it stores only words that are addresses of
 * code or of the same stack, with their places: enough to unwind offline. docs/FORMAT.md, section 15. */
#ifndef FDRI_FORMAT_ARENA_CRASH_SECTION_H
#define FDRI_FORMAT_ARENA_CRASH_SECTION_H

#include <assert.h>
#include <stdint.h>

#define FDRI_ARENA_CRASH_MAGIC     0x48535243u /* "CRSH" */
#define FDRI_ARENA_CRASH_MAX_BYTES (1u << 20)  /* of the section */

struct fdri_arena_crash {
    uint32_t magic;
    uint32_t count; /* entries that follow */
    uint64_t bytes; /* of the whole section, with this header */
    uint64_t check; /* the running check of FORMAT.md 9.6 over the 8-byte words of the entries */
    uint64_t reserved;
};
static_assert(sizeof(struct fdri_arena_crash) == 32, "crash section");

enum fdri_arena_crash_kind { FDRI_ARENA_CRASH_CAUSE = 1, FDRI_ARENA_CRASH_THREAD, FDRI_ARENA_CRASH_TEXT };
struct fdri_arena_crash_entry {
    uint32_t kind;  /* enum fdri_arena_crash_kind */
    uint32_t bytes; /* of the contents that follow, without padding to 8 */
};
static_assert(sizeof(struct fdri_arena_crash_entry) == 8, "crash entry");

/* One entry for each signal that fdr saw; the first is the signal of which the process died. */
struct fdri_arena_crash_cause {
    int32_t signal;
    int32_t code;  /* si_code */
    int32_t error; /* si_errno */
    uint32_t tid;  /* the thread to which it was delivered */
    uint64_t addr; /* si_addr; 0 for a sent signal */
    uint64_t tick; /* full ticks of the recording's clock */
    uint64_t realtime_ns;
    uint32_t sender_pid; /* of a sent signal */
    uint32_t sender_uid;
    uint32_t flags; /* enum fdri_arena_crash_cause_flags */
    uint32_t reserved;
};
static_assert(sizeof(struct fdri_arena_crash_cause) == 56, "crash cause");
enum fdri_arena_crash_cause_flags {
    FDRI_ARENA_CAUSE_SENT = 1,   /* sent by kill, raise, ..., and not raised by an instruction */
    FDRI_ARENA_CAUSE_ALSO = 2,   /* of another thread, while the first was being handled */
    FDRI_ARENA_CAUSE_BEFORE = 4, /* the application's handler had it, and then ended the process */
    FDRI_ARENA_CAUSE_HANDLER = 8 /* a fault in the crash handler, which went on after it */
};

/* Followed by registers (8 bytes each), then words (8 bytes each), then the words' places (4 bytes each). Bits 3..31 of
 * a place are the distance from `sp` in bytes; bit 0 says that a call instruction stands before the address. */
struct fdri_arena_crash_thread {
    uint32_t tid;
    uint32_t flags; /* enum fdri_arena_crash_thread_flags */
    uint64_t sp, pc, fp;
    uint64_t stack_end; /* end of the mapping that contains sp; 0: none does */
    uint32_t machine;   /* ELF number: 62 x86-64, 183 aarch64 */
    uint32_t registers;
    uint32_t words;
    uint32_t scanned_bytes; /* bytes of the stack, from sp on, whose words are here; 0: unknown */
    char name[16];
};
static_assert(sizeof(struct fdri_arena_crash_thread) == 72, "crash thread");
enum fdri_arena_crash_thread_flags {
    FDRI_ARENA_THREAD_FAULTING = 1, /* the thread of the first cause */
    FDRI_ARENA_THREAD_ANSWERED = 2, /* registers and words are present */
    FDRI_ARENA_THREAD_CUT = 4,      /* the stack had more words than are stored */
    FDRI_ARENA_THREAD_PLACE = 8     /* only sp and pc of its registers are known; others are 0 */
};

/* Text: a name, NUL, then the text up to the end of the entry. The names are "cmdline" (NUL between arguments),
 * "environment" (lines), "uname", "abort" (the C library's message) and "exception" (type, mangled). Others are the
 * paths of files of /proc/self: "status", "limits", "maps", "task/TID/stat", ... */
#endif
