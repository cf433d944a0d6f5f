/* SPDX-License-Identifier: MIT */
/* The contents of definitions of metrics, events and communicators beside a name. */
#include "format/codec/record_codec.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdlib.h>
#include <string.h>

/* The recorder widens 32 bits to 64: types 3 to 5 are 0 to 2. */
static enum fdr_value_type type_of(uint64_t stored) { return (enum fdr_value_type)(stored < 6 ? stored % 3 : 0); }

static void take_fields(struct fdr_file *f, const struct fdri_arena_def *d, const uint8_t *payload,
                        struct fdr_event_info *out)
{
    uint32_t count = d->payload_bytes / sizeof(struct fdri_arena_def_field);
    if (count > FDRI_CODEC_FIELDS_MAX) count = FDRI_CODEC_FIELDS_MAX;
    struct fdr_field_info *field = fdri_file_alloc(f, count * sizeof *field);
    if (!field) return;
    for (uint32_t i = 0; i < count; i++) {
        struct fdri_arena_def_field stored;
        memcpy(&stored, payload + i * sizeof stored, sizeof stored);
        const char *name = fdri_file_text(f, stored.name, strnlen(stored.name, sizeof stored.name));
        if (!name) return;
        field[i] = (struct fdr_field_info){.name = name, .unit = "", .type = type_of(stored.type)};
    }
    out->field_count = count;
    out->field = field;
}

static void take_ranks(struct fdr_file *f, const struct fdri_arena_def *d, const uint8_t *payload,
                       struct fdr_comm_info *out)
{
    uint32_t size = d->payload_bytes / sizeof *out->world_rank;
    uint32_t *rank = d->line == size ? fdri_file_alloc(f, size * sizeof *rank) : NULL;
    if (!rank) return;
    memcpy(rank, payload, size * sizeof *rank);
    out->size = size;
    out->world_rank = rank;
}

/* Of communicators that were defined without an identity: a hash of name and ranks, which all processes share. */
static uint64_t identity_of(const struct fdr_comm_info *c)
{
    uint64_t h = c->size;
    for (const char *p = c->name; *p; p++) h = (h ^ (unsigned char)*p) * 0x9E3779B97F4A7C15u;
    for (uint32_t i = 0; i < c->size; i++) h = (h ^ c->world_rank[i]) * 0x9E3779B97F4A7C15u ^ h >> 29;
    return h | 2; /* neither 0 nor that of the world */
}

void fdri_file_type_definition(struct fdr_file *f, const struct fdri_arena_def *d, const uint8_t *payload,
                               struct fdri_file_definition *out)
{
    switch (d->kind) {
    case FDRI_ARENA_DEF_METRIC:
        out->metric = (struct fdr_metric_info){
            .id = d->id, .name = out->d.name, .unit = out->d.file, .type = type_of(d->value), .counter = d->line == 1};
        out->d.file = "";
        out->d.line = 0;
        break;
    case FDRI_ARENA_DEF_EVENT:
        out->event = (struct fdr_event_info){.id = d->id, .name = out->d.name};
        take_fields(f, d, payload, &out->event);
        break;
    case FDRI_ARENA_DEF_COMM:
        out->comm = (struct fdr_comm_info){.id = d->id, .name = out->d.name};
        take_ranks(f, d, payload, &out->comm);
        out->comm.identity = d->value2 ? d->value2 : identity_of(&out->comm);
        out->d.line = 0;
        break;
    default: break;
    }
}

void fdri_file_type_unknown(struct fdri_file_definition *out)
{
    const struct fdr_definition *d = &out->d;
    if (d->kind == FDR_METRIC_DEFINITION)
        out->metric = (struct fdr_metric_info){.id = d->id, .name = d->name, .unit = ""};
    if (d->kind == FDR_EVENT_DEFINITION) out->event = (struct fdr_event_info){.id = d->id, .name = d->name};
    if (d->kind == FDR_COMM_DEFINITION)
        out->comm = (struct fdr_comm_info){.id = d->id, .name = d->name, .identity = d->id == 0};
}

/* ---- units of the fields of fdr's own events: a field is named for its metric ---- */

