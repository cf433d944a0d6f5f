/* SPDX-License-Identifier: MIT */
/* Writes the recorded events into the real archive. Events that fdr gave back are missing there, and none is
 * invented. So calls that the reader adds are left out, and the end of an operation whose begin is missing. */
#include <fdr/reader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/otf2/otf2_adapter.h"

enum { TYPES = 256, METRICS = 4096, NO_REF = UINT32_MAX };

/* Operations under way in the archive, by kind and id: open addressing; a place keeps its key for ever. */
struct under_way {
    struct place {
        uint64_t id;
        uint32_t kind;
        bool used, open;
    } * place;
    size_t count, size; /* a power of two */
};
enum operations { A_SEND = 1, A_RECEIVE, AN_IO, AN_RMA };

struct back {
    struct fdri_otf2_archive *archive;
    struct fdr_file *file;
    OTF2_EvtWriter *out;
    OTF2_AttributeList *list;
    struct inverse {
        uint32_t *ref, count;
    } regions, comms, handles, signed_, unsigned_;
    uint8_t kind[TYPES]; /* of user events */
    struct fdri_otf2_metric *metric[METRICS], *several[TYPES];
    /* of the location under way */
    bool whole;         /* nothing is missing */
    uint32_t left_open; /* calls by the program, where fdr closed them as the thread ended; */
    uint64_t ended_ns;  /* at this time */
    uint64_t of, of_ns, request, request_what, request_ns, flags, matching, operation_ns;
    uint64_t collectives, contexts; /* begun */
    struct under_way open;
};

/* ---- operations under way ---- */

static struct place *place_of(struct under_way *u, uint32_t kind, uint64_t id)
{
    size_t i = (size_t)((id * 0x9E3779B97F4A7C15u + kind) >> 20) & (u->size - 1);
    while (u->place[i].used && (u->place[i].id != id || u->place[i].kind != kind)) i = (i + 1) & (u->size - 1);
    return &u->place[i];
}

static bool grow(struct under_way *u)
{
    if (u->count < u->size / 2) return true;
    struct under_way wider = {.count = 0, .size = u->size ? u->size * 2 : 64};
    wider.place = calloc(wider.size, sizeof *wider.place);
    if (!wider.place) return false;
    for (size_t i = 0; i < u->size; i++)
        if (u->place[i].open) *place_of(&wider, u->place[i].kind, u->place[i].id) = u->place[i], wider.count++;
    free(u->place);
    *u = wider;
    return true;
}

static void begun(struct back *b, uint32_t kind, uint64_t id)
{
    if (!grow(&b->open)) return;
    struct place *p = place_of(&b->open, kind, id);
    b->open.count += !p->used;
    *p = (struct place){id, kind, true, true};
}

/* May the end of this operation be written? */
static bool ends(struct back *b, uint32_t kind, uint64_t id, bool for_good)
{
    struct place *p = b->open.size ? place_of(&b->open, kind, id) : NULL;
    bool was = p && p->used && p->open;
    if (was && for_good) p->open = false;
    return was || b->whole;
}

/* ---- attributes ---- */

static void attribute(struct back *b, const struct fdr_read_event *e)
{
    const OTF2_AttributeValue value = {.uint64 = e->field[3]};
    if (b->of != e->field[0] || b->of_ns != e->time_ns) OTF2_AttributeList_RemoveAllAttributes(b->list);
    b->of = e->field[0];
    b->of_ns = e->time_ns;
    OTF2_AttributeList_AddAttribute(b->list, (OTF2_AttributeRef)e->field[1], (OTF2_Type)e->field[2], value);
}

/* The attributes of an event of this kind. */
static OTF2_AttributeList *list_of(struct back *b, uint32_t kind, uint64_t time)
{
    if (b->of != kind || b->of_ns != time) OTF2_AttributeList_RemoveAllAttributes(b->list);
    return b->list;
}

/* ---- one event ---- */

static uint32_t ref_of(const struct inverse *i, uint32_t id) { return id < i->count ? i->ref[id] : NO_REF; }

#define WRITE(name, ...) FDRI_OTF2_REAL(OTF2_EvtWriter_##name)(b->out, __VA_ARGS__)

