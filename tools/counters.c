/* SPDX-License-Identifier: MIT */
/* fdr counters: without a file, tries which counters work on this machine; with a file, prints its counters. */
#define _GNU_SOURCE
#include <fdr/counters.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/terminal.h"
#include "tools/counters.h"

static const struct argp_option options[] = {
    {"by", 'b', "WHAT", 0, "counter (default), region, thread, time or call", 0},
    {"counter", 'c', "GLOB", 0, "Only these counters", 0},
    {"slices", 's', "N", 0, "--by time: number of slices of the run (20)", 0},
    {"limit", 'n', "N", 0, "--by region, thread, call: at most N rows of text for each counter (10; 0: all)", 0},
    {"all", 'a', 0, 0, "All rows, as --limit 0", 0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {0}};

static enum rate_by parse_by(struct argp_state *state, const char *text)
{
    static const char *const names[] = {"counter", "region", "thread", "time", "call"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) return (enum rate_by)i;
    argp_error(state, "--by: '%s' is none of counter, region, thread, time, call", text);
    return BY_COUNTER;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct counters_arguments *a = state->input;
    switch (key) {
    case 'b': a->by = parse_by(state, text); return 0;
    case 'c': a->glob = text; return 0;
    case 's':
        if (!parse_count(text, &a->slices) || a->slices < 1 || a->slices > 100000)
            argp_error(state, "--slices: not a number from 1 to 100000: '%s'", text);
        return 0;
    case 'n':
        if (!parse_count(text, &a->limit)) argp_error(state, "--limit: not a number: '%s'", text);
        if (a->limit == 0) a->limit = UINT64_MAX;
        return 0;
    case 'a': a->limit = UINT64_MAX; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG: return some_files(state, key, text, &a->files);
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- counters of this machine ----------------------------------------------------------------------------------- */

static json_t *info_json(const struct fdr_counter_info *c)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_text(c->name));
    json_object_set_new(o, "unit", json_text(c->unit));
    json_object_set_new(o, "kind", json_text(c->kind == FDR_METRIC_GAUGE ? "gauge" : "counter"));
    json_object_set_new(o, "scope", json_text(c->per_thread ? "thread" : "process"));
    json_object_set_new(o, "works", json_boolean(c->works));
    json_object_set_new(o, "why", c->works ? json_null() : json_text(c->why));
    return o;
}

static int list_json(const struct fdr_counter_info *info, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(array, info_json(&info[i]));
    return print_json(array);
}

static int list_text(const struct fdr_counter_info *info, size_t count)
{
    printf("# tried on this machine, as this user\n%-30s %-8s %-8s %-6s\n", "counter", "of", "kind", "unit");
    for (size_t i = 0; i < count; i++)
        if (info[i].works)
            printf("%-30s %-8s %-8s %-6s\n", info[i].name, info[i].per_thread ? "thread" : "process",
                   info[i].kind == FDR_METRIC_GAUGE ? "gauge" : "counter", info[i].unit);
    printf("\n# cannot be counted here\n");
    for (size_t i = 0; i < count; i++)
        if (!info[i].works) printf("%-30s %s\n", info[i].name, info[i].why);
    return finish_output();
}

static int list(const struct counters_arguments *a)
{
    enum { MOST = 512 };
    struct fdr_counter_info *info = calloc(MOST, sizeof *info);
    size_t count = info ? fdr_counters_probe(info, MOST) : 0, kept = 0;
    if (!info) {
        complain("out of memory");
        return COULD_NOT;
    }
    if (count > MOST) count = MOST;
    for (size_t i = 0; i < count; i++)
        if (!a->glob || !fnmatch(a->glob, info[i].name, 0)) info[kept++] = info[i];
    int status = a->json ? list_json(info, kept) : list_text(info, kept);
    free(info);
    return status;
}

int verb_counters(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[FILE...]",
        "Without FILE: which counters work on this machine, found by trying each, and why the others do not. "
        "With FILE: amounts and rates of the counters in a recording. Several FILEs are the ranks of one job.",
        NULL,
        NULL,
        NULL};
    struct counters_arguments a = {.slices = 20};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    if (!a.files.count) return list(&a);
    struct job_files job;
    if (!open_files(&job, &a.files, &status)) return status;
    a.path = job.name;
    status = worse(status, print_counters(&a, job.file));
    static const char *const next[] = {"counters --by region", "counters --by time", "html -o page.html", NULL};
    if (!a.json && fdr_definition_count(job.file, FDR_METRIC_DEFINITION))
        print_hint(next, job.count == 1 ? plain_name(a.path) : "FILE...");
    return worse(status, close_files(&job, true));
}
