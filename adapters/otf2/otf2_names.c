/* SPDX-License-Identifier: MIT */
/* Names. Programs write most definitions at the end, so an event may come before the name of its region. Then the
 * region is "OTF2 region 17" until its definition comes. Definitions themselves go to OTF2 unchanged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/otf2/otf2_adapter.h"
#include "base/atomic.h"

/* ---- tables of what was defined; under the archive's lock ---- */

static bool room(struct fdri_otf2_archive *a, void **rows, uint32_t count, uint32_t *have, size_t bytes)
{
    if (count < *have) return true;
    uint32_t want = *have ? *have * 2 : 64;
    void *more = fdri_otf2_take(&a->memory, want * bytes);
    if (!more) return false;
    if (count) memcpy(more, *rows, count * bytes);
    *rows = more;
    *have = want;
    return true;
}

static void keep_string(struct fdri_otf2_archive *a, uint32_t ref, const char *text)
{
    struct fdri_otf2_text *t = &a->strings;
    if (fdri_otf2_refs_get(&t->place, ref) || !room(a, (void **)&t->text, t->count, &t->room, sizeof *t->text)) return;
    char *copy = fdri_otf2_take(&a->memory, strlen(text) + 1);
    if (copy && fdri_otf2_refs_set(&a->memory, &t->place, ref, t->count + 1)) t->text[t->count++] = strcpy(copy, text);
}

static const char *string(struct fdri_otf2_archive *a, uint32_t ref)
{
    uint32_t place = fdri_otf2_refs_get(&a->strings.place, ref);
    return place ? a->strings.text[place - 1] : "";
}

static void keep_name(struct fdri_otf2_archive *a, struct fdri_otf2_names *n, struct fdri_otf2_named row)
{
    if (fdri_otf2_refs_get(&n->place, row.ref) || !room(a, (void **)&n->row, n->count, &n->room, sizeof *n->row))
        return;
    if (fdri_otf2_refs_set(&a->memory, &n->place, row.ref, n->count + 1)) n->row[n->count++] = row;
}

/* The entry of a reference. NULL: there is none, or its name is not known. */
static const struct fdri_otf2_named *named(struct fdri_otf2_archive *a, struct fdri_otf2_names *n, uint32_t ref)
{
    uint32_t place = a->mapped ? 0 : fdri_otf2_refs_get(&n->place, ref);
    return place && *string(a, n->row[place - 1].name) ? &n->row[place - 1] : NULL;
}

/* ---- ids for references ---- */

/* Two references have two ids, also if they have one name, or one number in two archives. */
static void unnamed(const struct fdri_otf2_archive *a, char *text, size_t bytes, const char *kind, const char *name,
                    uint32_t ref)
{
    char archive[16] = "";
    if (a->number > 1) snprintf(archive, sizeof archive, "%u: ", a->number);
    if (*name) snprintf(text, bytes, "%s (%sOTF2 %s %u)", name, archive, kind, ref);
    else snprintf(text, bytes, "%sOTF2 %s %u", archive, kind, ref);
}

static uint32_t taken(struct fdri_otf2_archive *a, struct fdri_otf2_refs *r, uint32_t ref, uint32_t id)
{
    return id && fdri_otf2_refs_set(&a->memory, r, ref, id) ? id : 0;
}

/* A region that only had a name for itself gets its own with fdr_region_rename. */
static fdr_region define_region(struct fdri_otf2_archive *a, OTF2_RegionRef ref)
{
    const struct fdri_otf2_named *n = named(a, &a->region_names, ref);
    char text[60];
    unnamed(a, text, sizeof text, "region", "", ref);
    fdr_region id = fdr_region_define(text, "", 0);
    if (id && n) fdr_region_rename(id, string(a, n->name), string(a, n->file), n->line);
    return taken(a, &a->regions, ref, id);
}

fdr_region fdri_otf2_region_id(struct fdri_otf2_archive *a, OTF2_RegionRef ref)
{
    fdr_region id = fdri_otf2_refs_get(&a->regions, ref);
    if (id) return id;
    fdri_otf2_lock(&a->lock);
    id = fdri_otf2_refs_get(&a->regions, ref);
    if (!id) id = define_region(a, ref);
    fdri_otf2_unlock(&a->lock);
    return id;
}

