/* SPDX-License-Identifier: MIT */
/* The functions of OTF2_EvtWriter. Each records its event, or calls OTF2's function if nothing is recorded. */
#include <string.h>

#include "adapters/otf2/otf2_adapter.h"

#define OF(writer)        ((struct fdri_otf2_writer *)(writer))
#define EVENT(kind_, ...) (&(struct fdri_otf2_record){.kind = FDRI_OTF2_##kind_, .time = time, .field = {__VA_ARGS__}})

/* An event's attributes come right before it, and name its kind. As in OTF2 the list is empty afterwards. */
static void attributes(struct fdri_otf2_writer *w, OTF2_AttributeList *list, uint64_t time, uint32_t kind)
{
    uint32_t count = OTF2_AttributeList_GetNumberOfElements(list);
    for (uint32_t i = 0; i < count; i++) {
        OTF2_AttributeRef attribute;
        OTF2_Type type;
        OTF2_AttributeValue value = {.uint64 = 0};
        if (OTF2_AttributeList_GetAttributeByIndex(list, i, &attribute, &type, &value) != OTF2_SUCCESS) continue;
        fdri_otf2_submit(w, EVENT(Attribute, kind, attribute, type, value.uint64));
    }
    if (count) OTF2_AttributeList_RemoveAllAttributes(list);
}

/* The event `before`, if any, says more about the one that follows. */
static OTF2_ErrorCode submit_two(OTF2_EvtWriter *writer, OTF2_AttributeList *list,
                                 const struct fdri_otf2_record *before, const struct fdri_otf2_record *r)
{
    struct fdri_otf2_writer *w = OF(writer);
    fdri_otf2_inside++;
    if (before) fdri_otf2_submit(w, before);
    if (list) attributes(w, list, r->time, r->kind);
    fdri_otf2_submit(w, r);
    fdri_otf2_inside--;
    w->events++;
    return OTF2_SUCCESS;
}

static OTF2_ErrorCode submit(OTF2_EvtWriter *writer, OTF2_AttributeList *list, const struct fdri_otf2_record *r)
{
    return submit_two(writer, list, NULL, r);
}

static OTF2_ErrorCode leave_out(struct fdri_otf2_writer *w, OTF2_AttributeList *list)
{
    if (list) OTF2_AttributeList_RemoveAllAttributes(list);
    w->nested++;
    return OTF2_SUCCESS;
}

/* ---- calls ---- */

/* The id of a region that this thread can record at once; 0: the event goes the usual way. */
static fdr_region region_at_once(const struct fdri_otf2_writer *w, const OTF2_AttributeList *list,
                                 OTF2_RegionRef region)
{
    bool mine = fdri_otf2_mine == w && !w->queue && !list; /* a queue: another thread has written, too */
    return mine ? fdri_otf2_refs_get(&w->archive->regions, region) : 0;
}

OTF2_ErrorCode OTF2_EvtWriter_Enter(OTF2_EvtWriter *writer, OTF2_AttributeList *list, OTF2_TimeStamp time,
                                    OTF2_RegionRef region)
{
    struct fdri_otf2_writer *w = OF(writer);
    if (w->real) return FDRI_OTF2_REAL(OTF2_EvtWriter_Enter)(w->real, list, time, region);
    if (fdri_otf2_inside) return leave_out(w, list);
    fdr_region id = region_at_once(w, list, region);
    w->open++;
    if (!id) return submit(writer, list, EVENT(Enter, region));
    fdr_enter_at(id, time);
    w->events++;
    return OTF2_SUCCESS;
}

