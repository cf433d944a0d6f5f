/* SPDX-License-Identifier: MIT */
/* Parts that the verbs share: opening and closing recordings, messages, names, numbers. */
#include "tools/common/verbs.h"
#include "tools/common/live_files.h"
#include "tools/common/short_names.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    char text[8192];
    vsnprintf(text, sizeof text, format, arguments);
    fprintf(stderr, "fdr: %s\n", plain_name(text));
    va_end(arguments);
}

size_t plain_bytes(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    bool control = s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
    bool turns = s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae) ||
                                  /* marks that reverse the direction of text */
                                  (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
    return control || turns ? 0 : character_bytes(s);
}

const char *plain_name(const char *name)
{
    static char text[8][8192];
    static unsigned turn;
    char *to = text[turn++ % 8], *start = to, *end = to + sizeof text[0] - 1;
    for (size_t n; *name && to + (n = plain_bytes(name)) < end; name += n ? n : 1) {
        if (n) to = mempcpy(to, name, n);
        else *to++ = '?';
    }
    *to = 0;
    return start;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool is_null_device(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISCHR(s.st_mode) && s.st_rdev == makedev(1, 3);
}

bool is_input(const char *out, const char *const *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!same_file(inputs[i], out)) continue;
        complain("%s: input and output are the same file; nothing is written", inputs[i]);
        return true;
    }
    return false;
}

int may_write(const char *out, const char *const *inputs, size_t count)
{
    struct stat s;
    if (is_input(out, inputs, count)) return USAGE;
    bool link = lstat(out, &s) == 0 && S_ISLNK(s.st_mode);
    if (!link && (stat(out, &s) != 0 || S_ISREG(s.st_mode) || is_null_device(out))) return DONE;
    complain("%s: %s; nothing is written to it", out, link ? "a symbolic link" : "not a regular file");
    return COULD_NOT;
}

int worse(int a, int b) { return a > b ? a : b; }

uint32_t process_named(const char *text)
{
    uint64_t pid;
    return parse_count(text, &pid) && pid > 0 && pid <= INT32_MAX && access(text, F_OK) != 0 ? (uint32_t)pid : 0;
}

/* If a process is writing an opened file, reads the process's recording instead. */
static bool of_process(uint32_t pid, struct fdr_file **file, char *message)
{
    struct fdr_file *copy = NULL;
    if (pid) fdr_process_open(pid, true, &copy, NULL, 0);
    if (!copy) return false;
    fdr_file_close(*file);
    *file = copy;
    message[0] = '\0';
    return true;
}

/* The writer may have ended after the first read, which then may have met a change half done. So a file without a
 * writer is read again. */
enum fdr_verdict open_quietly(const char *path, struct fdr_file **file, char *message, size_t message_bytes)
{
    enum { TRIES = 4 };
    uint32_t pid = process_named(path);
    if (pid) return fdr_process_open(pid, true, file, message, message_bytes);
    bool quiet = false;
    for (int tries = 1;; tries++) {
        enum fdr_verdict verdict = fdr_file_open(path, file, message, message_bytes);
        if (!*file) return verdict;
        quiet = quiet || !may_be_live(fdr_file_info(*file));
        pid = written_by(path, fdr_file_info(*file));
        if (of_process(pid, file, message)) return FDR_WHOLE;
        if (!pid && quiet) mark_read(path);
        if ((!pid && quiet) || (pid && tries >= TRIES)) return verdict;
        quiet = !pid;
        fdr_file_close(*file);
    }
}

/* Open files whose damage was reported when they were opened. */
static const struct fdr_file **told;
static size_t told_count;

/* True if the damage was reported; then forgets it. */
static bool take_reported(const struct fdr_file *file)
{
    size_t i = 0;
    while (i < told_count && told[i] != file) i++;
    if (i == told_count) return false;
    told[i] = told[--told_count];
    return true;
}

static void remember_reported(const struct fdr_file *file)
{
    const struct fdr_file **wider = realloc(told, (told_count + 1) * sizeof *told);
    if (wider) told = wider, told[told_count++] = file;
}

struct fdr_file *open_recording(const char *path, int *status)
{
    struct fdr_file *file = NULL;
    char message[512] = "";
    enum fdr_verdict verdict = open_quietly(path, &file, message, sizeof message);
    take_reported(file); /* an earlier file at this address was closed without close_recording */
    short_names_forget(file);
    if (verdict != FDR_WHOLE || !file) {
        const char *text = message[0] ? message : "not readable as a recording";
        if (!strncmp(text, "process ", 8)) complain("%s", text); /* a number of a process, and already reported */
        else complain("%s: %s", *path ? path : "\"\"", text);
        if (file) remember_reported(file);
    }
    *status = worse(*status, file ? (verdict == FDR_WHOLE ? DONE : DIFFERENT) : COULD_NOT);
    return file;
}