static uint32_t define_simple(struct fdri_otf2_archive *a, struct fdri_otf2_refs *r, struct fdri_otf2_names *names,
                              const char *kind, uint32_t ref, uint32_t (*define)(const char *name))
{
    char text[400];
    uint32_t id = fdri_otf2_refs_get(r, ref);
    if (id) return id;
    fdri_otf2_lock(&a->lock);
    id = fdri_otf2_refs_get(r, ref);
    const struct fdri_otf2_named *n = names ? named(a, names, ref) : NULL;
    unnamed(a, text, sizeof text, kind, n ? string(a, n->name) : "", ref);
    if (!id) id = taken(a, r, ref, define(text));
    fdri_otf2_unlock(&a->lock);
    return id;
}

static uint32_t define_comm(const char *name) { return fdr_comm_define(name, NULL, 0); }

uint32_t fdri_otf2_comm_id(struct fdri_otf2_archive *a, OTF2_CommRef ref)
{
    return define_simple(a, &a->comms, NULL, "communicator", ref, define_comm);
}
uint32_t fdri_otf2_handle_id(struct fdri_otf2_archive *a, OTF2_IoHandleRef ref)
{
    return define_simple(a, &a->handles, &a->handle_names, "io handle", ref, fdr_io_file_define);
}
uint32_t fdri_otf2_parameter_id(struct fdri_otf2_archive *a, OTF2_ParameterRef ref, bool is_signed)
{
    return define_simple(a, is_signed ? &a->signed_ : &a->unsigned_, &a->parameter_names,
                         is_signed ? "signed parameter" : "parameter", ref, fdr_marker_define);
}

/* ---- metrics ---- */

static enum fdr_type type_of(OTF2_Type type)
{
    return type == OTF2_TYPE_DOUBLE ? FDR_F64 : type == OTF2_TYPE_INT64 ? FDR_I64 : FDR_U64;
}

/* The first member's row of a class. */
static const struct fdri_otf2_named *member_of(struct fdri_otf2_archive *a, OTF2_MetricRef ref)
{
    uint32_t place = a->mapped ? 0 : fdri_otf2_refs_get(&a->class_members.place, ref);
    return place ? named(a, &a->member_names, a->class_members.row[place - 1].name) : NULL;
}

static uint32_t define_metric(struct fdri_otf2_archive *a, const struct fdri_otf2_metric *m)
{
    static const char *const type_name[] = {"", " signed", " float"};
    const struct fdri_otf2_named *n = member_of(a, m->ref);
    char text[500], field_name[FDRI_OTF2_FIELDS][12];
    struct fdr_field field[FDRI_OTF2_FIELDS];
    unnamed(a, text, 400, "metric", n ? string(a, n->name) : "", m->ref);
    if (m->count == 1) {
        enum fdr_type type = type_of(m->type[0]);
        strcat(text, type_name[type == FDR_F64 ? 2 : type == FDR_I64]);
        return fdr_metric_define(text, n ? string(a, n->file) : "", type, FDR_METRIC_GAUGE);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        snprintf(field_name[i], sizeof field_name[i], "value%u", i + 1);
        field[i] = (struct fdr_field){field_name[i], type_of(m->type[i]), i * sizeof(uint64_t)};
    }
    return fdr_event_define(text, field, m->count);
}

static struct fdri_otf2_metric *find_metric(struct fdri_otf2_archive *a, OTF2_MetricRef ref, uint8_t count,
                                            const OTF2_Type *type)
{
    struct fdri_otf2_metric *m = fdri_atomic_load_acquire(&a->metrics); /* A:refs */
    while (m && (m->ref != ref || m->count != count || memcmp(m->type, type, count * sizeof *type) != 0)) m = m->next;
    return m;
}

