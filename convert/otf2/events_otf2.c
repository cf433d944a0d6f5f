/* SPDX-License-Identifier: MIT */
/* Each event of a location as an event of OTF2. */
#include <fdr/fdr.h>
#include <stdio.h>
#include <string.h>

#include "convert/otf2/otf2.h"

static void call(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    uint32_t region = fdri_otf2_region(o, e);
    if (e->repaired) fdri_otf2_attribute(o, FDRI_OTF2_REPAIRED, 1);
    if (e->kind == FDR_ENTER) fdri_otf2_check(o, OTF2_EvtWriter_Enter(o->writer, o->list, e->time_ns, region));
    else fdri_otf2_check(o, OTF2_EvtWriter_Leave(o->writer, o->list, e->time_ns, region));
}

/* ---- messages and collectives ---- */

static void ordinal(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    uint64_t number;
    if (fdri_convert_partners_ordinal(o->partners, o->at, e, &number))
        fdri_otf2_attribute(o, FDRI_OTF2_ORDINAL, number);
}

static void message(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    uint32_t place, tag = (uint32_t)e->field[1];
    bool sent = e->kind == FDR_SEND, paired = fdri_convert_partners_message(o->partners, o->at, e);
    unsigned alone = paired ? FDRI_OTF2_TOGETHER : sent ? FDRI_OTF2_ALONE : FDRI_OTF2_ALONE_RECEIVED;
    uint32_t comm = fdri_otf2_comm(o, (uint32_t)e->field[2], (uint32_t)e->field[0], alone, &place);
    uint64_t id, time = e->time_ns, bytes = e->field[3];
    bool later = fdri_otf2_requests_of(o, e, &id);
    if (!paired) ordinal(o, e);
    fdri_otf2_check(o, sent && later ? OTF2_EvtWriter_MpiIsend(o->writer, o->list, time, place, comm, tag, bytes, id)
                       : sent        ? OTF2_EvtWriter_MpiSend(o->writer, o->list, time, place, comm, tag, bytes)
                       : later       ? OTF2_EvtWriter_MpiIrecv(o->writer, o->list, time, place, comm, tag, bytes, id)
                                     : OTF2_EvtWriter_MpiRecv(o->writer, o->list, time, place, comm, tag, bytes));
}

/* FORMAT.md numbers operations from 10 on. */
static OTF2_CollectiveOp operation_of(uint32_t id)
{
    static const OTF2_CollectiveOp known[] = {
        OTF2_COLLECTIVE_OP_BARRIER,        OTF2_COLLECTIVE_OP_BCAST,
        OTF2_COLLECTIVE_OP_REDUCE,         OTF2_COLLECTIVE_OP_ALLREDUCE,
        OTF2_COLLECTIVE_OP_ALLTOALL,       OTF2_COLLECTIVE_OP_ALLTOALLV,
        OTF2_COLLECTIVE_OP_ALLGATHER,      OTF2_COLLECTIVE_OP_ALLGATHERV,
        OTF2_COLLECTIVE_OP_GATHER,         OTF2_COLLECTIVE_OP_GATHERV,
        OTF2_COLLECTIVE_OP_SCATTER,        OTF2_COLLECTIVE_OP_SCATTERV,
        OTF2_COLLECTIVE_OP_SCAN,           OTF2_COLLECTIVE_OP_EXSCAN,
        OTF2_COLLECTIVE_OP_REDUCE_SCATTER, OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK,
        OTF2_COLLECTIVE_OP_ALLTOALLW};
    uint32_t at = id - 10;
    return id >= 10 && at < sizeof known / sizeof *known ? known[at] : (OTF2_CollectiveOp)UINT8_MAX;
}

