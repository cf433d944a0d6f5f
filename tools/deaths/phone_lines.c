/* SPDX-License-Identifier: MIT */
/* One process that died, in three lines that one could read out on the phone. The first says which process died, of
 * what and when; the second where; the third what it was doing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/common/short_names.h"
#include "tools/deaths/deaths.h"

/* Libraries whose functions end a program or carry a signal: the place is in the function that called them. */
static bool is_of_ending_library(const struct fdr_crash_frame *f)
{
    static const char *const name[] = {"libc.so",  "libc-2",      "libstdc++", "libgcc_s", "libpthread",
                                       "ld-linux", "libgfortran", "libmpi",    "libmpich", "libopen-",
                                       "libfdr",   "libasan",     "linux-vdso"};
    const char *slash = strrchr(f->module, '/'), *module = slash ? slash + 1 : f->module;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strncmp(module, name[i], strlen(name[i]))) return true;
    return false;
}

/* A function that only passes the end on: also fdr.hpp's own, which is part of the program. */
static bool passes_the_end_on(const struct fdr_crash_frame *f)
{
    return strstr(f->function, "fdr::detail::") || is_of_ending_library(f);
}

/* The index of the frame to name; count: none is known. */
static size_t place(struct fdr_file *file, const struct fdr_crash_frame **frames, size_t *count)
{
    const struct fdr_crash_thread_info *t;
    *count = fdr_crash_threads(file, &t) && t[0].faulting ? fdr_crash_frames(file, 0, frames) : 0;
    for (size_t i = 0; i < *count; i++)
        if (!(*frames)[i].guessed && (*frames)[i].function[0] && !passes_the_end_on(&(*frames)[i])) return i;
    return *count ? 0 : *count;
}

static void add_frame(const struct fdr_crash_frame *f, char *text, size_t bytes)
{
    const char *slash = strrchr(f->module, '/'), *module = slash ? slash + 1 : f->module;
    const char *cut = strrchr(f->file, '/');
    size_t used = strlen(text);
    if (f->function[0]) snprintf(text + used, bytes - used, "%s", plain_function(f->function));
    else if (module[0]) snprintf(text + used, bytes - used, "%s+0x%" PRIx64, plain_name(module), f->offset);
    else snprintf(text + used, bytes - used, "no module");
    used = strlen(text);
    if (f->file[0]) snprintf(text + used, bytes - used, " at %s:%u", plain_name(cut ? cut + 1 : f->file), f->line);
}

const char *place_of_death(const struct death *d, char *text, size_t bytes)
{
    const struct fdr_crash_frame *frame;
    size_t count, at = place(d->file, &frame, &count);
    snprintf(text, bytes, count ? " in " : "");
    if (count) add_frame(&frame[at], text, bytes);
    return text;
}

/* "died in exchange at solver.c:20, called from solve, main" */
static void print_place(const struct death *d)
{
    enum { CALLERS = 3 };
    const struct fdr_crash_frame *frame;
    char text[400] = "";
    size_t count, at = place(d->file, &frame, &count), told = 0;
    if (!count) {
        printf("The file has no stack of it: %s.\n", d->kind == KILLED ? "no handler ran" : "none was written");
        return;
    }
    add_frame(&frame[at], text, sizeof text);
    printf("It died in %s", text);
    for (size_t i = at + 1; i < count && told < CALLERS && strcmp(frame[i - 1].function, "main"); i++)
        if (frame[i].function[0] && !passes_the_end_on(&frame[i]))
            printf("%s%s", told++ ? ", " : ", called from ", plain_function(frame[i].function));
    printf(".\n");
}

/* The program's own words, if there are any. */
static bool print_message(const struct fdr_file *file)
{
    static const char *const kind[] = {"abort", "what", "exception"};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        size_t bytes;
        char line[300];
        const char *text = fdr_crash_text(file, kind[i], &bytes);
        if (!text || !bytes) continue;
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        printf("It said: %s\n", plain_name(line));
        return true;
    }
    return false;
}

static void print_doing(const struct death *d)
{
    struct fdr_crash_cause_info c = main_cause(d->file);
    const struct fdr_location_info *l = location_of_thread(d->file, c.tid);
    char regions[300], time[HUMAN_BYTES];
    bool known = fdr_file_info(d->file)->has_cause;
    uint64_t end = known ? c.time_ns : fdr_file_info(d->file)->last_ns;
    if (!l) l = last_location(d->file);
    if (!l || !l->open_count) {
        printf("No region was open%s.\n", l ? "" : ", and nothing was recorded");
        return;
    }
    uint64_t enter = l->open[l->open_count - 1].enter_ns;
    printf("Its thread %u%s%s was in %s", l->tid, l->name[0] ? " " : "", plain_name(l->name),
           regions_of(d, l, regions, sizeof regions));
    if (!l->open[l->open_count - 1].untimed) printf(", for %s", human_time(time, end > enter ? end - enter : 0));
    printf(".\n");
}

void print_phone_lines(const struct death *d)
{
    const struct fdr_file_info *i = fdr_file_info(d->file);
    const char *slash = strrchr(i->exe, '/'), *exe = slash ? slash + 1 : i->exe;
    struct fdr_crash_cause_info c = main_cause(d->file);
    char end[256], rank[32] = "", when[48] = "";
    time_t s = (time_t)(d->realtime_ns / 1000000000u);
    struct tm t;
    if (gmtime_r(&s, &t)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &t);
    if (i->rank >= 0) snprintf(rank, sizeof rank, "rank %d, ", i->rank);
    printf("%s (%spid %u on %s) %s %s, %s %s.\n", *exe ? plain_name(exe) : "A program", rank, i->pid,
           plain_name(i->host), d->kind == BY_REQUEST ? "was asked to end by" : "died of",
           d->kind == KILLED ? short_end(d, end, sizeof end) : describe_cause(d->file, &c, end, sizeof end),
           d->kind == KILLED ? "after" : "at", when);
    print_place(d);
    if (!print_message(d->file)) print_doing(d);
    putchar('\n');
}
