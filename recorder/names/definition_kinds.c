/* SPDX-License-Identifier: MIT */
/* The definitions that programs make: regions, metrics, markers, files, communicators, types of events, later names. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/text/message.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/names/wanted_definition.h"
#include "recorder/recording.h"

enum { RANKS_MAX = 16 << 20 /* of a communicator: so no sum of sizes comes near 2^32 */ };

static uint8_t metric_type[FDRI_NAMES_METRICS_MAX];
static struct fdri_names_event_shape shapes[FDRI_NAMES_EVENTS_MAX];
static uint32_t fields_most; /* largest number of fields of a type; set before the type's shape is published */

/* How a value of enum fdr_type is stored. */
static const uint8_t wide[] = {FDRI_ARENA_VALUE_U64, FDRI_ARENA_VALUE_I64, FDRI_ARENA_VALUE_F64,
                               FDRI_ARENA_VALUE_U64, FDRI_ARENA_VALUE_I64, FDRI_ARENA_VALUE_F64};

fdr_region fdr_region_define(const char *name, const char *file, unsigned line)
{
    struct fdri_names_wanted w = fdri_names_wanted_as(FDRI_ARENA_DEF_REGION, name, file);
    struct fdri_names_held h;
    w.line = line;
    if (!fdri_names_enter_on(&h)) return 0;
    fdr_region id = fdri_names_define_wanted(&w, NULL, 0);
    const struct fdri_names_called called = {.count = 1, .name = {w.name}};
    if (id) fdri_names_rules_define(id, &called, w.file, false);
    fdri_names_leave_lock(&h);
    return id;
}

fdr_metric_id fdr_metric_define(const char *name, const char *unit, enum fdr_type type, enum fdr_metric_kind kind)
{
    uint8_t stored = (unsigned)type < sizeof wide ? wide[type] : FDRI_ARENA_VALUE_U64;
    struct fdri_names_wanted w = fdri_names_wanted_as(FDRI_ARENA_DEF_METRIC, name, unit);
    struct fdri_names_held h;
    w.line = kind == FDR_METRIC_COUNTER;
    w.value = stored;
    if (!fdri_names_enter_on(&h)) return 0;
    uint32_t id = fdri_names_define_wanted(&w, NULL, 0);
    if (id) fdri_atomic_store_relaxed(&metric_type[id], stored);
    fdri_names_leave_lock(&h);
    return id;
}
uint32_t fdri_names_metric_type(uint32_t metric)
{
    return metric < FDRI_NAMES_METRICS_MAX ? fdri_atomic_load_relaxed(&metric_type[metric]) : FDRI_ARENA_VALUE_U64;
}

/* A definition that is no more than a name. */
static uint32_t define_name(enum fdri_arena_def_kind kind, const char *name)
{
    const struct fdri_names_wanted w = fdri_names_wanted_as(kind, name, "");
    struct fdri_names_held h;
    if (!fdri_names_enter_on(&h)) return 0;
    uint32_t id = fdri_names_define_wanted(&w, NULL, 0);
    fdri_names_leave_lock(&h);
    return id;
}

fdr_marker_id fdr_marker_define(const char *name) { return define_name(FDRI_ARENA_DEF_MARKER, name); }
fdr_io_file fdr_io_file_define(const char *name) { return define_name(FDRI_ARENA_DEF_FILE, name); }

/* ---- later names ---- */

static void rename_definition(enum fdri_arena_def_kind kind, uint32_t id, const char *name, const char *file,
                              uint32_t line)
{
    struct fdri_names_wanted w = fdri_names_wanted_as(FDRI_ARENA_DEF_RENAMED, name, file);
    struct fdri_names_held h;
    w.line = line;
    w.value = id;
    w.value2 = kind;
    if (!id || !fdri_names_enter_on(&h)) return;
    if (id <= fdri_names_defined(kind)) fdri_names_find_or_write(&w, NULL, 0);
    fdri_names_leave_lock(&h);
}

void fdr_region_rename(fdr_region region, const char *name, const char *file, unsigned line)
{
    rename_definition(FDRI_ARENA_DEF_REGION, region, name, file, line);
}
void fdr_metric_rename(fdr_metric_id metric, const char *name, const char *unit)
{
    rename_definition(FDRI_ARENA_DEF_METRIC, metric, name, unit, 0);
}
void fdr_marker_rename(fdr_marker_id marker, const char *name)
{
    rename_definition(FDRI_ARENA_DEF_MARKER, marker, name, "", 0);
}

