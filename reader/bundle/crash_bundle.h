/* SPDX-License-Identifier: MIT */
/* The crash section of a bundle: cause, threads, stacks, texts; and notes.
 *
 *   crash_bundle.c  parses the section     bundle_frames.c, unwind_*.c  call stacks of its threads
 *   live_stacks.c   adds threads of a running process
 *
 * Neighbours: file/ below, symbol/ names the frames. */
#ifndef FDRI_READER_BUNDLE_CRASH_BUNDLE_H
#define FDRI_READER_BUNDLE_CRASH_BUNDLE_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/crash_section.h"
#include "reader/file/file.h"

struct fdri_file_definition;

struct fdri_bundle_thread {
    struct fdri_arena_crash_thread raw;
    uint64_t *registers, *word; /* stored registers and stack words; `raw` has their numbers, which may be any */
    uint32_t *place;            /* ascending distances from sp; bit 0: the word follows a call instruction */
    struct fdr_crash_frame *frame;
    size_t frame_count, frame_room;
    bool unwound;
    bool whole;  /* its frames reach to the thread's begin */
    bool beyond; /* the unwinder asked for memory beyond all stored words */
};
struct fdri_bundle_text {
    const char *name, *text;
    size_t bytes;
};
struct fdri_bundle {
    struct fdr_crash_cause_info *cause;
    size_t cause_count, cause_room;
    struct fdri_bundle_thread *thread;
    size_t thread_count, thread_room;
    struct fdr_crash_thread_info *info; /* parallel to `thread` */
    size_t info_room;
    struct fdri_bundle_text *text;
    size_t text_count, text_room;
    void *unwinder; /* of unwind_dw.c */
};

#define FDRI_BUNDLE_FRAMES_MAX 512u

/* Reads the stack word at this address. Returns false if it is not stored. */
bool fdri_bundle_word(const struct fdri_bundle_thread *t, uint64_t address, uint64_t *value);
/* Bytes of stack stored from sp on. If the file does not give them: up to the end of the last stored word. */
uint64_t fdri_bundle_kept_bytes(const struct fdri_bundle_thread *t);
/* Makes room for a frame. Returns NULL without memory or beyond FDRI_BUNDLE_FRAMES_MAX. */
struct fdr_crash_frame *fdri_bundle_frame(struct fdri_bundle_thread *t);
/* The module that covers the address, by the definitions; NULL: none. */
const struct fdri_file_definition *fdri_bundle_module_at(const struct fdr_file *f, uint64_t address);

/* ---- unwind_*.c ---- */
/* Finds the frames by the modules' unwind tables; none if that is impossible. */
void fdri_bundle_unwind(struct fdr_file *f, struct fdri_bundle_thread *t);
/* Adds the address as a frame with name, file and line, and the functions inlined there. `after`: it is a return
 * address. */
void fdri_bundle_frame_at(struct fdr_file *f, struct fdri_bundle_thread *t, uint64_t address, bool after, bool guessed);
/* Frees the unwinder. */
void fdri_bundle_unwind_end(struct fdri_bundle *b);

/* Adds a thread of a running process; `stack` has the `words` words from its sp on. The registers are those that the
 * kernel shows. False: out of memory. */
struct fdri_system_call;
bool fdri_bundle_add_live(struct fdr_file *f, uint32_t tid, const char *name, const struct fdri_system_call *place,
                          const uint64_t *stack, uint32_t words, bool cut);
/* Adds the text, which stays; false: out of memory. */
bool fdri_bundle_add_text(struct fdr_file *f, const char *name, const char *text);

/* Reads the notes. */
void fdri_bundle_notes(struct fdr_file *f);
/* Reads the crash section, if there is one, into f->bundle. */
void fdri_bundle_read(struct fdr_file *f);
void fdri_bundle_bytes_behind(struct fdr_file *f); /* reports bytes after the end of the recording */
void fdri_bundle_free(struct fdr_file *f);
#endif