static void call(struct back *b, const struct fdr_read_event *e)
{
    uint32_t kind = e->kind == FDR_ENTER ? FDRI_OTF2_Enter : FDRI_OTF2_Leave, region = ref_of(&b->regions, e->id);
    bool closed = e->kind == FDR_LEAVE && e->depth <= b->left_open && e->time_ns == b->ended_ns;
    if (e->repaired || e->reduced || closed || region == NO_REF) return;
    if (e->kind == FDR_ENTER) WRITE(Enter, list_of(b, kind, e->time_ns), e->time_ns, region);
    else WRITE(Leave, list_of(b, kind, e->time_ns), e->time_ns, region);
}

static bool non_blocking(struct back *b, const struct fdr_read_event *e, uint64_t what)
{
    bool is = b->request_what == what && b->request_ns == e->time_ns;
    b->request_what = 0;
    return is;
}

static void sent(struct back *b, const struct fdr_read_event *e)
{
    uint32_t peer = (uint32_t)e->field[0], comm = ref_of(&b->comms, (uint32_t)e->field[2]), tag = (uint32_t)e->field[1];
    OTF2_AttributeList *list = list_of(b, FDRI_OTF2_Send, e->time_ns);
    if (comm == NO_REF) return;
    if (!non_blocking(b, e, FDRI_OTF2_ISEND)) {
        WRITE(MpiSend, list, e->time_ns, peer, comm, tag, e->field[3]);
        return;
    }
    begun(b, A_SEND, b->request);
    WRITE(MpiIsend, list, e->time_ns, peer, comm, tag, e->field[3], b->request);
}

/* A receive without its request is one that blocks. */
static void received(struct back *b, const struct fdr_read_event *e)
{
    uint32_t peer = (uint32_t)e->field[0], comm = ref_of(&b->comms, (uint32_t)e->field[2]), tag = (uint32_t)e->field[1];
    OTF2_AttributeList *list = list_of(b, FDRI_OTF2_Recv, e->time_ns);
    if (comm == NO_REF) return;
    if (non_blocking(b, e, FDRI_OTF2_IRECV) && ends(b, A_RECEIVE, b->request, true))
        WRITE(MpiIrecv, list, e->time_ns, peer, comm, tag, e->field[3], b->request);
    else WRITE(MpiRecv, list, e->time_ns, peer, comm, tag, e->field[3]);
}

static void request(struct back *b, const struct fdr_read_event *e)
{
    uint64_t what = e->field[0], id = e->field[1];
    OTF2_AttributeList *list = list_of(b, FDRI_OTF2_Request, e->time_ns);
    if (what == FDRI_OTF2_ISEND || what == FDRI_OTF2_IRECV) {
        b->request = id;
        b->request_what = what;
        b->request_ns = e->time_ns;
    } else if (what == FDRI_OTF2_IRECV_POSTED) {
        begun(b, A_RECEIVE, id);
        WRITE(MpiIrecvRequest, list, e->time_ns, id);
    } else if (what == FDRI_OTF2_ISEND_COMPLETE && ends(b, A_SEND, id, true)) {
        WRITE(MpiIsendComplete, list, e->time_ns, id);
    } else if (what == FDRI_OTF2_TESTED && (ends(b, A_SEND, id, false) || ends(b, A_RECEIVE, id, false))) {
        WRITE(MpiRequestTest, list, e->time_ns, id);
    } else if (what == FDRI_OTF2_CANCELLED && (ends(b, A_SEND, id, true) || ends(b, A_RECEIVE, id, true))) {
        WRITE(MpiRequestCancelled, list, e->time_ns, id);
    }
}

static void collective_end(struct back *b, const struct fdr_read_event *e)
{
    uint32_t comm = ref_of(&b->comms, (uint32_t)e->field[0]);
    OTF2_AttributeList *list = list_of(b, FDRI_OTF2_CollectiveEnd, e->time_ns);
    if (comm == NO_REF || (!b->collectives && !b->whole)) return;
    b->collectives -= b->collectives > 0;
    WRITE(MpiCollectiveEnd, list, e->time_ns, (OTF2_CollectiveOp)fdri_otf2_collective(e->id), comm,
          (uint32_t)e->field[1], e->field[2], e->field[3]);
}