OTF2_ErrorCode OTF2_EvtWriter_Leave(OTF2_EvtWriter *writer, OTF2_AttributeList *list, OTF2_TimeStamp time,
                                    OTF2_RegionRef region)
{
    struct fdri_otf2_writer *w = OF(writer);
    if (w->real) return FDRI_OTF2_REAL(OTF2_EvtWriter_Leave)(w->real, list, time, region);
    if (fdri_otf2_inside) return leave_out(w, list);
    fdr_region id = region_at_once(w, list, region);
    w->open -= w->open > 0;
    if (!id) return submit(writer, list, EVENT(Leave, region));
    fdr_leave_at(id, time);
    w->events++;
    return OTF2_SUCCESS;
}

/* ---- messages and collectives ---- */

#define HEAD OTF2_EvtWriter *writer, OTF2_AttributeList *list, OTF2_TimeStamp time
#define BEGIN(name, ...)                                                                                               \
    if (OF(writer)->real) return FDRI_OTF2_REAL(OTF2_EvtWriter_##name)(OF(writer)->real, list, __VA_ARGS__);           \
    if (fdri_otf2_inside) return leave_out(OF(writer), list)

OTF2_ErrorCode OTF2_EvtWriter_MpiSend(HEAD, uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t length)
{
    BEGIN(MpiSend, time, peer, comm, tag, length);
    return submit(writer, list, EVENT(Send, peer, comm, tag, length));
}
OTF2_ErrorCode OTF2_EvtWriter_MpiRecv(HEAD, uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t length)
{
    BEGIN(MpiRecv, time, peer, comm, tag, length);
    return submit(writer, list, EVENT(Recv, peer, comm, tag, length));
}
OTF2_ErrorCode OTF2_EvtWriter_MpiIsend(HEAD, uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t length,
                                       uint64_t request)
{
    BEGIN(MpiIsend, time, peer, comm, tag, length, request);
    return submit_two(writer, list, EVENT(Request, FDRI_OTF2_ISEND, request), EVENT(Send, peer, comm, tag, length));
}
OTF2_ErrorCode OTF2_EvtWriter_MpiIrecv(HEAD, uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t length,
                                       uint64_t request)
{
    BEGIN(MpiIrecv, time, peer, comm, tag, length, request);
    return submit_two(writer, list, EVENT(Request, FDRI_OTF2_IRECV, request), EVENT(Recv, peer, comm, tag, length));
}
#define REQUEST(name, what)                                                                                            \
    OTF2_ErrorCode OTF2_EvtWriter_##name(HEAD, uint64_t request)                                                       \
    {                                                                                                                  \
        BEGIN(name, time, request);                                                                                    \
        return submit(writer, list, EVENT(Request, what, request));                                                    \
    }
REQUEST(MpiIsendComplete, FDRI_OTF2_ISEND_COMPLETE)
REQUEST(MpiIrecvRequest, FDRI_OTF2_IRECV_POSTED)
REQUEST(MpiRequestTest, FDRI_OTF2_TESTED)
REQUEST(MpiRequestCancelled, FDRI_OTF2_CANCELLED)

OTF2_ErrorCode OTF2_EvtWriter_MpiCollectiveBegin(HEAD)
{
    BEGIN(MpiCollectiveBegin, time);
    return submit(writer, list, EVENT(CollectiveBegin, 0));
}
OTF2_ErrorCode OTF2_EvtWriter_MpiCollectiveEnd(HEAD, OTF2_CollectiveOp collective, OTF2_CommRef comm, uint32_t root,
                                               uint64_t sent, uint64_t received)
{
    BEGIN(MpiCollectiveEnd, time, collective, comm, root, sent, received);
    return submit(writer, list, EVENT(CollectiveEnd, collective, comm, root, sent, received));
}

/* ---- metrics, parameters, operations of io ---- */

OTF2_ErrorCode OTF2_EvtWriter_Metric(HEAD, OTF2_MetricRef metric, uint8_t count, const OTF2_Type *types,
                                     const OTF2_MetricValue *values)
{
    BEGIN(Metric, time, metric, count, types, values);
    struct fdri_otf2_record r = {.kind = FDRI_OTF2_Values, .time = time};
    r.metric = fdri_otf2_metric_id(OF(writer)->archive, metric, count, types);
    for (int i = 0; r.metric && i < count; i++) r.field[i] = values[i].unsigned_int;
    return submit(writer, list, &r);
}
OTF2_ErrorCode OTF2_EvtWriter_ParameterInt(HEAD, OTF2_ParameterRef parameter, int64_t value)
{
    BEGIN(ParameterInt, time, parameter, value);
    return submit(writer, list, EVENT(ParameterInt, parameter, (uint64_t)value));
}
OTF2_ErrorCode OTF2_EvtWriter_ParameterUnsignedInt(HEAD, OTF2_ParameterRef parameter, uint64_t value)
{
    BEGIN(ParameterUnsignedInt, time, parameter, value);
    return submit(writer, list, EVENT(ParameterUnsignedInt, parameter, value));
}
OTF2_ErrorCode OTF2_EvtWriter_IoOperationBegin(HEAD, OTF2_IoHandleRef handle, OTF2_IoOperationMode mode,
                                               OTF2_IoOperationFlag flags, uint64_t bytes, uint64_t matching)
{
    BEGIN(IoOperationBegin, time, handle, mode, flags, bytes, matching);
    return submit_two(writer, list, EVENT(Operation, flags, matching),
                      EVENT(OperationBegin, handle, mode, bytes, matching));
}
OTF2_ErrorCode OTF2_EvtWriter_IoOperationComplete(HEAD, OTF2_IoHandleRef handle, uint64_t bytes, uint64_t matching)
{
    BEGIN(IoOperationComplete, time, handle, bytes, matching);
    return submit_two(writer, list, EVENT(Operation, 0, matching), EVENT(OperationComplete, handle, bytes, matching));
}

/* ---- all others ---- */

OTF2_ErrorCode OTF2_EvtWriter_ProgramBegin(HEAD, OTF2_StringRef name, uint32_t count, const OTF2_StringRef *argument)
{
    BEGIN(ProgramBegin, time, name, count, argument);
    struct fdri_otf2_record r = {.kind = FDRI_OTF2_ProgramBegin, .time = time, .field = {name, count}};
    for (uint32_t i = 0; i < count && i < FDRI_OTF2_FIELDS - 2; i++) r.field[2 + i] = argument[i];
    if (count > FDRI_OTF2_FIELDS - 2) OF(writer)->not_kept++;
    return submit(writer, list, &r);
}

#define E0(name)                                                                                                       \
    OTF2_ErrorCode OTF2_EvtWriter_##name(HEAD)                                                                         \
    {                                                                                                                  \
        BEGIN(name, time);                                                                                             \
        return submit(writer, list, EVENT(name, 0));                                                                   \
    }
#define E1(name, t, a)                                                                                                 \
    OTF2_ErrorCode OTF2_EvtWriter_##name(HEAD, t a)                                                                    \
    {                                                                                                                  \
        BEGIN(name, time, a);                                                                                          \
        return submit(writer, list, EVENT(name, (uint64_t)a));                                                         \
    }
#define E2(name, t, a, u, b)                                                                                           \
    OTF2_ErrorCode OTF2_EvtWriter_##name(HEAD, t a, u b)                                                               \
    {                                                                                                                  \
        BEGIN(name, time, a, b);                                                                                       \
        return submit(writer, list, EVENT(name, a, b));                                                                \
    }
#define E3(name, t, a, u, b, v, c)                                                                                     \
    OTF2_ErrorCode OTF2_EvtWriter_##name(HEAD, t a, u b, v c)                                                          \
    {                                                                                                                  \
        BEGIN(name, time, a, b, c);                                                                                    \
        return submit(writer, list, EVENT(name, a, b, c));                                                             \
    }
#define E4(name, t, a, u, b, v, c, w, d)                                                                               \
    OTF2_ErrorCode OTF2_EvtWriter_##name(HEAD, t a, u b, v c, w d)                                                     \
    {                                                                                                                  \
        BEGIN(name, time, a, b, c, d);                                                                                 \
        return submit(writer, list, EVENT(name, a, (uint64_t)b, c, d));                                                \
    }
#define E6(name, t, a, u, b, v, c, w, d, x, e, y, f)                                                                   \
    OTF2_ErrorCode OTF2_EvtWriter_##name(HEAD, t a, u b, v c, w d, x e, y f)                                           \
    {                                                                                                                  \
        BEGIN(name, time, a, b, c, d, e, f);                                                                           \
        return submit(writer, list, EVENT(name, a, b, c, d, e, f));                                                    \
    }
FDRI_OTF2_GENERIC(E0, E1, E2, E3, E4, E6)

/* ---- rewind points: fdr has one for each thread, the newest ---- */

OTF2_ErrorCode OTF2_EvtWriter_StoreRewindPoint(OTF2_EvtWriter *writer, uint32_t id)
{
    struct fdri_otf2_writer *w = OF(writer);
    if (w->real) return FDRI_OTF2_REAL(OTF2_EvtWriter_StoreRewindPoint)(w->real, id);
    fdri_otf2_submit(w, &(struct fdri_otf2_record){.kind = FDRI_OTF2_StoreRewind});
    w->rewind = id;
    w->events_at_rewind = w->events;
    return OTF2_SUCCESS;
}
OTF2_ErrorCode OTF2_EvtWriter_Rewind(OTF2_EvtWriter *writer, uint32_t id)
{
    struct fdri_otf2_writer *w = OF(writer);
    if (w->real) return FDRI_OTF2_REAL(OTF2_EvtWriter_Rewind)(w->real, id);
    if (w->rewind != id) return OTF2_ERROR_INVALID_ARGUMENT;
    fdri_otf2_submit(w, &(struct fdri_otf2_record){.kind = FDRI_OTF2_DoRewind});
    w->events = w->events_at_rewind;
    w->rewind = UINT32_MAX;
    return OTF2_SUCCESS;
}
OTF2_ErrorCode OTF2_EvtWriter_ClearRewindPoint(OTF2_EvtWriter *writer, uint32_t id)
{
    struct fdri_otf2_writer *w = OF(writer);
    if (w->real) return FDRI_OTF2_REAL(OTF2_EvtWriter_ClearRewindPoint)(w->real, id);
    if (w->rewind == id) w->rewind = UINT32_MAX;
    return OTF2_SUCCESS;
}

/* ---- the writer itself ---- */

OTF2_ErrorCode OTF2_EvtWriter_GetLocationID(const OTF2_EvtWriter *writer, OTF2_LocationRef *location)
{
    *location = OF(writer)->location;
    return OTF2_SUCCESS;
}
OTF2_ErrorCode OTF2_EvtWriter_SetLocationID(OTF2_EvtWriter *writer, OTF2_LocationRef location)
{
    OF(writer)->location = location;
    return OF(writer)->real ? FDRI_OTF2_REAL(OTF2_EvtWriter_SetLocationID)(OF(writer)->real, location) : OTF2_SUCCESS;
}
OTF2_ErrorCode OTF2_EvtWriter_GetUserData(const OTF2_EvtWriter *writer, void **data)
{
    *data = OF(writer)->user;
    return OTF2_SUCCESS;
}
OTF2_ErrorCode OTF2_EvtWriter_SetUserData(OTF2_EvtWriter *writer, void *data)
{
    OF(writer)->user = data;
    return OTF2_SUCCESS;
}
OTF2_ErrorCode OTF2_EvtWriter_GetNumberOfEvents(OTF2_EvtWriter *writer, uint64_t *count)
{
    if (OF(writer)->real) return FDRI_OTF2_REAL(OTF2_EvtWriter_GetNumberOfEvents)(OF(writer)->real, count);
    *count = OF(writer)->events;
    return OTF2_SUCCESS;
}
