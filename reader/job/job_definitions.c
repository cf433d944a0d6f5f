/* SPDX-License-Identifier: MIT */
/* Definitions of a job: equal ones of several files become one. */
#include "reader/job/job.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is equal ---- */

static bool same_fields(const struct fdr_event_info *a, const struct fdr_event_info *b)
{
    if (a->field_count != b->field_count) return false;
    for (uint32_t i = 0; i < a->field_count; i++)
        if (a->field[i].type != b->field[i].type || strcmp(a->field[i].name, b->field[i].name)) return false;
    return true;
}

/* Addresses differ from process to process; the names that they got are compared. */
static bool same(const struct fdri_file_definition *a, const struct fdri_file_definition *b)
{
    if (a->d.kind == FDR_COMM_DEFINITION) return a->comm.identity == b->comm.identity;
    if (a->d.line != b->d.line || strcmp(a->d.name, b->d.name) || strcmp(a->d.file, b->d.file)) return false;
    if (a->d.kind == FDR_EVENT_DEFINITION) return same_fields(&a->event, &b->event);
    if (a->d.kind == FDR_REGION_DEFINITION) return !a->d.address == !b->d.address;
    return a->d.kind != FDR_METRIC_DEFINITION ||
           (a->metric.type == b->metric.type && a->metric.counter == b->metric.counter &&
            !strcmp(a->metric.unit, b->metric.unit));
}

static size_t hash(const struct fdri_file_definition *d)
{
    uint64_t h = d->d.kind == FDR_COMM_DEFINITION ? d->comm.identity : d->d.line;
    for (const char *p = d->d.kind == FDR_COMM_DEFINITION ? "" : d->d.name; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x9E3779B97F4A7C15u;
    return (size_t)(h ^ h >> 29);
}

/* ---- the table ---- */

struct table {
    struct fdri_file_definitions *all;
    uint32_t *slot;     /* index + 1 of the row; 0: free */
    size_t slots;       /* a power of two, more than twice the rows that may come */
    uint32_t *taken_by; /* of each row: the part that took it last, from 1 */
};

/* Definitions of one file stay apart, also if they are equal: two static functions of a name. */
static uint32_t id_for(struct table *t, const struct fdri_file_definition *d, uint32_t part)
{
    size_t i = hash(d) & (t->slots - 1);
    for (; t->slot[i]; i = (i + 1) & (t->slots - 1)) {
        uint32_t row = t->slot[i] - 1;
        if (t->taken_by[row] == part || !same(&t->all->row[row], d)) continue;
        t->taken_by[row] = part;
        return row + 1;
    }
    uint32_t row = (uint32_t)t->all->count++, id = row + 1;
    struct fdri_file_definition *to = &t->all->row[row];
    *to = *d;
    to->d.id = to->metric.id = id; /* `id` comes first in all that depends on the kind */
    t->slot[i] = id;
    t->taken_by[row] = part;
    return id;
}

static bool ids_of_part(struct table *t, struct fdr_file *f, struct fdri_job_part *p, uint32_t kind, uint32_t number)
{
    const struct fdri_file_definitions *from = &p->file->definitions[kind];
    size_t ids = (size_t)from->id_max + 1;
    p->id[kind] = fdri_file_alloc(f, ids * sizeof(uint32_t));
    if (!p->id[kind]) return false;
    p->ids[kind] = ids;
    for (size_t i = 0; i < from->count; i++) p->id[kind][from->row[i].d.id] = id_for(t, &from->row[i], number);
    return true;
}

static bool join_kind(struct fdr_file *f, struct fdri_job *job, uint32_t kind)
{
    struct table t = {.all = &f->definitions[kind], .slots = 64};
    size_t most = 1;
    bool good;
    for (size_t i = 0; i < job->count; i++) most += job->part[i].file->definitions[kind].count;
    while (t.slots < 2 * most) t.slots *= 2;
    t.slot = fdri_file_calloc(t.slots, sizeof *t.slot);
    t.taken_by = fdri_file_calloc(most, sizeof *t.taken_by);
    t.all->row = fdri_file_calloc(most, sizeof *t.all->row);
    t.all->room = most;
    good = t.slot && t.taken_by && t.all->row;
    for (size_t i = 0; good && i < job->count; i++) good = ids_of_part(&t, f, &job->part[i], kind, (uint32_t)i + 1);
    t.all->id_max = (uint32_t)t.all->count;
    free(t.slot);
    free(t.taken_by);
    return good;
}

/* Fields of counters name a metric. */
static bool own_fields(struct fdr_file *f)
{
    struct fdri_file_definitions *events = &f->definitions[FDR_EVENT_DEFINITION];
    for (size_t i = 0; i < events->count; i++) {
        struct fdr_event_info *e = &events->row[i].event;
        struct fdr_field_info *field = fdri_file_alloc(f, e->field_count * sizeof *field);
        if (!field) return false;
        for (uint32_t k = 0; k < e->field_count; k++) {
            field[k] = e->field[k];
            field[k].metric = 0;
        }
        e->field = field;
    }
    fdri_file_field_units(f);
    return true;
}

/* Modules stay with their file: each process has them at other addresses. Later names are in their definitions. */
bool fdri_job_definitions(struct fdr_file *f, struct fdri_job *job)
{
    for (uint32_t kind = 1; kind < FDRI_FILE_KINDS; kind++)
        if (kind != FDR_MODULE_DEFINITION && kind != FDRI_ARENA_DEF_RENAMED && !join_kind(f, job, kind)) return false;
    return own_fields(f);
}