static void collective_end(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    bool paired = fdri_convert_partners_collective(o->partners, o->at, e);
    int64_t root = (int64_t)e->field[1];
    uint32_t place = OTF2_COLLECTIVE_ROOT_NONE;
    uint32_t comm = fdri_otf2_comm(o, (uint32_t)e->field[0], root < 0 ? UINT32_MAX : (uint32_t)root,
                                   paired ? FDRI_OTF2_TOGETHER : FDRI_OTF2_ALONE, root < 0 ? NULL : &place);
    if (!paired) ordinal(o, e);
    fdri_otf2_check(o, OTF2_EvtWriter_MpiCollectiveEnd(o->writer, o->list, e->time_ns, operation_of(e->id), comm, place,
                                                       e->field[2], e->field[3]));
}

/* ---- io: a begin and its end have one number ---- */

static uint64_t begin_operation(struct fdri_otf2 *o, uint32_t handle, uint32_t operation)
{
    const uint32_t room = sizeof o->operation / sizeof *o->operation;
    if (o->operations == room) memmove(o->operation, o->operation + 1, --o->operations * sizeof *o->operation);
    o->operation[o->operations++] = (struct fdri_otf2_operation){handle, operation, ++o->operation_number};
    return o->operation_number;
}

/* An end whose begin is not here has a number of its own. */
static uint64_t end_operation(struct fdri_otf2 *o, uint32_t handle, uint32_t operation)
{
    for (uint32_t i = o->operations; i-- > 0;) {
        if (o->operation[i].handle != handle || o->operation[i].operation != operation) continue;
        uint64_t number = o->operation[i].number;
        memmove(o->operation + i, o->operation + i + 1, (--o->operations - i) * sizeof *o->operation);
        return number;
    }
    return ++o->operation_number;
}

/* OTF2 knows how a file was opened; recordings do not say it. So other operations are parameters with the file's
 * name. */
static void other_operation(struct fdri_otf2 *o, const struct fdr_read_event *e, const char *operation)
{
    char text[100];
    const char *file = fdr_id_name(o->process[o->at].file, FDR_IN_IO, e->id);
    snprintf(text, sizeof text, "io %s %s", operation, e->kind == FDR_IO_BEGIN ? "begin" : "end");
    uint32_t parameter = fdri_otf2_parameter(o, text, OTF2_PARAMETER_TYPE_STRING);
    fdri_otf2_check(
        o, OTF2_EvtWriter_ParameterString(o->writer, o->list, e->time_ns, parameter, fdri_otf2_string(o, file)));
}

/* Fields: operation, bytes; and the offset of a begin, the errno of an end. */
static void io(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    static const char *const name[] = {"open", "close", "read", "write", "sync", "other"};
    uint64_t operation = e->field[0], bytes = e->field_count > 1 ? e->field[1] : 0;
    bool begins = e->kind == FDR_IO_BEGIN;
    if (begins && e->field_count > 2 && e->field[2] != FDR_IO_NO_OFFSET)
        fdri_otf2_attribute(o, FDRI_OTF2_OFFSET, e->field[2]);
    if (!begins && e->field_count > 2 && e->field[2]) fdri_otf2_attribute(o, FDRI_OTF2_ERRNO, e->field[2]);
    if (operation != FDR_IO_READ && operation != FDR_IO_WRITE && operation != FDR_IO_SYNC) {
        other_operation(o, e, name[operation < 5 ? operation : 5]);
        return;
    }
    uint32_t handle = fdri_otf2_io_handle(o, e->id);
    OTF2_IoOperationMode mode = operation == FDR_IO_READ    ? OTF2_IO_OPERATION_MODE_READ
                                : operation == FDR_IO_WRITE ? OTF2_IO_OPERATION_MODE_WRITE
                                                            : OTF2_IO_OPERATION_MODE_FLUSH;
    if (begins)
        fdri_otf2_check(o, OTF2_EvtWriter_IoOperationBegin(o->writer, o->list, e->time_ns, handle, mode,
                                                           OTF2_IO_OPERATION_FLAG_NONE, bytes,
                                                           begin_operation(o, handle, (uint32_t)operation)));
    else
        fdri_otf2_check(o, OTF2_EvtWriter_IoOperationComplete(o->writer, o->list, e->time_ns, handle, bytes,
                                                              end_operation(o, handle, (uint32_t)operation)));
}