static void collective_begin(struct back *b, const struct fdr_read_event *e)
{
    b->collectives++;
    WRITE(MpiCollectiveBegin, list_of(b, FDRI_OTF2_CollectiveBegin, e->time_ns), e->time_ns);
}

static void metric(struct back *b, const struct fdr_read_event *e, const struct fdri_otf2_metric *m)
{
    OTF2_MetricValue value[FDRI_OTF2_FIELDS];
    if (!m) return;
    for (uint32_t i = 0; i < m->count; i++) value[i].unsigned_int = e->field[i];
    WRITE(Metric, list_of(b, FDRI_OTF2_Values, e->time_ns), e->time_ns, m->ref, m->count, m->type, value);
}

static void parameter(struct back *b, const struct fdr_read_event *e)
{
    uint32_t is_signed = ref_of(&b->signed_, e->id), is_unsigned = ref_of(&b->unsigned_, e->id);
    if (is_signed != NO_REF)
        WRITE(ParameterInt, list_of(b, FDRI_OTF2_ParameterInt, e->time_ns), e->time_ns, is_signed,
              (int64_t)e->field[0]);
    else if (is_unsigned != NO_REF)
        WRITE(ParameterUnsignedInt, list_of(b, FDRI_OTF2_ParameterUnsignedInt, e->time_ns), e->time_ns, is_unsigned,
              e->field[0]);
}

static void io(struct back *b, const struct fdr_read_event *e)
{
    static const OTF2_IoOperationMode mode[] = {[FDR_IO_READ] = OTF2_IO_OPERATION_MODE_READ,
                                                [FDR_IO_WRITE] = OTF2_IO_OPERATION_MODE_WRITE,
                                                [FDR_IO_SYNC] = OTF2_IO_OPERATION_MODE_FLUSH};
    bool begins = e->kind == FDR_IO_BEGIN, described = b->operation_ns == e->time_ns;
    uint32_t handle = ref_of(&b->handles, e->id);
    uint64_t bytes = e->field_count > 1 ? e->field[1] : 0;
    OTF2_AttributeList *list = list_of(b, begins ? FDRI_OTF2_OperationBegin : FDRI_OTF2_OperationComplete, e->time_ns);
    b->operation_ns = UINT64_MAX;
    if (handle == NO_REF || !described) return; /* its matching id is not known */
    if (begins && e->field[0] <= FDR_IO_SYNC) {
        begun(b, AN_IO, b->matching);
        WRITE(IoOperationBegin, list, e->time_ns, handle, mode[e->field[0]], (OTF2_IoOperationFlag)b->flags, bytes,
              b->matching);
    } else if (!begins && ends(b, AN_IO, b->matching, true)) {
        WRITE(IoOperationComplete, list, e->time_ns, handle, bytes, b->matching);
    }
}

static void program_begin(struct back *b, const struct fdr_read_event *e, OTF2_AttributeList *list)
{
    OTF2_StringRef argument[FDRI_OTF2_FIELDS] = {0};
    uint32_t count = e->field[1] > FDRI_OTF2_FIELDS - 2 ? FDRI_OTF2_FIELDS - 2 : (uint32_t)e->field[1];
    for (uint32_t i = 0; i < count; i++) argument[i] = (OTF2_StringRef)e->field[2 + i];
    WRITE(ProgramBegin, list, e->time_ns, (OTF2_StringRef)e->field[0], count, argument);
}

/* ---- events that are user events of fdr ---- */

/* Is the event to be left out, as its begin is missing? */
static bool is_late(struct back *b, const struct fdr_read_event *e, uint32_t kind)
{
    const uint64_t *f = e->field;
    switch (kind) {
    case FDRI_OTF2_RmaPut:
    case FDRI_OTF2_RmaGet: begun(b, AN_RMA, f[3]); return false;
    case FDRI_OTF2_RmaAtomic: begun(b, AN_RMA, f[5]); return false;
    case FDRI_OTF2_RmaOpTest:
    case FDRI_OTF2_RmaOpCompleteRemote: return !ends(b, AN_RMA, f[1], false);
    case FDRI_OTF2_RmaOpCompleteBlocking:
    case FDRI_OTF2_RmaOpCompleteNonBlocking: return !ends(b, AN_RMA, f[1], false);
    case FDRI_OTF2_IoOperationTest:
    case FDRI_OTF2_IoOperationIssued: return !ends(b, AN_IO, f[1], false);
    case FDRI_OTF2_IoOperationCancelled: return !ends(b, AN_IO, f[1], true);
    case FDRI_OTF2_CallingContextEnter: b->contexts++; return false;
    case FDRI_OTF2_CallingContextLeave:
        if (b->contexts) b->contexts--;
        else return !b->whole;
        return false;
    default: return false;
    }
}

