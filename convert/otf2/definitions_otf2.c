/* SPDX-License-Identifier: MIT */
/* Definitions of an archive that events refer to. Recordings of several processes share them: a region with the same
 * name and place is one region. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/otf2/otf2.h"
#include "convert/titles.h"

/* The number of a key; the caller writes the definition if it is new. */
static uint32_t number_of(struct fdri_otf2 *o, struct fdri_convert_interned *t, const void *key, size_t bytes,
                          bool *is_new)
{
    uint32_t number = fdri_convert_intern(t, key, bytes, is_new);
    if (number == FDRI_CONVERT_NO_NUMBER && !o->error) o->error = -ENOMEM;
    return number;
}

/* ---- strings ---- */

/* Characters that are not plain become spaces, as in fdr dump. The result is `text` or has to be freed. */
static char *plain(const char *text)
{
    size_t at = 0;
    while (text[at] && fdri_convert_text_plain(text + at)) at += fdri_convert_text_plain(text + at);
    if (!text[at]) return NULL;
    char *copy = strdup(text);
    for (size_t n; copy && copy[at]; at += n ? n : 1) {
        n = fdri_convert_text_plain(copy + at);
        if (!n) copy[at] = ' ';
    }
    return copy;
}

uint32_t fdri_otf2_string(struct fdri_otf2 *o, const char *text)
{
    bool is_new;
    char *copy = plain(text);
    const char *shown = copy ? copy : text;
    uint32_t number = number_of(o, &o->strings, shown, strlen(shown), &is_new);
    if (is_new) fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteString(o->def, number, shown));
    free(copy);
    return number;
}

/* ---- regions ---- */

struct region_key {
    uint32_t name, file, line, role, paradigm;
};

/* The roles of functions of MPI. A function without an entry here has the role of its group. */
static OTF2_RegionRole role_of_mpi(const char *group, const char *name)
{
    static const struct {
        const char *name;
        OTF2_RegionRole role;
    } known[] = {{"MPI_Barrier", OTF2_REGION_ROLE_BARRIER},        {"MPI_Bcast", OTF2_REGION_ROLE_COLL_ONE2ALL},
                 {"MPI_Scatter", OTF2_REGION_ROLE_COLL_ONE2ALL},   {"MPI_Scatterv", OTF2_REGION_ROLE_COLL_ONE2ALL},
                 {"MPI_Gather", OTF2_REGION_ROLE_COLL_ALL2ONE},    {"MPI_Gatherv", OTF2_REGION_ROLE_COLL_ALL2ONE},
                 {"MPI_Reduce", OTF2_REGION_ROLE_COLL_ALL2ONE},    {"MPI_Allreduce", OTF2_REGION_ROLE_COLL_ALL2ALL},
                 {"MPI_Allgather", OTF2_REGION_ROLE_COLL_ALL2ALL}, {"MPI_Allgatherv", OTF2_REGION_ROLE_COLL_ALL2ALL},
                 {"MPI_Alltoall", OTF2_REGION_ROLE_COLL_ALL2ALL},  {"MPI_Alltoallv", OTF2_REGION_ROLE_COLL_ALL2ALL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].role;
    if (strcmp(group, "mpi:p2p") == 0) return OTF2_REGION_ROLE_POINT2POINT;
    if (strcmp(group, "mpi:coll") == 0) return OTF2_REGION_ROLE_COLL_OTHER;
    if (strcmp(group, "mpi:rma") == 0) return OTF2_REGION_ROLE_RMA;
    if (strcmp(group, "mpi:io") == 0) return OTF2_REGION_ROLE_FILE_IO;
    return OTF2_REGION_ROLE_FUNCTION;
}

/* fdr's own adapters say their group in the place of the file: "mpi:p2p", "io:posix". */
static struct region_key describe(const struct fdr_definition *d)
{
    struct region_key key = {.line = d->line, .role = OTF2_REGION_ROLE_FUNCTION, .paradigm = OTF2_PARADIGM_COMPILER};
    if (strncmp(d->file, "mpi:", 4) == 0) {
        key.paradigm = OTF2_PARADIGM_MPI;
        key.role = role_of_mpi(d->file, d->name);
    } else if (strncmp(d->file, "io:", 3) == 0) {
        key.paradigm = OTF2_PARADIGM_NONE;
        key.role = OTF2_REGION_ROLE_FILE_IO;
    } else if (!d->address) {
        key.paradigm = OTF2_PARADIGM_USER;
        key.role = OTF2_REGION_ROLE_CODE;
    }
    return key;
}

static uint32_t define_region(struct fdri_otf2 *o, struct region_key key, const char *name, const char *file)
{
    bool is_new;
    uint32_t none = fdri_otf2_string(o, "");
    key.name = fdri_otf2_string(o, name);
    key.file = fdri_otf2_string(o, file);
    uint32_t number = number_of(o, &o->regions, &key, sizeof key, &is_new);
    if (is_new)
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteRegion(o->def, number, key.name, key.name, none,
                                                            (OTF2_RegionRole)key.role, (OTF2_Paradigm)key.paradigm,
                                                            OTF2_REGION_FLAG_NONE, key.file, key.line, 0));
    return number;
}

