/* SPDX-License-Identifier: MIT */
/* Which messages do not block. Event fdr.request comes right before its message. If messages of that time were given
 * back, the next one kept may be another: then it has no request. An end is written if its begin was. */
#include <string.h>

#include "convert/otf2/otf2.h"

/* Values of the field `what`: FORMAT.md, 9.4. */
enum { NOTHING, ISEND, ISEND_COMPLETE, IRECV_POSTED, IRECV, TESTED, CANCELLED };
enum { MOST = sizeof((struct fdri_otf2_requests *)0)->open / sizeof(uint64_t) };

void fdri_otf2_requests_begin(struct fdri_otf2 *o, uint32_t location)
{
    struct fdri_otf2_requests *r = &o->requests;
    const struct fdr_reduction_info *row;
    size_t count = fdr_reductions(o->process[o->at].file, &row);
    r->given_back_ns = r->count = r->what = 0;
    for (size_t i = 0; i < count; i++)
        if (row[i].location == location && strncmp(row[i].what, "region", 6) != 0 && row[i].to_ns > r->given_back_ns)
            r->given_back_ns = row[i].to_ns;
}

static uint32_t find(const struct fdri_otf2_requests *r, uint64_t id, bool receive)
{
    uint32_t i = r->count;
    while (i-- > 0)
        if (r->open[i] == id && r->receive[i] == receive) return i;
    return MOST;
}

static void remove_at(struct fdri_otf2_requests *r, uint32_t i)
{
    r->count--;
    memmove(r->open + i, r->open + i + 1, (r->count - i) * sizeof *r->open);
    memmove(r->receive + i, r->receive + i + 1, (r->count - i) * sizeof *r->receive);
}

static void add(struct fdri_otf2_requests *r, uint64_t id, bool receive)
{
    if (r->count == MOST) remove_at(r, 0);
    r->open[r->count] = id;
    r->receive[r->count++] = receive;
}

/* Takes a request out, if it was begun on this location. */
static bool ends(struct fdri_otf2_requests *r, uint64_t id, bool receive)
{
    uint32_t i = find(r, id, receive);
    if (i == MOST) return false;
    remove_at(r, i);
    return true;
}

void fdri_otf2_requests_event(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    struct fdri_otf2_requests *r = &o->requests;
    uint64_t what = e->field[0], id = e->field[1], time = e->time_ns;
    r->what = NOTHING;
    if ((what == ISEND || what == IRECV) && time > r->given_back_ns) r->what = what, r->id = id;
    if (what == IRECV_POSTED) {
        add(r, id, true);
        fdri_otf2_check(o, OTF2_EvtWriter_MpiIrecvRequest(o->writer, o->list, time, id));
    } else if (what == ISEND_COMPLETE && ends(r, id, false)) {
        fdri_otf2_check(o, OTF2_EvtWriter_MpiIsendComplete(o->writer, o->list, time, id));
    } else if (what == TESTED && (find(r, id, false) != MOST || find(r, id, true) != MOST)) {
        fdri_otf2_check(o, OTF2_EvtWriter_MpiRequestTest(o->writer, o->list, time, id));
    } else if (what == CANCELLED && (ends(r, id, false) || ends(r, id, true))) {
        fdri_otf2_check(o, OTF2_EvtWriter_MpiRequestCancelled(o->writer, o->list, time, id));
    }
}

void fdri_otf2_requests_other(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    bool between = e->kind == FDR_EVENT || e->kind == FDR_RESOLVE;
    if (e->kind != FDR_SEND && e->kind != FDR_RECV && !between) o->requests.what = NOTHING;
}

bool fdri_otf2_requests_of(struct fdri_otf2 *o, const struct fdr_read_event *e, uint64_t *id)
{
    struct fdri_otf2_requests *r = &o->requests;
    uint64_t what = r->what;
    *id = r->id;
    r->what = NOTHING;
    if (what != (e->kind == FDR_SEND ? ISEND : IRECV)) return false;
    if (e->kind == FDR_RECV) return ends(r, *id, true);
    add(r, *id, false);
    return true;
}