int tell_damage(const struct fdr_file *file, const char *path)
{
    size_t count = fdr_file_damage_count(file);
    bool said = take_reported(file);
    if (count && !said)
        complain("%s: damaged parts are left out: %s%s", path, fdr_file_damage(file, 0),
                 count > 1 ? ", and more; fdr check lists them" : "");
    return count > 0 ? DIFFERENT : DONE;
}

int close_recording(struct fdr_file *file, const char *path, bool decoded)
{
    if (decoded) fdr_file_verify(file);
    int status = tell_damage(file, path);
    short_names_forget(file);
    fdr_file_close(file);
    return status;
}

int close_partly_read(struct fdr_file *file, const char *path)
{
    fdr_file_met(file);
    return close_recording(file, path, false);
}

/* ---- numbers for people ---------------------------------------------------------------------------------- */

static const char *scaled(char *text, uint64_t value, uint64_t unit, const char *name)
{
    snprintf(text, HUMAN_BYTES, "%u.%03u %s", (unsigned)(value / unit), (unsigned)(value % unit * 1000 / unit), name);
    return text;
}

uint64_t run_start(const struct fdr_file *file)
{
    uint64_t start = fdr_file_info(file)->first_ns;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        uint64_t at = fdr_location_info(file, i)->start_ns;
        if (at && at < start) start = at;
    }
    return start;
}

const char *human_time(char *text, uint64_t ns)
{
    const uint64_t second = 1000000000u;
    uint64_t s = ns / second;
    if (ns < 1000) snprintf(text, HUMAN_BYTES, "%u ns", (unsigned)ns);
    else if (ns < 1000000) return scaled(text, ns, 1000, "us");
    else if (ns < second) return scaled(text, ns, 1000000, "ms");
    else if (s < 120) return scaled(text, ns, second, "s");
    else if (s < 7200) snprintf(text, HUMAN_BYTES, "%u min %02u s", (unsigned)(s / 60), (unsigned)(s % 60));
    else if (s < 172800) snprintf(text, HUMAN_BYTES, "%u h %02u min", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
    else snprintf(text, HUMAN_BYTES, "%llu d %02u h", (unsigned long long)(s / 86400), (unsigned)(s / 3600 % 24));
    return text;
}

const char *human_bytes(char *text, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit < 6; unit++) value /= 1024;
    if (unit == 0) snprintf(text, HUMAN_BYTES, "%u B", (unsigned)bytes);
    else snprintf(text, HUMAN_BYTES, "%.*f %s", value == floor(value) ? 0 : 1, value, units[unit]);
    return text;
}

const char *human_count(char *text, uint64_t count)
{
    char digits[HUMAN_BYTES];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *to = text;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

const char *human_since(char *text, uint64_t time_ns, uint64_t from_ns)
{
    uint64_t d = time_ns >= from_ns ? time_ns - from_ns : from_ns - time_ns;
    snprintf(text, HUMAN_BYTES, "%c%llu.%09u s", time_ns >= from_ns ? '+' : '-', (unsigned long long)(d / 1000000000u),
             (unsigned)(d % 1000000000u));
    return text;
}

/* Columns of a UTF-8 text, one for each character. */
static unsigned columns_of(const char *text)
{
    unsigned n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static const char *skip_columns(const char *text, unsigned columns)
{
    while (*text && columns > 0) {
        text++;
        while (((unsigned char)*text & 0xc0) == 0x80) text++;
        columns--;
    }
    return text;
}

const char *fit(char *text, const char *name, unsigned columns)
{
    unsigned have = columns_of(name);
    if (have <= columns && strlen(name) <= columns * 4u) return strcpy(text, name);
    const char *head_end = skip_columns(name, columns / 2);
    const char *tail = skip_columns(head_end, have - columns / 2 - (columns - columns / 2 - 2));
    size_t head = (size_t)(head_end - name);
    if (head + strlen(tail) + 3 > columns * 4u) head = 0, tail = ""; /* a name of invalid bytes */
    snprintf(text, columns * 4u + 4, "%.*s..%s", (int)head, name, tail);
    return text;
}

/* ---- numbers from people --------------------------------------------------------------------------------- */

bool parse_count(const char *text, uint64_t *count)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end) return false;
    *count = value;
    return true;
}

bool parse_size(const char *text, uint64_t *bytes)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift) end++;
    if (errno || *end || value > UINT64_MAX >> shift) return false;
    *bytes = value << shift;
    return true;
}