static uint32_t region_of_id(struct fdri_otf2 *o, uint32_t id)
{
    struct fdri_otf2_process *p = &o->process[o->at];
    if (id < p->regions && p->region[id] != UINT32_MAX) return p->region[id];
    const struct fdr_definition *d = fdr_definition(p->file, FDR_REGION_DEFINITION, id);
    uint32_t number = define_region(o, describe(d), d->name, d->file);
    if (id < p->regions) p->region[id] = number;
    return number;
}

static uint32_t artificial(struct fdri_otf2 *o, const char *name)
{
    const struct region_key key = {.role = OTF2_REGION_ROLE_ARTIFICIAL, .paradigm = OTF2_PARADIGM_MEASUREMENT_SYSTEM};
    return define_region(o, key, name, "");
}

uint32_t fdri_otf2_region(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    return e->reduced ? artificial(o, fdri_convert_call(o->process[o->at].file, e)) : region_of_id(o, e->id);
}

/* ---- stacks of samples: a tree ---- */

static uint32_t context_below(struct fdri_otf2 *o, uint32_t parent, uint32_t region)
{
    const struct {
        uint32_t parent, region;
    } key = {parent, region};
    bool is_new;
    uint32_t number = number_of(o, &o->contexts, &key, sizeof key, &is_new);
    if (is_new)
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteCallingContext(o->def, number, region,
                                                                    OTF2_UNDEFINED_SOURCE_CODE_LOCATION, parent));
    return number;
}

static uint32_t function_below(struct fdri_otf2 *o, uint32_t parent, const struct fdr_place *at)
{
    const struct region_key key = {.role = OTF2_REGION_ROLE_FUNCTION, .paradigm = OTF2_PARADIGM_SAMPLING};
    return context_below(o, parent, define_region(o, key, at->function, at->file ? at->file : ""));
}

static uint32_t place_below(struct fdri_otf2 *o, uint32_t parent, uint64_t address, bool returns, uint64_t time_ns)
{
    const struct fdr_place *at = fdr_place_at(o->process[o->at].file, address, returns, time_ns);
    parent = function_below(o, parent, at);
    for (uint32_t i = at->inlined_count; i-- > 0;) parent = function_below(o, parent, &at->inlined[i]);
    return parent;
}

uint32_t fdri_otf2_stack(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *path = e->sample;
    uint32_t at = OTF2_UNDEFINED_CALLING_CONTEXT;
    for (uint32_t i = 0; path && i < path->region_count; i++)
        at = context_below(o, at, region_of_id(o, path->region[i]));
    for (uint32_t i = 0; path && i < path->frame_count; i++) at = place_below(o, at, path->frame[i], true, e->time_ns);
    if (path && path->pc) at = place_below(o, at, path->pc, false, e->time_ns);
    if (path && path->state != UINT32_MAX) {
        const struct fdr_definition *d = fdr_definition(o->process[o->at].file, FDR_REGION_DEFINITION, path->state);
        at = context_below(o, at, artificial(o, d->name));
    }
    return at == OTF2_UNDEFINED_CALLING_CONTEXT ? context_below(o, at, artificial(o, "[no stack]")) : at;
}

uint32_t fdri_otf2_generator(struct fdri_otf2 *o, uint32_t location)
{
    static const char *const by[] = {"processor time", "wall time", "events"};
    const struct fdr_sample_stream *s = fdri_convert_stream(o->process[o->at].file, location);
    const struct {
        uint64_t period, by;
    } key = {s->period, s->by < 3 ? s->by : 1};
    bool is_new, counts = key.by == 2;
    uint32_t number = number_of(o, &o->generators, &key, sizeof key, &is_new);
    if (is_new)
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteInterruptGenerator(o->def, number, fdri_otf2_string(o, by[key.by]),
                                                                        counts ? OTF2_INTERRUPT_GENERATOR_MODE_COUNT
                                                                               : OTF2_INTERRUPT_GENERATOR_MODE_TIME,
                                                                        OTF2_BASE_DECIMAL, counts ? 0 : -9, s->period));
    return number;
}

/* ---- metrics and parameters ---- */

static OTF2_Type type_of(enum fdr_value_type type)
{
    return type == FDR_VALUE_F64 ? OTF2_TYPE_DOUBLE : type == FDR_VALUE_I64 ? OTF2_TYPE_INT64 : OTF2_TYPE_UINT64;
}

