/* SPDX-License-Identifier: MIT */
/* Parts that the verbs share: exit codes, opening a recording, messages, numbers in and out for people and for JSON.
 *
 *   verbs.c        all of these          json_values.c       JSON
 *   selection.c    filters               fast_output.c       output of millions of lines
 *   stat_rows.c    rows of fdr stats     call_tree.c         call tree of kept events
 *   sample_table.c sums of samples       counter_rates.c     figures of counters, counter_rates_map.c: its maps
 *   live_files.c   the writers of files  found_recordings.c  recordings in directories
 *   job_ranks.c    ranks of a job        short_names.c       names for tables, with cxx_name.c
 *   job_files.c    several files as one     file_rank.c        the rank of a file
 *   utf8.c         characters            progress.c          the line while a verb reads
 *
 * Neighbours: the verbs in tools/ and tools/replay/ use it; recordings are read through fdr/reader.h alone. */
#ifndef FDRI_TOOLS_COMMON_VERBS_H
#define FDRI_TOOLS_COMMON_VERBS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fdr/reader.h>
#include <jansson.h>

#include "tools/common/utf8.h"

enum exit_code { DONE = 0, DIFFERENT = 1, COULD_NOT = 2, USAGE = 64 };

/* ---- the verbs; each in its own file -------------------------------------------------------------------- */
int verb_info(int argc, char **argv);
int verb_check(int argc, char **argv);
int verb_dump(int argc, char **argv);
int verb_stats(int argc, char **argv);
int verb_samples(int argc, char **argv);
int verb_suggest(int argc, char **argv);
int verb_messages(int argc, char **argv);
int verb_tree(int argc, char **argv);
int verb_recover(int argc, char **argv);
int verb_replay(int argc, char **argv);
int verb_counters(int argc, char **argv);
int verb_list(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_collect(int argc, char **argv);
int verb_gc(int argc, char **argv);
int verb_hang(int argc, char **argv);
int verb_snapshot(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_export(int argc, char **argv);
int verb_html(int argc, char **argv);
int verb_sql(int argc, char **argv);
int verb_crash(int argc, char **argv);
int verb_findings(int argc, char **argv);
int verb_outliers(int argc, char **argv);
int verb_story(int argc, char **argv);
int verb_version(int argc, char **argv);

/* ---- messages ------------------------------------------------------------------------------------------- */
/* One line on standard error: "fdr: ...". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Bytes of the character at `text`. 0: a terminal would take it for a command (U+0080 to U+009F as well), it changes
 * the direction of text, or it is not UTF-8. */
size_t plain_bytes(const char *text);
/* A name for the terminal, of a file or from a recording: characters that are not plain become '?'. Valid until the
 * eighth call from here. */
const char *plain_name(const char *name);

/* The number in "1234", a process, unless a file has this name. Else 0. */
uint32_t process_named(const char *text);
/* Opens a file, or the recording of a process by its number. If a process is writing the file, reads the process's
 * recording instead. Marks an unread file (mode 0600) as read (0400). Otherwise as fdr_file_open. */
enum fdr_verdict open_quietly(const char *path, struct fdr_file **file, char *message, size_t message_bytes);
/* The same, and reports problems. Raises *status to DIFFERENT for a damaged file, to COULD_NOT with NULL. */
struct fdr_file *open_recording(const char *path, int *status);
int worse(int a, int b);
/* True, with a message, if `out` is one of the inputs. */
bool is_input(const char *out, const char *const *inputs, size_t count);
/* DONE if `out` may become a recording. Else reports why not: it is one of the inputs (USAGE), a link, or neither a
 * file nor the null device (COULD_NOT). */
int may_write(const char *out, const char *const *inputs, size_t count);
bool is_null_device(const char *path);
/* DIFFERENT if damage was found by now, else DONE. Reports the first, unless opening did. */
int tell_damage(const struct fdr_file *file, const char *path);
/* Closes the recording. Returns DIFFERENT if the file is damaged, else DONE. decoded: events were read, so damaged bins
 * count, too, and the first is reported; reading skips them silently. */
int close_recording(struct fdr_file *file, const char *path, bool decoded);
/* The same, but counts only damaged bins that were met. For verbs that read only the end of a recording, quickly. */
int close_partly_read(struct fdr_file *file, const char *path);

/* ---- numbers for people ---------------------------------------------------------------------------------- */
#define HUMAN_BYTES 32
/* Writes into text[HUMAN_BYTES] and returns it: "12 ns", "1.234 us", "5.856 s", "2 h 03 min". */
const char *human_time(char *text, uint64_t ns);
/* The time at which the first thread began to record, even if nothing of that time is stored. */
uint64_t run_start(const struct fdr_file *file);
uint64_t now_ns(void);                               /* CLOCK_MONOTONIC */
const char *human_bytes(char *text, uint64_t bytes); /* "1.5 MiB" */
const char *human_count(char *text, uint64_t count); /* "1,234,567" */
/* t - from in seconds with a sign, "+0.000000123 s". */
const char *human_since(char *text, uint64_t time_ns, uint64_t from_ns);
/* A name in at most `columns` columns; longer ones lose their middle. text[columns * 4 + 4]. */
const char *fit(char *text, const char *name, unsigned columns);

/* ---- numbers from people --------------------------------------------------------------------------------- */
/* "1us", "2.5ms", "100" (ns). False: no duration. */
bool parse_duration(const char *text, uint64_t *ns);
bool parse_count(const char *text, uint64_t *count);
bool parse_size(const char *text, uint64_t *bytes); /* "100M": 2^20 bytes each; K, M, G or none */

/* ---- JSON ------------------------------------------------------------------------------------------------ */
json_t *json_u64(uint64_t value);    /* clamped to the 64-bit integers that JSON readers accept */
json_t *json_f64(double value);      /* null for infinities and NaN, which JSON does not have */
json_t *json_text(const char *text); /* bytes that are not UTF-8 become U+FFFD */
json_t *json_notes(const struct fdr_file *file);
/* As text, to be freed with free(); characters that are not plain are escaped. */
char *json_plain(const json_t *value);
/* Writes to standard output and frees `value`: one line per element of an outer array or object. DONE or COULD_NOT. */
int print_json(json_t *value);
/* Flushes stdio. Returns DONE, or COULD_NOT after a message. */
int finish_output(void);

/* The newest location of a thread; NULL: the thread recorded nothing. */
const struct fdr_location_info *location_of_thread(const struct fdr_file *file, uint32_t tid);

/* ---- names ------------------------------------------------------------------------------------------------ */
const char *region_name(const struct fdr_file *file, uint32_t region);
/* As plain_name; an empty name is shown as "" with the quotes. */
const char *plain_region(const struct fdr_file *file, uint32_t region);
const char *event_name(const struct fdr_file *file, const struct fdr_read_event *event);
const char *kind_name(uint8_t kind);  /* "send"; "?": no such kind */
const char *kind_phase(uint8_t kind); /* "begin", "end" or "" */
const char *location_name(const struct fdr_file *file, uint32_t location);
/* The index of the location with this id; the number of locations: none. */
size_t location_index(const struct fdr_file *file, uint32_t location);
/* The location with this id, or NULL. */
const struct fdr_location_info *find_location(const struct fdr_file *file, uint32_t location);

/* ---- arguments ---------------------------------------------------------------------------------------------- */
/* argp_parse with fdr's exit codes for wrong usage and for help that could not be written. */
void parse_arguments(const struct argp *argp, int argc, char **argv, void *input);
void parse_flagged(const struct argp *argp, int argc, char **argv, unsigned flags, void *input); /* ARGP_IN_ORDER */
/* For a verb with one FILE: handles ARGP_KEY_ARG, and at ARGP_KEY_END reports a missing one. */
error_t one_file(struct argp_state *state, int key, const char *text, const char **path);

/* The cause of an end without a signal: "exit", "MPI_Abort", ... */
const char *ended_by(const struct fdr_file *file);

#endif
