/* SPDX-License-Identifier: MIT */
/* An event of OTF2 as events of fdr. The program gives the times. */
#include <stddef.h>
#include <string.h>

#include "adapters/otf2/otf2_adapter.h"
#include "base/atomic.h"

/* ---- user events ---- */

#define NAMES0(name)                         [FDRI_OTF2_##name] = {"otf2." #name, 0, {NULL}},
#define NAMES1(name, t, a)                   [FDRI_OTF2_##name] = {"otf2." #name, 1, {#a}},
#define NAMES2(name, t, a, u, b)             [FDRI_OTF2_##name] = {"otf2." #name, 2, {#a, #b}},
#define NAMES3(name, t, a, u, b, v, c)       [FDRI_OTF2_##name] = {"otf2." #name, 3, {#a, #b, #c}},
#define NAMES4(name, t, a, u, b, v, c, w, d) [FDRI_OTF2_##name] = {"otf2." #name, 4, {#a, #b, #c, #d}},
#define NAMES6(name, t, a, u, b, v, c, w, d, x, e, y, f)                                                               \
    [FDRI_OTF2_##name] = {"otf2." #name, 6, {#a, #b, #c, #d, #e, #f}},

static const struct {
    const char *name;
    uint32_t count;
    const char *field[FDRI_OTF2_FIELDS];
} shape[FDRI_OTF2_USER_KINDS] = {
    FDRI_OTF2_GENERIC(NAMES0, NAMES1, NAMES2, NAMES3, NAMES4,
                      NAMES6)[FDRI_OTF2_ProgramBegin] = {"otf2.ProgramBegin",
                                                         16,
                                                         {"programName", "numberOfArguments", "argument1", "argument2",
                                                          "argument3", "argument4", "argument5", "argument6",
                                                          "argument7", "argument8", "argument9", "argument10",
                                                          "argument11", "argument12", "argument13", "argument14"}},
    [FDRI_OTF2_Attribute] = {"otf2.attribute", 4, {"of", "attribute", "type", "value"}},
    [FDRI_OTF2_Request] = {"fdr.request", 2, {"what", "id"}},
    [FDRI_OTF2_Operation] = {"otf2.operation", 2, {"flags", "matchingId"}},
};

static fdr_event_type types[FDRI_OTF2_USER_KINDS]; /* 0: not defined yet */

/* Two threads define the same. */
fdr_event_type fdri_otf2_type(enum fdri_otf2_kind kind)
{
    struct fdr_field field[FDRI_OTF2_FIELDS];
    fdr_event_type type = fdri_atomic_load_relaxed(&types[kind]);
    if (type) return type;
    for (uint32_t i = 0; i < shape[kind].count; i++)
        field[i] = (struct fdr_field){shape[kind].field[i], FDR_U64, i * sizeof(uint64_t)};
    type = fdr_event_define(shape[kind].name, field, shape[kind].count);
    fdri_atomic_store_relaxed(&types[kind], type);
    return type;
}

enum fdri_otf2_kind fdri_otf2_kind_of(fdr_event_type type)
{
    for (int kind = 1; kind < FDRI_OTF2_USER_KINDS; kind++)
        if (type && fdri_atomic_load_relaxed(&types[kind]) == type) return (enum fdri_otf2_kind)kind;
    return FDRI_OTF2_NONE;
}

static void user(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r)
{
    fdr_event_type type = fdri_otf2_type((enum fdri_otf2_kind)r->kind);
    if (type) fdr_event_at(type, r->field, r->time);
    else w->not_kept++;
}

/* ---- the classes of fdr ---- */

/* In the order of fdr's numbers from 10 on. */
static const uint8_t collectives[] = {OTF2_COLLECTIVE_OP_BARRIER,        OTF2_COLLECTIVE_OP_BCAST,
                                      OTF2_COLLECTIVE_OP_REDUCE,         OTF2_COLLECTIVE_OP_ALLREDUCE,
                                      OTF2_COLLECTIVE_OP_ALLTOALL,       OTF2_COLLECTIVE_OP_ALLTOALLV,
                                      OTF2_COLLECTIVE_OP_ALLGATHER,      OTF2_COLLECTIVE_OP_ALLGATHERV,
                                      OTF2_COLLECTIVE_OP_GATHER,         OTF2_COLLECTIVE_OP_GATHERV,
                                      OTF2_COLLECTIVE_OP_SCATTER,        OTF2_COLLECTIVE_OP_SCATTERV,
                                      OTF2_COLLECTIVE_OP_SCAN,           OTF2_COLLECTIVE_OP_EXSCAN,
                                      OTF2_COLLECTIVE_OP_REDUCE_SCATTER, OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK,
                                      OTF2_COLLECTIVE_OP_ALLTOALLW};
enum { FIRST = 10, OTHERS = 1000 };

uint32_t fdri_otf2_operation(uint32_t collective)
{
    for (uint32_t i = 0; i < sizeof collectives; i++)
        if (collectives[i] == collective) return FIRST + i;
    return OTHERS + (collective & 0xff);
}

uint32_t fdri_otf2_collective(uint32_t operation)
{
    return operation - FIRST < sizeof collectives ? collectives[operation - FIRST] : operation - OTHERS;
}

static void values(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r)
{
    const struct fdri_otf2_metric *m = r->metric;
    double number;
    if (!m || !m->id) {
        w->not_kept++;
        return;
    }
    memcpy(&number, r->field, sizeof number);
    if (m->count != 1) fdr_event_at(m->id, r->field, r->time);
    else if (m->type[0] == OTF2_TYPE_DOUBLE) fdr_metric_f64_at(m->id, number, r->time);
    else if (m->type[0] == OTF2_TYPE_INT64) fdr_metric_i64_at(m->id, (int64_t)r->field[0], r->time);
    else fdr_metric_u64_at(m->id, r->field[0], r->time);
}

static void message(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r)
{
    const uint64_t *f = r->field; /* peer, communicator, tag, length */
    uint32_t comm = fdri_otf2_comm_id(w->archive, (uint32_t)f[1]);
    if (r->kind == FDRI_OTF2_Send) fdr_message_send_at((uint32_t)f[0], (int32_t)f[2], comm, f[3], r->time);
    else fdr_message_recv_at((uint32_t)f[0], (int32_t)f[2], comm, f[3], r->time);
}

static void parameter(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r)
{
    uint32_t id = fdri_otf2_parameter_id(w->archive, (uint32_t)r->field[0], r->kind == FDRI_OTF2_ParameterInt);
    if (id) fdr_marker_at(id, r->field[1], r->time);
    else w->not_kept++;
}

/* handle, mode, bytes, matching id */
static void begin_operation(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r, fdr_io_file file)
{
    static const uint8_t modes[] = {FDR_IO_READ, FDR_IO_WRITE, FDR_IO_SYNC};
    uint32_t operation = r->field[1] < sizeof modes ? modes[r->field[1]] : FDR_IO_OTHER;
    uint64_t began = fdr_io_begin_at(file, operation, r->field[2], FDR_IO_NO_OFFSET, r->time);
    w->pending[w->begun++ % 16] = (struct fdri_otf2_pending){r->field[3], began, operation};
}

/* handle, bytes, matching id */
static void end_operation(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r, fdr_io_file file)
{
    struct fdri_otf2_pending p = {.operation = FDR_IO_OTHER};
    for (uint32_t i = 0; i < 16 && !p.began; i++)
        if (w->pending[i].began && w->pending[i].matching == r->field[2]) {
            p = w->pending[i];
            w->pending[i].began = 0;
        }
    fdr_io_end_at(file, p.operation, r->field[1], 0, p.began, r->time);
}

static void operation(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r)
{
    fdr_io_file file = fdri_otf2_handle_id(w->archive, (uint32_t)r->field[0]);
    if (!file) w->not_kept++;
    else if (r->kind == FDRI_OTF2_OperationBegin) begin_operation(w, r, file);
    else end_operation(w, r, file);
}

static void call(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r)
{
    fdr_region region = fdri_otf2_region_id(w->archive, (uint32_t)r->field[0]);
    if (!region) w->not_kept++;
    else if (r->kind == FDRI_OTF2_Enter) fdr_enter_at(region, r->time);
    else fdr_leave_at(region, r->time);
}

void fdri_otf2_record(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r)
{
    const uint64_t *f = r->field;
    switch (r->kind) {
    case FDRI_OTF2_Enter:
    case FDRI_OTF2_Leave: call(w, r); break;
    case FDRI_OTF2_Send:
    case FDRI_OTF2_Recv: message(w, r); break;
    case FDRI_OTF2_CollectiveBegin: fdr_collective_begin_at(0, r->time); break; /* OTF2 says which one at the end */
    case FDRI_OTF2_CollectiveEnd:
        fdr_collective_end_at(fdri_otf2_operation((uint32_t)f[0]), fdri_otf2_comm_id(w->archive, (uint32_t)f[1]),
                              (int32_t)f[2], f[3], f[4], r->time);
        break;
    case FDRI_OTF2_Values: values(w, r); break;
    case FDRI_OTF2_ParameterInt:
    case FDRI_OTF2_ParameterUnsignedInt: parameter(w, r); break;
    case FDRI_OTF2_OperationBegin:
    case FDRI_OTF2_OperationComplete: operation(w, r); break;
    case FDRI_OTF2_StoreRewind: fdr_rewind_mark(); break;
    case FDRI_OTF2_DoRewind: fdr_rewind(); break;
    default: user(w, r); break;
    }
}