struct member_key {
    uint32_t name, description, unit, type, mode;
};

static uint32_t member(struct fdri_otf2 *o, uint32_t event, const struct fdr_field_info *field, bool counter)
{
    struct member_key key = {fdri_otf2_string(o, field->name), event, fdri_otf2_string(o, field->unit),
                             type_of(field->type),
                             counter ? OTF2_METRIC_ACCUMULATED_POINT : OTF2_METRIC_ABSOLUTE_POINT};
    bool is_new;
    uint32_t number = number_of(o, &o->members, &key, sizeof key, &is_new);
    if (is_new)
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteMetricMember(o->def, number, key.name, key.description,
                                                                  OTF2_METRIC_TYPE_USER, (OTF2_MetricMode)key.mode,
                                                                  (OTF2_Type)key.type, OTF2_BASE_DECIMAL, 0, key.unit));
    return number;
}

uint32_t fdri_otf2_metric(struct fdri_otf2 *o, const char *name, const struct fdr_field_info *fields, uint32_t count,
                          bool counter)
{
    uint32_t members[16];
    bool is_new;
    uint32_t event = fdri_otf2_string(o, name ? name : "");
    for (uint32_t i = 0; i < count; i++) members[i] = member(o, event, &fields[i], counter);
    uint32_t number = number_of(o, &o->metrics, members, count * sizeof *members, &is_new);
    if (is_new)
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteMetricClass(o->def, number, (uint8_t)count, members,
                                                                 OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_UNKNOWN));
    return number;
}

uint32_t fdri_otf2_parameter(struct fdri_otf2 *o, const char *name, OTF2_ParameterType type)
{
    const struct {
        uint32_t name, type;
    } key = {fdri_otf2_string(o, name), type};
    bool is_new;
    uint32_t number = number_of(o, &o->parameters, &key, sizeof key, &is_new);
    if (is_new) fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteParameter(o->def, number, key.name, type));
    return number;
}

/* ---- files of io ---- */

static void define_paradigm(struct fdri_otf2 *o)
{
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteIoParadigm(
                           o->def, 0, fdri_otf2_string(o, "POSIX"), fdri_otf2_string(o, "input and output"),
                           OTF2_IO_PARADIGM_CLASS_SERIAL, OTF2_IO_PARADIGM_FLAG_OS, 0, NULL, NULL, NULL));
}

uint32_t fdri_otf2_io_handle(struct fdri_otf2 *o, uint32_t file_id)
{
    const struct {
        uint64_t process, file;
    } key = {o->at, file_id};
    bool is_new, first = !o->io.count;
    uint32_t number = number_of(o, &o->io, &key, sizeof key, &is_new);
    if (!is_new) return number;
    const struct fdri_otf2_process *p = &o->process[o->at];
    uint32_t name = fdri_otf2_string(o, fdr_id_name(p->file, FDR_IN_IO, file_id));
    if (first) define_paradigm(o);
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteIoRegularFile(o->def, number, name, p->node));
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteIoHandle(o->def, number, name, number, 0, OTF2_IO_HANDLE_FLAG_NONE,
                                                          OTF2_UNDEFINED_COMM, OTF2_UNDEFINED_IO_HANDLE));
    return number;
}

/* ---- attributes ---- */

void fdri_otf2_attributes(struct fdri_otf2 *o)
{
    static const char *const text[FDRI_OTF2_ATTRIBUTES][2] = {
        [FDRI_OTF2_REPAIRED] = {"fdr.repaired", "not recorded: fdr opened or closed this call at an edge"},
        [FDRI_OTF2_ORDINAL] = {"fdr.ordinal",
                               "number among those of its envelope or communicator; order does not pair"},
        [FDRI_OTF2_WEIGHT] = {"fdr.weight", "so many periods of the interrupt generator"},
        [FDRI_OTF2_OFFSET] = {"fdr.offset", "place in the file"},
        [FDRI_OTF2_ERRNO] = {"fdr.errno", "how the operation failed"},
        [FDRI_OTF2_OTHER] = {"fdr.root", "world rank of a root that is in no group"},
    };
    for (uint32_t i = 0; i < FDRI_OTF2_ATTRIBUTES; i++)
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteAttribute(o->def, i, fdri_otf2_string(o, text[i][0]),
                                                               fdri_otf2_string(o, text[i][1]), OTF2_TYPE_UINT64));
}

void fdri_otf2_attribute(struct fdri_otf2 *o, enum fdri_otf2_attribute attribute, uint64_t value)
{
    fdri_otf2_check(o, OTF2_AttributeList_AddUint64(o->list, attribute, value));
}
