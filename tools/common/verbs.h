/* SPDX-License-Identifier: MIT */
/* Parts that the verbs share: exit codes, opening a recording, messages, numbers in and out for people and for JSON. */
#ifndef FDRI_TOOLS_COMMON_VERBS_H
#define FDRI_TOOLS_COMMON_VERBS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fdr/reader.h>
#include <jansson.h>

enum exit_code { DONE = 0, DIFFERENT = 1, COULD_NOT = 2, USAGE = 64 };

/* ---- the verbs; each in its own file -------------------------------------------------------------------- */
int verb_info(int argc, char **argv);
int verb_check(int argc, char **argv);
int verb_dump(int argc, char **argv);
int verb_stats(int argc, char **argv);
int verb_samples(int argc, char **argv);
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
int verb_crash(int argc, char **argv);
int verb_version(int argc, char **argv);

/* ---- messages ------------------------------------------------------------------------------------------- */
/* One line on standard error: "fdr: ...". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Bytes of the character at `text`; 0: a terminal would take it for a command (U+0080 to U+009F as well), or it turns
 * the direction of what follows, or it is no UTF-8. */
size_t plain_bytes(const char *text);
/* Bytes of the UTF-8 character at s, 0: there is none (overlong forms and surrogates are none). */
size_t character_bytes(const unsigned char *s);
/* A name of a file, or one that a recording holds, as it goes to a terminal: what is not plain is '?'. Stays until the
 * eighth call from here. */
const char *plain_name(const char *name);

/* "1234" where no file is named so: a process. Else 0. */
uint32_t process_named(const char *text);
/* Opens a file, or the recording of a process by its number. The file that a process is writing is read as the process
 * is. One that was unread (mode 0600) is marked as read (0400). Otherwise as fdr_file_open. */
enum fdr_verdict open_quietly(const char *path, struct fdr_file **file, char *message, size_t message_bytes);
/* The same, and says what is wrong with it. *status is raised to DIFFERENT for a damaged file, COULD_NOT with NULL. */
struct fdr_file *open_recording(const char *path, int *status);
int worse(int a, int b);
/* Says so where `out` is one of the inputs. */
bool is_input(const char *out, const char *const *inputs, size_t count);
/* May `out` become a recording? Else says why not: it is one of the inputs (USAGE), a link, or neither a file nor the
 * null device (COULD_NOT). */
int may_write(const char *out, const char *const *inputs, size_t count);
bool is_null_device(const char *path);
/* DIFFERENT where damage was found by now, else DONE; a line names the first, unless opening has. */
int tell_damage(const struct fdr_file *file, const char *path);
/* DIFFERENT where the file is damaged, else DONE. `decoded`: events were read, so that damaged bins count, too (and a
 * line names the first): reading leaves them out without a word. Closes the file. */
int close_recording(struct fdr_file *file, const char *path, bool decoded);
/* The same of damaged bins that reading has come to: for verbs that read the end of a recording, and soon. */
int close_partly_read(struct fdr_file *file, const char *path);

/* ---- numbers for people ---------------------------------------------------------------------------------- */
#define HUMAN_BYTES 32
/* Writes into text[HUMAN_BYTES] and returns it: "12 ns", "1.234 us", "5.856 s", "2 h 03 min". */
const char *human_time(char *text, uint64_t ns);
/* When the first thread began to record, also where nothing of that time is held. */
uint64_t run_start(const struct fdr_file *file);
const char *human_bytes(char *text, uint64_t bytes); /* "1.5 MiB" */
const char *human_count(char *text, uint64_t count); /* "1,234,567" */
/* t - from as seconds with a sign, "+0.000000123 s". */
const char *human_since(char *text, uint64_t time_ns, uint64_t from_ns);
/* A name of at most `columns` columns, cut in the middle where longer. text[columns * 4 + 4]. */
const char *fit(char *text, const char *name, unsigned columns);

/* ---- numbers from people --------------------------------------------------------------------------------- */
/* "1us", "2.5ms", "100" (ns). False: not a duration. */
bool parse_duration(const char *text, uint64_t *ns);
bool parse_count(const char *text, uint64_t *count);

/* ---- JSON ------------------------------------------------------------------------------------------------ */
json_t *json_u64(uint64_t value);    /* clamped to what JSON readers take for a 64-bit integer */
json_t *json_f64(double value);      /* null for infinities and NaN, which JSON has not */
json_t *json_text(const char *text); /* bytes that are no UTF-8 become U+FFFD */
json_t *json_notes(const struct fdr_file *file);
/* As text, for free(): what is not plain is escaped. */
char *json_plain(const json_t *value);
/* Writes to standard output and frees: one line per element of an outer array or object. DONE or COULD_NOT. */
int print_json(json_t *value);
/* Flushes what went through stdio. DONE, or COULD_NOT and a message. */
int finish_output(void);

/* The location of a thread, of several the newest; NULL: it recorded nothing. */
const struct fdr_location_info *location_of_thread(const struct fdr_file *file, uint32_t tid);

/* ---- names ------------------------------------------------------------------------------------------------ */
const char *region_name(const struct fdr_file *file, uint32_t region);
/* As plain_name of it; "" (with the quotes) where it is empty, so that it is seen among others. */
const char *plain_region(const struct fdr_file *file, uint32_t region);
const char *event_name(const struct fdr_file *file, const struct fdr_read_event *event);
const char *collective_name(uint32_t operation);
const char *location_name(const struct fdr_file *file, uint32_t location);
/* Where the one of that id is in fdr_location_info; how many there are: nowhere. */
size_t location_index(const struct fdr_file *file, uint32_t location);
/* NULL: there is none of that id. */
const struct fdr_location_info *find_location(const struct fdr_file *file, uint32_t location);

/* ---- progress --------------------------------------------------------------------------------------------- */
/* On a terminal and only after a second: "fdr: stats: 12,000,000 events". Zero-initialised but for `what`. */
struct progress {
    const char *what;
    uint64_t started_ns, shown_ns;
    bool quiet, shown;
};
/* Cheap to call for every event: looks at the clock every 65,536th. */
void progress_at(struct progress *progress, uint64_t done);
void progress_now(struct progress *progress, uint64_t done);
void progress_end(struct progress *progress);
uint64_t now_ns(void);

/* ---- arguments ---------------------------------------------------------------------------------------------- */
/* argp_parse with our exit codes for wrong usage and for help that could not be written. */
void parse_arguments(const struct argp *argp, int argc, char **argv, void *input);
void parse_flagged(const struct argp *argp, int argc, char **argv, unsigned flags, void *input); /* ARGP_IN_ORDER */
/* The one FILE of a verb, in its parser: takes ARGP_KEY_ARG, and at ARGP_KEY_END says where there was none. */
error_t one_file(struct argp_state *state, int key, const char *text, const char **path);

/* What ended a process that died of no signal: "exit", "MPI_Abort", ... */
const char *ended_by(const struct fdr_file *file);

#endif
