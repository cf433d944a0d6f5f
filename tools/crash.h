/* SPDX-License-Identifier: MIT */
/* fdr crash: crash.c decides who died first, crash_print.c tells it to people, crash_json.c to programs. */
#ifndef FDRI_TOOLS_CRASH_H
#define FDRI_TOOLS_CRASH_H

#include "tools/common/verbs.h"

enum { CRASH_EVENTS = 50 };

/* How a process ended, as its file tells. */
struct death {
    const char *path;
    struct fdr_file *file;
    enum { BY_FAULT, BY_REQUEST, KILLED, ALIVE, NO_DEATH, OVER } how; /* over: another file tells of it */
    uint64_t realtime_ns;                                             /* of the cause; else when it was seen last */
    bool first;                                                       /* died before the others */
    const char *told_by; /* a file that tells the same death, and is there; NULL: none */
};
/* Files of one recording of one process: a snapshot and another, a bundle and its copy. */
bool same_recording(const struct fdr_file_info *a, const struct fdr_file_info *b);

/* The one that went on longest: samples only where there is nothing else. NULL: there is none. */
const struct fdr_location_info *last_location(const struct fdr_file *file);
/* A thread that recorded and lived, of which fdr_crash_threads knows nothing: what it had open is all there is. */
bool is_without_stack(const struct fdr_file *file, const struct fdr_location_info *l);
/* "SIGSEGV: address not mapped, 0x8" */
const char *describe_cause(const struct fdr_file *file, const struct fdr_crash_cause_info *cause, char *text,
                           size_t bytes);
struct fdr_crash_cause_info main_cause(const struct fdr_file *file);
/* The exception that the bundle names was being handled when abort() was called. False: nobody caught it, or the stack
 * does not tell. */
bool exception_was_caught(struct fdr_file *file);
const char *signal_name(int number, char *text);
/* "SIGSEGV, SIGABRT": signals whose handlers were replaced after fdr's: a death of them leaves no bundle. "": none. */
const char *replaced_handlers(const struct fdr_file_info *info, char *text, size_t bytes);
/* What stays of an event when the reader has gone on: of a sample its address, not its path. */
struct past_event {
    struct fdr_read_event e;
    struct fdr_sample_path sample;
};
/* The newest events of a location, oldest of them first; how many. */
size_t newest_events(struct fdr_file *file, uint32_t location, uint64_t until_ns, struct past_event *event,
                     size_t most);

/* The call stack of a thread of fdr_crash_threads: a line for each frame, `most` that are not inlined. */
void print_frames(struct fdr_file *file, size_t thread, size_t most);
json_t *frames_json(struct fdr_file *file, size_t thread);
/* Callers of its last frame are missing: the stack was larger than what was kept of it. */
bool stack_is_cut(struct fdr_file *file, size_t thread);

int print_crash(const struct death *d);
json_t *crash_json(const struct death *d);
#endif
