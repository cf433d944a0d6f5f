/* SPDX-License-Identifier: MIT */
/* Deaths in files. crash.c says how a process ended and which was the first. crash_print.c prints a death for people,
 * crash_json.c for programs, thread_lines.c its threads. The verb is in deaths/. */
#ifndef FDRI_TOOLS_CRASH_H
#define FDRI_TOOLS_CRASH_H

#include "tools/common/job_files.h"
#include "tools/common/verbs.h"

enum { CRASH_EVENTS = 50 };

/* The end of a process, as its file shows it. */
struct death {
    const char *path;
    struct fdr_file *file;
    /* OVER: the process needed the live file no more; another file shows its end */
    enum { BY_FAULT, BY_REQUEST, KILLED, ALIVE, NO_DEATH, UNNEEDED_LIVE_FILE } kind;
    /* of the cause; without one: of the last event */
    uint64_t realtime_ns;
    bool first;          /* died before the others */
    const char *seen_by; /* another file of the same death; NULL: none */
};
/* Opens all that can be opened, and frees the list; a file that cannot costs one line. NULL: out of memory. The caller
 * closes the files and frees the rows. */
struct death *open_deaths(struct file_list *list, size_t *count, int *status);
/* The first death: the first fault, as faults cause other deaths, unless a killed process was gone before it. Without a
 * fault: a killed process last seen before the first request to end; else the process with the first request. NULL:
 * none died. */
struct death *first_of(struct death *d, size_t count);
/* True if this process may have died before `first`, a killed one. Signs of life come each second, and do not order
 * deaths that nobody saw. True for `first` itself. */
bool may_be_first(const struct death *d, const struct death *first);
/* True for files of one recording of one process: two snapshots, or a bundle and its copy. */
bool same_recording(const struct fdr_file_info *a, const struct fdr_file_info *b);

/* The location with the newest event; a location of samples only if there is no other. NULL: none. */
const struct fdr_location_info *last_location(const struct fdr_file *file);
/* True for a live recording thread without an entry in fdr_crash_threads: its open calls are all there is. */
bool is_without_stack(const struct fdr_file *file, const struct fdr_location_info *l);
/* "SIGSEGV: address not mapped, 0x8" */
const char *describe_cause(const struct fdr_file *file, const struct fdr_crash_cause_info *cause, char *text,
                           size_t bytes);
struct fdr_crash_cause_info main_cause(const struct fdr_file *file);
/* SIGTERM and the like: others asked the process to end. */
bool is_request_to_end(int signal);
/* True if the exception that the bundle names was being handled when abort() was called. False: it was not caught, or
 * the stack does not show it. */
bool exception_was_caught(struct fdr_file *file);
const char *signal_name(int number, char *text);
/* An event that stays valid when the reader goes on. Of a sample it has the address, not the path. */
struct past_event {
    struct fdr_read_event e;
    struct fdr_sample_path sample;
};
/* Stores the newest events of a location, at most `most`, the oldest of them first. Returns their number. */
size_t newest_events(struct fdr_file *file, uint32_t location, uint64_t until_ns, struct past_event *event,
                     size_t most);
/* The same without calls of functions that system headers define. */
size_t newest_own_events(struct fdr_file *file, uint32_t location, uint64_t until_ns, struct past_event *event,
                         size_t most);

/* Prints the call stack of a thread of fdr_crash_threads: one line a frame, at most `most` frames that are not
 * inlined. */
void print_frames(struct fdr_file *file, size_t thread, size_t most);
json_t *frames_json(struct fdr_file *file, size_t thread);
/* True if callers of the last frame are missing: the stack was larger than its stored part. */
bool stack_is_cut(struct fdr_file *file, size_t thread);

struct crash_shown {
    bool all;       /* the newest events also of a process that did not die, and calls of system headers */
    bool registers; /* of the dying thread */
};
void print_crash(const struct death *d, const struct crash_shown *shown);
/* ---- thread_lines.c ---- */
/* The thread with one name: its name in the recording, else the kernel's. */
void print_thread_name(const char *before, const struct fdr_file *file, uint32_t tid, const char *behind);
void print_open_regions(const struct fdr_file *file, const struct fdr_location_info *l, uint64_t end_ns);
/* The threads that did not die, alike ones together. */
void print_other_threads(struct fdr_file *file, uint64_t end_ns, uint32_t dead);
json_t *crash_json(const struct death *d);
#endif