struct fdri_otf2_metric *fdri_otf2_metric_id(struct fdri_otf2_archive *a, OTF2_MetricRef ref, uint8_t count,
                                             const OTF2_Type *type)
{
    if (!count || count > FDRI_OTF2_FIELDS) return NULL;
    struct fdri_otf2_metric *m = find_metric(a, ref, count, type);
    if (m) return m;
    fdri_otf2_lock(&a->lock);
    m = find_metric(a, ref, count, type);
    struct fdri_otf2_metric *made = m ? NULL : fdri_otf2_take(&a->memory, sizeof *made);
    if (made) {
        *made = (struct fdri_otf2_metric){.next = a->metrics, .ref = ref, .count = count};
        memcpy(made->type, type, count * sizeof *type);
        made->id = define_metric(a, made);
        fdri_atomic_store_release(&a->metrics, made); /* R:refs */
    }
    fdri_otf2_unlock(&a->lock);
    return m ? m : made;
}

/* ---- definitions on their way to OTF2 ---- */

/* NULL: there is no such archive, or an instrumenter defines the locks that fdr takes in this moment. */
static struct fdri_otf2_archive *locked(const OTF2_GlobalDefWriter *writer)
{
    if (fdri_otf2_inside) return NULL;
    struct fdri_otf2_archive *a = fdri_otf2_archive_of_definitions(writer);
    if (a) fdri_otf2_lock(&a->lock);
    return a;
}

OTF2_ErrorCode OTF2_GlobalDefWriter_WriteString(OTF2_GlobalDefWriter *writer, OTF2_StringRef self, const char *text)
{
    struct fdri_otf2_archive *a = locked(writer);
    if (a) keep_string(a, self, text);
    if (a) fdri_otf2_unlock(&a->lock);
    return FDRI_OTF2_REAL(OTF2_GlobalDefWriter_WriteString)(writer, self, text);
}

OTF2_ErrorCode OTF2_GlobalDefWriter_WriteRegion(OTF2_GlobalDefWriter *writer, OTF2_RegionRef self, OTF2_StringRef name,
                                                OTF2_StringRef canonical, OTF2_StringRef description,
                                                OTF2_RegionRole role, OTF2_Paradigm paradigm, OTF2_RegionFlag flags,
                                                OTF2_StringRef file, uint32_t from, uint32_t to)
{
    struct fdri_otf2_archive *a = locked(writer);
    if (a) {
        keep_name(a, &a->region_names, (struct fdri_otf2_named){self, name, file, from});
        fdr_region id = fdri_otf2_refs_get(&a->regions, self);
        if (id && named(a, &a->region_names, self)) fdr_region_rename(id, string(a, name), string(a, file), from);
        fdri_otf2_unlock(&a->lock);
    }
    return FDRI_OTF2_REAL(OTF2_GlobalDefWriter_WriteRegion)(writer, self, name, canonical, description, role, paradigm,
                                                            flags, file, from, to);
}

OTF2_ErrorCode OTF2_GlobalDefWriter_WriteMetricMember(OTF2_GlobalDefWriter *writer, OTF2_MetricMemberRef self,
                                                      OTF2_StringRef name, OTF2_StringRef description,
                                                      OTF2_MetricType type, OTF2_MetricMode mode, OTF2_Type value,
                                                      OTF2_Base base, int64_t exponent, OTF2_StringRef unit)
{
    struct fdri_otf2_archive *a = locked(writer);
    if (a) keep_name(a, &a->member_names, (struct fdri_otf2_named){self, name, unit, 0});
    if (a) fdri_otf2_unlock(&a->lock);
    return FDRI_OTF2_REAL(OTF2_GlobalDefWriter_WriteMetricMember)(writer, self, name, description, type, mode, value,
                                                                  base, exponent, unit);
}

/* A metric of one value gets the name of its member. */
static void name_metrics(struct fdri_otf2_archive *a, OTF2_MetricRef ref)
{
    const struct fdri_otf2_named *n = member_of(a, ref);
    for (struct fdri_otf2_metric *m = n ? a->metrics : NULL; m; m = m->next)
        if (m->ref == ref && m->count == 1 && m->id) fdr_metric_rename(m->id, string(a, n->name), string(a, n->file));
}

