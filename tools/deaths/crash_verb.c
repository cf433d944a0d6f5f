/* SPDX-License-Identifier: MIT */
/* fdr crash: the post-mortem. For many files the process that died first, and those that ended after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/job_ranks.h"
#include "tools/common/short_names.h"
#include "tools/deaths/deaths.h"

struct arguments {
    struct file_list files;
    struct crash_shown shown;
    bool json;
};

static const struct argp_option options[] = {{"all", 'a', 0, 0,
                                              "Of several files every death, not only the first; the newest events "
                                              "also of the living, and the calls of functions "
                                              "from system headers",
                                              0},
                                             {"registers", 'r', 0, 0, "The registers of the dying thread", 0},
                                             {"json", 'j', 0, 0, "As JSON", 0},
                                             {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'a': a->shown.all = true; return 0;
    case 'r': a->shown.registers = true; return 0;
    case 'j': a->json = true; return 0;
    default: return some_files(state, key, text, &a->files);
    }
}

/* A process killed after its bundle was complete and before its live file was removed leaves both. Its live file then
 * counts as over. */
static void find_bundles(struct death *d, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; fdr_file_info(d[i].file)->killed_in_handler && k < count; k++) {
            const struct fdr_file_info *other = fdr_file_info(d[k].file);
            if (other->has_cause && !other->killed_in_handler && !other->over &&
                same_recording(fdr_file_info(d[i].file), other))
                d[i].kind = UNNEEDED_LIVE_FILE;
        }
}

/* A process dies once. Of a kill the latest file counts; the others are copies from before. */
static bool same_death(const struct death *a, const struct death *b)
{
    return a->kind == b->kind && a->kind <= KILLED && (a->kind == KILLED || a->realtime_ns == b->realtime_ns) &&
           same_recording(fdr_file_info(a->file), fdr_file_info(b->file));
}

/* Moves one file of each death to the front; the others of the same death follow. Returns the number of deaths. */
static size_t move_duplicates_back(struct death *d, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t best = i;
        for (size_t k = 0; k < count; k++)
            if (same_death(&d[i], &d[k]) &&
                (d[k].realtime_ns > d[best].realtime_ns || (d[k].realtime_ns == d[best].realtime_ns && k < best)))
                best = k;
        if (best != i) d[i].seen_by = d[best].path;
    }
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct death one = d[i];
        if (one.seen_by) continue;
        d[i] = d[left];
        d[left++] = one;
    }
    return left;
}

static int by_time(const void *x, const void *y)
{
    const struct death *a = x, *b = y;
    if (a->first != b->first) return a->first ? -1 : 1;
    return a->realtime_ns < b->realtime_ns ? -1 : a->realtime_ns > b->realtime_ns;
}

/* Ranks of one job begin within minutes. */
#define BEGAN_APART_NS 600000000000u

/* Attempts of one job are several jobs here. "": unknown. */
static const char *job_and_attempt(const struct fdr_file *file, char *text, size_t bytes)
{
    const char *attempt = attempt_of(file);
    size_t used = strlen(job_of(file, text, bytes));
    if (used && *attempt) snprintf(text + used, bytes - used, " attempt %s", attempt);
    return text;
}

static void print_other_job(const struct death *d, size_t count)
{
    char job[128] = "", other[128], apart[HUMAN_BYTES];
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t began = fdr_file_info(d[i].file)->created_realtime_ns;
        if (!began) continue; /* damaged, or without a time */
        if (began < first) first = began;
        if (began > last) last = began;
        if (!*job_and_attempt(d[i].file, other, sizeof other)) continue;
        if (*job && strcmp(job, other)) {
            printf("warning: these files are of several jobs (%s", plain_name(job));
            printf(", %s); FIRST is the first of all jobs\n", plain_name(other));
            return;
        }
        memcpy(job, other, sizeof job);
    }
    if (last - first > BEGAN_APART_NS)
        printf("warning: these processes began %s apart and may be of several jobs; FIRST is the first of all jobs\n",
               human_time(apart, last - first));
}

static void print_duplicates(const struct death *again, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("note: left out, the same death as %s", plain_name(again[i].seen_by));
        printf(": %s\n", plain_name(again[i].path));
    }
}

static json_t *duplicates_json(const struct death *d, const struct death *again, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (again[i].seen_by == d->path) json_array_append_new(list, json_text(again[i].path));
    return list;
}

static void print_overview(const struct arguments *a, const struct deaths *d)
{
    print_five_lines(d);
    print_other_job(d->death, d->count);
    putchar('\n');
    print_alike_deaths(d, a->shown.all);
}

static int print_deaths(const struct arguments *a, const struct deaths *d)
{
    if (d->count > 1) print_overview(a, d);
    else if (d->death->kind <= KILLED) print_phone_lines(d->death);
    for (size_t i = 0; i < d->count; i++) {
        if (d->count > 1 && !d->death[i].first && (!a->shown.all || d->death[i].kind > KILLED)) continue;
        if (d->count > 1) printf("\n");
        print_crash(&d->death[i], &a->shown);
    }
    print_duplicates(d->death + d->count, d->left_out);
    return finish_output();
}

static int print_deaths_json(const struct deaths *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->count; i++) {
        json_t *o = crash_json(&d->death[i]);
        json_object_set_new(o, "left_out", duplicates_json(&d->death[i], d->death + d->count, d->left_out));
        json_array_append_new(list, o);
    }
    return print_json(list);
}

/* Finds what there is to tell, and tells it. */
static int report(const struct arguments *a, struct deaths *d)
{
    int status = COULD_NOT;
    struct death *first = first_of(d->death, d->count);
    for (size_t i = 0; first && i < d->count; i++) d->perhaps_first += may_be_first(&d->death[i], first);
    if (first) first->first = true;
    qsort(d->death, d->count, sizeof *d->death, by_time);
    if (d->perhaps_first > 1) d->death->first = false;
    d->first = d->perhaps_first == 1 ? d->death : NULL;
    if (a->json) status = print_deaths_json(d);
    else if (find_doings(d)) status = print_deaths(a, d);
    else complain("crash: out of memory");
    free(d->doing);
    return status;
}

int verb_crash(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "The post-mortem: cause of death, place, the state of each thread, and the time "
                                     "before. Of several files it names the process that died first, and says what the "
                                     "others did then. Function names come from the program's own files "
                                     "(FDR_SYMBOLS=0: no names).",
                                     children,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    struct deaths d = {0};
    int status = DONE;
    size_t opened;
    parse_arguments(&argp, argc, argv, &a);
    d.death = open_deaths(&a.files, &opened, &status);
    find_bundles(d.death, opened);
    d.count = move_duplicates_back(d.death, opened);
    d.left_out = opened - d.count;
    if (d.count) status = worse(status, report(&a, &d));
    for (size_t i = 0; i < opened; i++) status = worse(status, close_partly_read(d.death[i].file, d.death[i].path));
    free(d.death);
    return status;
}