static fdr_comm_id refuse_group(const char *name, size_t size)
{
    static unsigned said;
    struct fdri_names_held h;
    if (!fdri_names_enter_on(&h)) return 0;
    fdri_atomic_add_relaxed(&fdri_life_recording.arena.super->lost_definitions, 1u);
    if (fdri_text_once(&said))
        fdri_text_message(
            "communicator '%.80s' is not defined: it has %zu ranks, more than %d; its events are recorded as the "
            "world's",
            name ? name : "", size, RANKS_MAX);
    fdri_names_leave_lock(&h);
    return 0;
}

fdr_comm_id fdr_comm_define(const char *name, const uint32_t *world_ranks, size_t size)
{
    return fdr_comm_define_as(name, world_ranks, size, 0);
}

fdr_comm_id fdr_comm_define_as(const char *name, const uint32_t *world_ranks, size_t size, uint64_t identity)
{
    if (!world_ranks) size = 0;
    struct fdri_names_wanted w = fdri_names_wanted_as(FDRI_ARENA_DEF_COMM, name, "");
    struct fdri_names_held h;
    if (size > RANKS_MAX) return refuse_group(name, size);
    w.line = (uint32_t)size;
    w.value = fdri_names_hash_text(1, (const char *)world_ranks,
                                   size * 4); /* groups of one name with other ranks differ */
    w.value2 = identity;
    if (!fdri_names_enter_on(&h)) return 0;
    uint32_t id = fdri_names_define_wanted(&w, world_ranks, (uint32_t)size * 4);
    fdri_names_leave_lock(&h);
    return id;
}

/* Called once for each type; from then on its events may be recorded. */
static void publish_shape(struct fdri_names_event_shape *to, const struct fdri_names_event_shape *shape)
{
    memcpy(to->type, shape->type, sizeof to->type);
    memcpy(to->offset, shape->offset, sizeof to->offset);
    fdri_atomic_store_release(&to->count, shape->count); /* R:shape */
}

/* False, with one line: a field of an impossible type or offset. */
static bool describe(const char *name, const struct fdr_field *fields, size_t count,
                     struct fdri_arena_def_field *described, struct fdri_names_event_shape *shape)
{
    static unsigned said;
    for (size_t i = 0; i < count; i++) {
        if ((unsigned)fields[i].type >= sizeof wide || fields[i].offset > UINT16_MAX) {
            if (fdri_text_once(&said))
                fdri_text_message(
                    "event '%.60s': field %zu: type %d or offset %zu is not possible; the event is not defined",
                    name ? name : "", i, (int)fields[i].type, fields[i].offset);
            return false;
        }
        described[i].type = wide[fields[i].type];
        strncpy(described[i].name, fields[i].name ? fields[i].name : "", sizeof described[i].name - 1);
        described[i].name_bytes = (uint16_t)strlen(described[i].name);
        shape->type[i] = (uint8_t)fields[i].type;
        shape->offset[i] = (uint16_t)fields[i].offset;
    }
    shape->count = (uint8_t)count;
    return true;
}

fdr_event_type fdr_event_define(const char *name, const struct fdr_field *fields, size_t count)
{
    struct fdri_arena_def_field described[FDRI_CODEC_FIELDS_MAX];
    struct fdri_names_event_shape shape = {0};
    if (!fdri_atomic_load_relaxed(&fdr_switch_.on)) return 0;
    if (!fields) count = 0;
    size_t given = count;
    count = fdri_bits_min(count, FDRI_CODEC_FIELDS_MAX);
    memset(described, 0, sizeof described);
    if (!describe(name, fields, count, described, &shape)) return 0;
    /* offsets of the fields count: two structures of one name are two event types */
    struct fdri_names_wanted w = fdri_names_wanted_as(FDRI_ARENA_DEF_EVENT, name, "");
    struct fdri_names_held h;
    w.line = (uint32_t)count;
    w.value = fdri_names_hash_text(2, (const char *)described, count * sizeof *described);
    w.value = fdri_names_hash_text(w.value, (const char *)&shape, sizeof shape);
    if (!fdri_names_enter_on(&h)) return 0;
    uint32_t before = fdri_names_defined(FDRI_ARENA_DEF_EVENT);
    uint32_t id = fdri_names_define_wanted(&w, described, (uint32_t)(count * sizeof *described));
    if (count > fdri_names_event_fields()) fdri_atomic_store_relaxed(&fields_most, (uint32_t)count);
    if (id > before) publish_shape(&shapes[id], &shape);
    fdri_names_leave_lock(&h);
    if (id > before && given > count)
        fdri_text_message("event '%.60s' has %zu fields; the first %zu are recorded", w.name, given, count);
    return id;
}

uint32_t fdri_names_event_fields(void) { return fdri_atomic_load_relaxed(&fields_most); }
const struct fdri_names_event_shape *fdri_names_event_shape(uint32_t type)
{
    return type && type < FDRI_NAMES_EVENTS_MAX ? &shapes[type] : NULL;
}