#define E0(name)                                                                                                       \
    case FDRI_OTF2_##name:                                                                                             \
        WRITE(name, list, e->time_ns);                                                                                 \
        break;
#define E1(name, t, a)                                                                                                 \
    case FDRI_OTF2_##name:                                                                                             \
        WRITE(name, list, e->time_ns, (t)v[0]);                                                                        \
        break;
#define E2(name, t, a, u, b_)                                                                                          \
    case FDRI_OTF2_##name:                                                                                             \
        WRITE(name, list, e->time_ns, (t)v[0], (u)v[1]);                                                               \
        break;
#define E3(name, t, a, u, b_, w, c)                                                                                    \
    case FDRI_OTF2_##name:                                                                                             \
        WRITE(name, list, e->time_ns, (t)v[0], (u)v[1], (w)v[2]);                                                      \
        break;
#define E4(name, t, a, u, b_, w, c, x, d)                                                                              \
    case FDRI_OTF2_##name:                                                                                             \
        WRITE(name, list, e->time_ns, (t)v[0], (u)v[1], (w)v[2], (x)v[3]);                                             \
        break;
#define E6(name, t, a, u, b_, w, c, x, d, y, e_, z, f)                                                                 \
    case FDRI_OTF2_##name: WRITE(name, list, e->time_ns, (t)v[0], (u)v[1], (w)v[2], (x)v[3], (y)v[4], (z)v[5]); break;

static void generic(struct back *b, const struct fdr_read_event *e, uint32_t kind)
{
    const uint64_t *v = e->field;
    OTF2_AttributeList *list = list_of(b, kind, e->time_ns);
    if (is_late(b, e, kind)) return;
    switch (kind) {
        FDRI_OTF2_GENERIC(E0, E1, E2, E3, E4, E6)
    case FDRI_OTF2_ProgramBegin: program_begin(b, e, list); break;
    default: break;
    }
}

static void user(struct back *b, const struct fdr_read_event *e)
{
    uint32_t kind = e->id < TYPES ? b->kind[e->id] : FDRI_OTF2_NONE;
    if (kind == FDRI_OTF2_Attribute) attribute(b, e);
    else if (kind == FDRI_OTF2_Request) request(b, e);
    else if (kind == FDRI_OTF2_Operation)
        b->flags = e->field[0], b->matching = e->field[1], b->operation_ns = e->time_ns;
    else if (kind) generic(b, e, kind);
    else if (e->id < TYPES) metric(b, e, b->several[e->id]);
}

static void write_event(struct back *b, const struct fdr_read_event *e)
{
    switch (e->kind) {
    case FDR_ENTER:
    case FDR_LEAVE: call(b, e); break;
    case FDR_SEND: sent(b, e); break;
    case FDR_RECV: received(b, e); break;
    case FDR_COLL_BEGIN: collective_begin(b, e); break;
    case FDR_COLL_END: collective_end(b, e); break;
    case FDR_METRIC: metric(b, e, e->id < METRICS ? b->metric[e->id] : NULL); break;
    case FDR_MARKER: parameter(b, e); break;
    case FDR_IO_BEGIN:
    case FDR_IO_END: io(b, e); break;
    case FDR_EVENT: user(b, e); break;
    default: break;
    }
}

/* ---- one location ---- */

/* The recording's locations of a writer: that of the thread which wrote first, then that of the queue. */
enum { LOCATIONS = 2 };
static size_t locations_of(const struct back *b, const struct fdri_otf2_writer *w, uint32_t *id)
{
    size_t count = 0;
    for (size_t i = 0; i < fdr_location_count(b->file) && count < LOCATIONS; i++)
        if (!strcmp(fdr_location_info(b->file, i)->name, w->name)) id[count++] = fdr_location_info(b->file, i)->id;
    return count;
}