OTF2_ErrorCode OTF2_GlobalDefWriter_WriteMetricClass(OTF2_GlobalDefWriter *writer, OTF2_MetricRef self, uint8_t count,
                                                     const OTF2_MetricMemberRef *member,
                                                     OTF2_MetricOccurrence occurrence, OTF2_RecorderKind kind)
{
    struct fdri_otf2_archive *a = locked(writer);
    if (a && count) keep_name(a, &a->class_members, (struct fdri_otf2_named){self, member[0], 0, 0});
    if (a) name_metrics(a, self);
    if (a) fdri_otf2_unlock(&a->lock);
    return FDRI_OTF2_REAL(OTF2_GlobalDefWriter_WriteMetricClass)(writer, self, count, member, occurrence, kind);
}

OTF2_ErrorCode OTF2_GlobalDefWriter_WriteParameter(OTF2_GlobalDefWriter *writer, OTF2_ParameterRef self,
                                                   OTF2_StringRef name, OTF2_ParameterType type)
{
    struct fdri_otf2_archive *a = locked(writer);
    if (a) {
        keep_name(a, &a->parameter_names, (struct fdri_otf2_named){self, name, 0, 0});
        struct fdri_otf2_refs *r = type == OTF2_PARAMETER_TYPE_INT64 ? &a->signed_ : &a->unsigned_;
        uint32_t id = fdri_otf2_refs_get(r, self);
        if (id && named(a, &a->parameter_names, self)) fdr_marker_rename(id, string(a, name));
        fdri_otf2_unlock(&a->lock);
    }
    return FDRI_OTF2_REAL(OTF2_GlobalDefWriter_WriteParameter)(writer, self, name, type);
}

OTF2_ErrorCode OTF2_GlobalDefWriter_WriteIoHandle(OTF2_GlobalDefWriter *writer, OTF2_IoHandleRef self,
                                                  OTF2_StringRef name, OTF2_IoFileRef file, OTF2_IoParadigmRef paradigm,
                                                  OTF2_IoHandleFlag flags, OTF2_CommRef comm, OTF2_IoHandleRef parent)
{
    struct fdri_otf2_archive *a = locked(writer);
    if (a) keep_name(a, &a->handle_names, (struct fdri_otf2_named){self, name, 0, 0});
    if (a) fdri_otf2_unlock(&a->lock);
    return FDRI_OTF2_REAL(OTF2_GlobalDefWriter_WriteIoHandle)(writer, self, name, file, paradigm, flags, comm, parent);
}

/* References of events are then those of a process, and its names are not known: the regions keep their numbers. Local
 * definitions do not say their archive. */
OTF2_ErrorCode OTF2_DefWriter_WriteMappingTable(OTF2_DefWriter *writer, OTF2_MappingType type, const OTF2_IdMap *map)
{
    struct fdri_otf2_archive *a = locked(NULL);
    if (a && (type == OTF2_MAPPING_REGION || type == OTF2_MAPPING_METRIC || type == OTF2_MAPPING_PARAMETER))
        a->mapped = true;
    if (a) fdri_otf2_unlock(&a->lock);
    return FDRI_OTF2_REAL(OTF2_DefWriter_WriteMappingTable)(writer, type, map);
}

/* The archive's count of events of a location, if that was written; else the program's own. */
OTF2_ErrorCode OTF2_GlobalDefWriter_WriteLocation(OTF2_GlobalDefWriter *writer, OTF2_LocationRef self,
                                                  OTF2_StringRef name, OTF2_LocationType type, uint64_t events,
                                                  OTF2_LocationGroupRef group)
{
    struct fdri_otf2_archive *a = locked(writer);
    for (struct fdri_otf2_writer *w = a && a->written_back ? a->writers : NULL; w; w = w->next)
        if (w->location == self && w->events_there != w->events) events = w->events_there;
    if (a) fdri_otf2_unlock(&a->lock);
    return FDRI_OTF2_REAL(OTF2_GlobalDefWriter_WriteLocation)(writer, self, name, type, events, group);
}
