/* SPDX-License-Identifier: MIT */
/* Gathers the findings of all kinds and ranks them. */
#include "tools/findings/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/findings/run_facts.h"

struct finding *add_finding(struct findings *f, enum finding_kind kind, double weight)
{
    if (f->count == f->room) {
        size_t room = f->room ? f->room * 2 : 32;
        struct finding *grown = realloc(f->row, room * sizeof *grown);
        f->failed |= !grown;
        if (!grown) return NULL;
        f->row = grown;
        f->room = room;
    }
    struct finding *row = &f->row[f->count++];
    *row = (struct finding){.kind = kind, .weight = weight, .region = UINT32_MAX, .waited_in = UINT32_MAX, .unit = ""};
    return row;
}

void say(struct finding *finding, const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(finding->sentence);
    va_start(arguments, format);
    vsnprintf(finding->sentence + used, sizeof finding->sentence - used, format, arguments);
    va_end(arguments);
}

void add_evidence(struct finding *finding, const char *format, ...)
{
    va_list arguments;
    if (finding->evidences == FINDING_EVIDENCE) return;
    va_start(arguments, format);
    vsnprintf(finding->evidence[finding->evidences++], FINDING_TEXT, format, arguments);
    va_end(arguments);
}

void add_location(struct finding *finding, uint32_t location)
{
    if (finding->locations < FINDING_LOCATIONS) finding->location[finding->locations++] = location;
}

void cannot_judge(struct findings *f, const char *what, const char *format, ...)
{
    va_list arguments;
    if (f->not_judged_count == NOT_JUDGED) return;
    snprintf(f->not_judged[f->not_judged_count].what, sizeof f->not_judged[0].what, "%s", what);
    va_start(arguments, format);
    vsnprintf(f->not_judged[f->not_judged_count++].why, sizeof f->not_judged[0].why, format, arguments);
    va_end(arguments);
}

static int by_weight(const void *x, const void *y)
{
    double a = ((const struct finding *)x)->weight, b = ((const struct finding *)y)->weight;
    return a < b ? 1 : a > b ? -1 : 0;
}

void findings_of(struct fdr_file *file, const char *path, struct findings *f)
{
    struct run_facts facts;
    *f = (struct findings){0};
    if (!run_facts_of(file, path, &facts)) {
        f->failed = true;
        return;
    }
    find_death(&facts, f);
    find_standing(&facts, f);
    find_slow_calls(&facts, f);
    find_returning(&facts, f);
    find_imbalance(&facts, f);
    find_growth(&facts, f);
    find_waiting(&facts, f);
    find_loss(&facts, f);
    if (f->count) qsort(f->row, f->count, sizeof *f->row, by_weight);
    run_facts_free(&facts);
}

void findings_free(struct findings *f)
{
    free(f->row);
    *f = (struct findings){0};
}

const char *finding_kind_name(enum finding_kind kind)
{
    static const char *const name[] = {"growth", "imbalance", "periodic", "outlier", "wait", "loss", "hang", "crash"};
    return name[kind];
}

static json_t *finding_json(const struct fdr_file *file, const struct finding *f)
{
    json_t *o = json_object(), *locations = json_array(), *evidence = json_array();
    bool whole = !f->from_ns && !f->to_ns;
    json_object_set_new(o, "kind", json_string(finding_kind_name(f->kind)));
    json_object_set_new(o, "sentence", json_text(f->sentence));
    json_object_set_new(o, "region", f->region == UINT32_MAX ? json_null() : json_text(region_name(file, f->region)));
    for (size_t i = 0; i < f->locations; i++) json_array_append_new(locations, json_u64(f->location[i]));
    json_object_set_new(o, "locations", locations);
    json_object_set_new(o, "from_ns", whole ? json_null() : json_u64(f->from_ns));
    json_object_set_new(o, "to_ns", whole ? json_null() : json_u64(f->to_ns));
    json_object_set_new(o, "value", json_f64(f->value));
    json_object_set_new(o, "unit", json_string(f->unit));
    json_object_set_new(o, "share_of_run", json_f64(f->share));
    json_object_set_new(o, "sure", json_f64(f->sure));
    for (size_t i = 0; i < f->evidences; i++) json_array_append_new(evidence, json_text(f->evidence[i]));
    json_object_set_new(o, "evidence", evidence);
    return o;
}

json_t *findings_json(const struct fdr_file *file, const struct findings *f)
{
    json_t *o = json_object(), *list = json_array(), *unjudged = json_array();
    for (size_t i = 0; file && i < f->count; i++) json_array_append_new(list, finding_json(file, &f->row[i]));
    for (size_t i = 0; i < f->not_judged_count; i++) {
        json_t *row = json_object();
        json_object_set_new(row, "what", json_text(f->not_judged[i].what));
        json_object_set_new(row, "why", json_text(f->not_judged[i].why));
        json_array_append_new(unjudged, row);
    }
    json_object_set_new(o, "findings", list);
    json_object_set_new(o, "not_judged", unjudged);
    return o;
}

json_t *job_findings_json(const struct job_part *part, const struct findings *f)
{
    json_t *o = findings_json(NULL, f), *list = json_object_get(o, "findings");
    for (size_t i = 0; i < f->count; i++) {
        const struct finding *row = &f->row[i];
        bool one = row->file != SIZE_MAX;
        json_t *finding = finding_json(part[one ? row->file : 0].file, row), *ranks = json_array();
        for (size_t k = 0; k < row->ranks; k++) json_array_append_new(ranks, json_integer(row->rank[k]));
        json_object_set_new(finding, "ranks", ranks);
        json_object_set_new(finding, "ranks_in_all", json_integer((json_int_t)row->ranks_in_all));
        json_object_set_new(finding, "file", one ? json_text(part[row->file].path) : json_null());
        json_array_append_new(list, finding);
    }
    return o;
}