/* ---- metrics, markers, user events, samples ---- */

static void values(struct fdri_otf2 *o, const struct fdr_read_event *e, uint32_t metric,
                   const struct fdr_field_info *fields, uint32_t count)
{
    OTF2_Type type[16];
    OTF2_MetricValue value[16];
    for (uint32_t i = 0; i < count; i++) {
        type[i] = fields[i].type == FDR_VALUE_F64   ? OTF2_TYPE_DOUBLE
                  : fields[i].type == FDR_VALUE_I64 ? OTF2_TYPE_INT64
                                                    : OTF2_TYPE_UINT64;
        value[i].unsigned_int = i < e->field_count ? e->field[i] : 0;
    }
    fdri_otf2_check(o, OTF2_EvtWriter_Metric(o->writer, o->list, e->time_ns, metric, (uint8_t)count, type, value));
}

static void metric(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    const struct fdr_metric_info *m = fdr_metric_info(o->process[o->at].file, e->id);
    const struct fdr_field_info field = {.name = m->name, .type = m->type, .unit = m->unit};
    values(o, e, fdri_otf2_metric(o, NULL, &field, 1, m->counter), &field, 1);
}

static void marker(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    const char *name = fdr_id_name(o->process[o->at].file, e->class_, e->id);
    uint32_t parameter = fdri_otf2_parameter(o, name, OTF2_PARAMETER_TYPE_UINT64);
    fdri_otf2_check(o, OTF2_EvtWriter_ParameterUnsignedInt(o->writer, o->list, e->time_ns, parameter, e->field[0]));
}

/* An event without fields is a parameter without a text. */
static void user(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    const struct fdr_field_info *fields;
    const char *name = fdr_id_name(o->process[o->at].file, e->class_, e->id);
    size_t count = fdr_event_fields(o->process[o->at].file, e, &fields);
    if (count > 16) count = 16;
    if (count == 2 && strcmp(name, "fdr.request") == 0) {
        fdri_otf2_requests_event(o, e);
        return;
    }
    if (strcmp(name, "fdr.rma") == 0 && fdri_otf2_one_sided_event(o, e)) return;
    if (count) {
        values(o, e, fdri_otf2_metric(o, name, fields, (uint32_t)count, false), fields, (uint32_t)count);
        return;
    }
    uint32_t parameter = fdri_otf2_parameter(o, name, OTF2_PARAMETER_TYPE_STRING);
    fdri_otf2_check(o,
                    OTF2_EvtWriter_ParameterString(o->writer, o->list, e->time_ns, parameter, fdri_otf2_string(o, "")));
}

static void sample(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    uint32_t stack = fdri_otf2_stack(o, e);
    if (o->generator == UINT32_MAX) o->generator = fdri_otf2_generator(o, e->location);
    if (e->sample && e->sample->weight != 1) fdri_otf2_attribute(o, FDRI_OTF2_WEIGHT, e->sample->weight);
    fdri_otf2_check(o, OTF2_EvtWriter_CallingContextSample(o->writer, o->list, e->time_ns, stack, OTF2_UNDEFINED_UINT32,
                                                           o->generator));
}

void fdri_otf2_event(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    fdri_otf2_requests_other(o, e);
    switch (e->kind) {
    case FDR_ENTER:
    case FDR_LEAVE: call(o, e); break;
    case FDR_SEND:
    case FDR_RECV: message(o, e); break;
    case FDR_RESOLVE: break; /* the ordinals of messages know it */
    case FDR_COLL_BEGIN: fdri_otf2_check(o, OTF2_EvtWriter_MpiCollectiveBegin(o->writer, o->list, e->time_ns)); break;
    case FDR_COLL_END: collective_end(o, e); break;
    case FDR_METRIC: metric(o, e); break;
    case FDR_MARKER: marker(o, e); break;
    case FDR_SAMPLE: sample(o, e); break;
    case FDR_IO_BEGIN:
    case FDR_IO_END: io(o, e); break;
    default: user(o, e); break;
    }
}