enum { NAME_BYTES = 27 }; /* longer names of fields are cut */

static int by_name(const void *x, const void *y)
{
    const struct fdri_file_definition *const *a = x, *const *b = y;
    int order = strcmp((*a)->d.name, (*b)->d.name);
    return order ? order : (*a)->d.id < (*b)->d.id ? -1 : (*a)->d.id > (*b)->d.id;
}

/* The first metric, in order of names, whose name begins with `name` if that was cut, and equals it otherwise. */
static const struct fdr_metric_info *metric_named(const struct fdri_file_definition *const *sorted, size_t count,
                                                  const char *name)
{
    size_t low = 0, high = count, length = strlen(name);
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (strcmp(sorted[i]->d.name, name) < 0) low = i + 1;
        else high = i;
    }
    if (low == count || strncmp(sorted[low]->d.name, name, NAME_BYTES)) return NULL;
    return length == NAME_BYTES || !strcmp(sorted[low]->d.name, name) ? &sorted[low]->metric : NULL;
}

/* A cut name may end with '#' and the number of its metric. */
static const struct fdr_metric_info *metric_numbered(const struct fdr_file *f, const char *name)
{
    const char *mark = strlen(name) == NAME_BYTES ? strrchr(name, '#') : NULL;
    unsigned long id = mark ? strtoul(mark + 1, NULL, 10) : 0;
    const struct fdri_file_definition *d = id && id <= UINT32_MAX
                                               ? fdri_file_definition(f, FDRI_ARENA_DEF_METRIC, (uint32_t)id)
                                               : NULL;
    return d && !strncmp(d->d.name, name, (size_t)(mark - name)) ? &d->metric : NULL;
}

static bool is_own(const char *name) { return !strcmp(name, "fdr.edges") || !strncmp(name, "fdr.counters.", 13); }

static void take_units(const struct fdr_file *f, const struct fdri_file_definition *const *sorted, size_t count,
                       const struct fdr_event_info *event)
{
    uint32_t before = strcmp(event->name, "fdr.edges") ? 4 : 0; /* thread, series, reading, idle: docs/COUNTERS.md */
    for (uint32_t i = before; i < event->field_count; i++) {
        struct fdr_field_info *field = (struct fdr_field_info *)(uintptr_t)&event->field[i];
        const struct fdr_metric_info *m = metric_numbered(f, field->name);
        if (!m) m = metric_named(sorted, count, field->name);
        if (!m) continue;
        field->unit = m->unit;
        field->metric = m->id;
    }
}

void fdri_file_field_units(struct fdr_file *f)
{
    const struct fdri_file_definitions *metrics = &f->definitions[FDRI_ARENA_DEF_METRIC];
    const struct fdri_file_definitions *events = &f->definitions[FDRI_ARENA_DEF_EVENT];
    const struct fdri_file_definition **sorted = metrics->count && events->count
                                                     ? fdri_file_malloc(metrics->count * sizeof *sorted)
                                                     : NULL;
    if (!sorted) return;
    for (size_t i = 0; i < metrics->count; i++) sorted[i] = &metrics->row[i];
    qsort(sorted, metrics->count, sizeof *sorted, by_name);
    for (size_t i = 0; i < events->count; i++)
        if (is_own(events->row[i].d.name)) take_units(f, sorted, metrics->count, &events->row[i].event);
    free(sorted);
}

/* ---- lookup ---- */

const struct fdr_metric_info *fdr_metric_info(const struct fdr_file *file, uint32_t id)
{
    return &fdri_file_definition_or_unknown(file, FDRI_ARENA_DEF_METRIC, id)->metric;
}

const struct fdr_event_info *fdr_event_info(const struct fdr_file *file, uint32_t id)
{
    return &fdri_file_definition_or_unknown(file, FDRI_ARENA_DEF_EVENT, id)->event;
}

const struct fdr_comm_info *fdr_comm_info(const struct fdr_file *file, uint32_t id)
{
    return &fdri_file_definition_or_unknown(file, FDRI_ARENA_DEF_COMM, id)->comm;
}