static double unit_of(const char *text)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}};
    while (*text == ' ') text++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text, units[i].name) == 0) return units[i].ns;
    return 0;
}

bool parse_duration(const char *text, uint64_t *ns)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    unsigned long long whole = strtoull(text, &end, 10); /* exact to the ns, also beyond 2^53 */
    double part = 0;
    if (errno != 0) return false;
    if (*end == '.') {
        char behind = end[1 + strspn(end + 1, "0123456789")];
        if (behind == 'e' || behind == 'E') return false; /* an exponent would apply to the fraction only */
        part = strtod(end, &end);
    }
    double unit = unit_of(end);
    double total = ((double)whole + part) * unit;
    if (unit == 0 || total >= 18446744073709551615.0) return false;
    *ns = whole * (uint64_t)unit + (uint64_t)(part * unit + 0.5);
    return true;
}

int finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return DONE;
    complain("standard output: %s", strerror(errno));
    return COULD_NOT;
}

/* ---- names ------------------------------------------------------------------------------------------------ */

const struct fdr_location_info *location_of_thread(const struct fdr_file *file, uint32_t tid)
{
    const struct fdr_location_info *found = NULL;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        /* tids are reused: take the newest */
        if (l->tid == tid && l->parent == UINT32_MAX && !l->samples && (!found || l->to_ns > found->to_ns)) found = l;
    }
    return found;
}

const char *region_name(const struct fdr_file *file, uint32_t region)
{
    return fdr_definition(file, FDR_REGION_DEFINITION, region)->name;
}

const char *plain_region(const struct fdr_file *file, uint32_t region)
{
    const char *name = region_name(file, region);
    return *name ? plain_name(name) : "\"\"";
}

const char *kind_name(uint8_t kind)
{
    const struct fdr_kind_info *info = fdr_kind_info(kind);
    return info ? info->name : "?";
}

const char *kind_phase(uint8_t kind)
{
    const struct fdr_kind_info *info = fdr_kind_info(kind);
    return info ? info->phase : "";
}

const char *event_name(const struct fdr_file *file, const struct fdr_read_event *event)
{
    switch (event->kind) {
    case FDR_ENTER:
    case FDR_LEAVE:
        if (event->reduced) return event->filtered ? "[filtered]" : event->not_over ? "[open]" : "[reduced]";
        return region_name(file, event->id);
    case FDR_SAMPLE:
        if (event->sample && event->sample->state != UINT32_MAX) return region_name(file, event->sample->state);
        return event->sample && event->sample->pc
                   ? fdr_place_at(file, event->sample->pc, false, event->time_ns)->function
                   : "[unknown]";
    default: return fdr_id_name(file, event->class_, event->id);
    }
}

size_t location_index(const struct fdr_file *file, uint32_t location)
{
    size_t count = fdr_location_count(file), low = 0, high = count; /* sorted by id */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fdr_location_info(file, middle)->id < location) low = middle + 1;
        else high = middle;
    }
    return low < count && fdr_location_info(file, low)->id == location ? low : count;
}

const struct fdr_location_info *find_location(const struct fdr_file *file, uint32_t location)
{
    size_t i = location_index(file, location);
    return i < fdr_location_count(file) ? fdr_location_info(file, i) : NULL;
}

const char *location_name(const struct fdr_file *file, uint32_t location)
{
    const struct fdr_location_info *info = find_location(file, location);
    return info ? info->name : "";
}

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- arguments ---------------------------------------------------------------------------------------------- */

static bool parsing;

/* argp prints its help and exits without checking whether it could be written. */
static void end_of_help(void)
{
    if (parsing && finish_output() != DONE) _exit(COULD_NOT);
}

void parse_flagged(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    argp_err_exit_status = USAGE;
    parsing = atexit(end_of_help) == 0;
    error_t error = argp_parse(argp, argc, argv, flags, NULL, input);
    parsing = false;
    if (error == 0) return;
    complain("%s", strerror(error));
    exit(USAGE);
}

void parse_arguments(const struct argp *argp, int argc, char **argv, void *input)
{
    parse_flagged(argp, argc, argv, 0, input);
}

error_t one_file(struct argp_state *state, int key, const char *text, const char **path)
{
    if (key == ARGP_KEY_END && !*path) argp_error(state, "a FILE is needed");
    if (key == ARGP_KEY_END) return 0;
    if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
    if (*path) argp_error(state, "one FILE at a time: '%s'", text);
    *path = text;
    return 0;
}

const char *ended_by(const struct fdr_file *file)
{
    static const char before[] = "ended by ";
    const char *reason = fdr_file_info(file)->reason;
    return strncmp(reason, before, sizeof before - 1) ? "exit" : reason + sizeof before - 1;
}