static const struct fdr_location_info *location_of(const struct back *b, uint32_t id)
{
    size_t i = 0;
    while (fdr_location_info(b->file, i)->id != id) i++;
    return fdr_location_info(b->file, i);
}

static bool is_whole(const struct back *b, const uint32_t *location, size_t count)
{
    const struct fdr_ledger_row *row;
    for (size_t i = 0, n = fdr_ledger(b->file, &row); i < n; i++)
        for (size_t k = 0; k < count; k++)
            if (row[i].location == location[k] && row[i].kept != row[i].presented) return false;
    return true;
}

static void write_events(struct back *b, const struct fdri_otf2_writer *w, const uint32_t *location, size_t count)
{
    const struct fdr_select select = {.locations = location, .location_count = count};
    const struct fdr_location_info *l = location_of(b, location[count - 1]);
    struct fdr_iter *iter = fdr_iter_open(b->file, &select);
    struct fdr_read_event e;
    b->whole = is_whole(b, location, count);
    b->left_open = l->live ? 0 : w->open;
    b->ended_ns = l->to_ns;
    b->of = b->request_what = b->collectives = b->contexts = 0;
    b->operation_ns = UINT64_MAX;
    while (iter && fdr_iter_next(iter, &e)) write_event(b, &e);
    fdr_iter_close(iter);
    free(b->open.place);
    b->open = (struct under_way){0};
}

static void write_location(struct back *b, struct fdri_otf2_writer *w)
{
    uint32_t location[LOCATIONS];
    size_t count = locations_of(b, w, location);
    b->out = FDRI_OTF2_REAL(OTF2_Archive_GetEvtWriter)(b->archive->real, w->location);
    if (!b->out) return;
    if (count) write_events(b, w, location, count);
    FDRI_OTF2_REAL(OTF2_EvtWriter_GetNumberOfEvents)(b->out, &w->events_there);
    FDRI_OTF2_REAL(OTF2_Archive_CloseEvtWriter)(b->archive->real, b->out);
}

/* ---- all of them ---- */

static bool prepare(struct back *b)
{
    struct fdri_otf2_archive *a = b->archive;
    b->regions.ref = fdri_otf2_refs_inverse(&a->regions, &b->regions.count);
    b->comms.ref = fdri_otf2_refs_inverse(&a->comms, &b->comms.count);
    b->handles.ref = fdri_otf2_refs_inverse(&a->handles, &b->handles.count);
    b->signed_.ref = fdri_otf2_refs_inverse(&a->signed_, &b->signed_.count);
    b->unsigned_.ref = fdri_otf2_refs_inverse(&a->unsigned_, &b->unsigned_.count);
    for (uint32_t type = 1; type < TYPES; type++) b->kind[type] = (uint8_t)fdri_otf2_kind_of(type);
    for (struct fdri_otf2_metric *m = a->metrics; m; m = m->next) {
        if (m->count == 1 && m->id < METRICS) b->metric[m->id] = m;
        if (m->count > 1 && m->id < TYPES) b->several[m->id] = m;
    }
    b->list = OTF2_AttributeList_New();
    return b->list && b->regions.ref && b->comms.ref && b->handles.ref && b->signed_.ref && b->unsigned_.ref;
}

static void release(struct back *b)
{
    free(b->regions.ref);
    free(b->comms.ref);
    free(b->handles.ref);
    free(b->signed_.ref);
    free(b->unsigned_.ref);
    if (b->list) OTF2_AttributeList_Delete(b->list);
    fdr_file_close(b->file);
    free(b);
}

void fdri_otf2_write_back(struct fdri_otf2_archive *a)
{
    char message[256] = "no memory";
    struct back *b = calloc(1, sizeof *b);
    if (b) b->archive = a;
    if (!b || fdr_process_open((uint32_t)getpid(), true, &b->file, message, sizeof message) == FDR_UNREADABLE ||
        !prepare(b))
        fprintf(stderr, "fdr: the OTF2 archive has no events: %s\n", message);
    else
        for (struct fdri_otf2_writer *w = a->writers; w; w = w->next) write_location(b, w);
    if (b) release(b);
}
