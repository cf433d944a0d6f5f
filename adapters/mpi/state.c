/* SPDX-License-Identifier: MIT */
/* Tells what the calling thread is in. Entering a call costs one operation on tallies, leaving it another one. Calls
 * inside of a call, which callbacks make, are counted and do not tell: the outer one stays shown. */
#include "adapters/mpi/state.h"
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

enum { CALLS_SHIFT = 20, REGION_MOST = (1 << CALLS_SHIFT) - 1, COMM_MOST = 0xffffff, PENDING_MOST = 0xffff };
#define ORDINAL_UNKNOWN 0xffffffffffffu
#define NUMBER(calls)   ((calls)&0xffffu) /* in each word: they are of one call if it is the same in all */

static __thread struct {
    uint32_t recording;  /* of the rows; other: not looked for */
    fdr_tally row[2];    /* the call; what it waits for */
    uint64_t calls;      /* that ended */
    uint32_t depth;      /* calls of MPI inside of each other */
    const char *outside; /* address in the frame of the outermost one */
} self;

struct wait {
    enum fdri_mpi_wait kind;
    uint32_t peer, pending, operation;
    int32_t tag;
    const struct fdri_mpi_members *group;
    uint64_t ordinal;
};

uint64_t fdri_mpi_state_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A thread that finds no room has no row in this recording. One with the number of an ended one goes on in its row. */
static bool find_rows(uint32_t on)
{
    const struct {
        uint32_t tid;
        uint8_t rest[FDR_TALLY_KEY_BYTES - 4];
    } key = {.tid = (uint32_t)syscall(SYS_gettid)};
    uint64_t before = 0;
    self.recording = on;
    self.row[0] = self.row[1] = 0;
    if (fdr_tally_make(FDR_TALLY_CALL, &key, &self.row[0]) || fdr_tally_make(FDR_TALLY_WAIT, &key, &self.row[1])) {
        self.row[0] = 0;
        return false;
    }
    fdr_tally_read(self.row[0], 0, &before);
    self.calls = before >> CALLS_SHIFT;
    return true;
}

static bool has_rows(void)
{
    uint32_t on = __atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED);
    if (!on) return false;
    return self.recording == on ? self.row[0] != 0 : find_rows(on);
}

/* ---- what a call waits for ---- */

static uint64_t ordinal_of(const struct fdri_mpi_number *number)
{
    return number->state == FDRI_MPI_NUMBERED ? number->n : ORDINAL_UNKNOWN;
}

static const struct fdri_mpi_members *group_of(const struct fdri_mpi_call *c, enum fdri_mpi_role role)
{
    return fdri_mpi_has(c, role) ? fdri_mpi_members_known(fdri_mpi_handle(c, role, FDRI_MPI_COMM)) : NULL;
}

static void wait_for_receiver(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p, struct wait *w)
{
    w->group = group_of(c, FDRI_MPI_comm);
    w->tag = (int32_t)fdri_mpi_int(c, FDRI_MPI_tag);
    if (w->group) w->peer = fdri_mpi_world_rank(w->group, (int)fdri_mpi_int(c, FDRI_MPI_dest));
    w->ordinal = ordinal_of(&p->send);
}

static void wait_for_receive(const struct fdri_mpi_receive *r, struct wait *w)
{
    w->group = r->group;
    w->tag = r->tag < 0 ? FDRI_MPI_ANY_TAG : r->tag;
    if (r->group) w->peer = r->any_source ? FDRI_MPI_ANY_PEER : r->peer;
    w->ordinal = ordinal_of(&r->number);
}

static void wait_for_probe(const struct fdri_mpi_call *c, struct wait *w)
{
    int source = (int)fdri_mpi_int(c, FDRI_MPI_source), tag = (int)fdri_mpi_int(c, FDRI_MPI_tag);
    w->group = group_of(c, FDRI_MPI_comm);
    w->tag = tag < 0 ? FDRI_MPI_ANY_TAG : tag;
    if (w->group) w->peer = source < 0 ? FDRI_MPI_ANY_PEER : fdri_mpi_world_rank(w->group, source);
}

uint32_t fdri_mpi_root_of(const struct fdri_mpi_call *c, const struct fdri_mpi_members *group)
{
    if (!group || group->inter || !fdri_mpi_has(c, FDRI_MPI_root)) return UINT32_MAX;
    return fdri_mpi_world_rank(group, (int)fdri_mpi_int(c, FDRI_MPI_root));
}

static void wait_for_members(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p, struct wait *w)
{
    w->group = group_of(c, FDRI_MPI_comm);
    w->operation = c->f->operation;
    w->peer = fdri_mpi_root_of(c, w->group);
    if (p->ordinal != FDR_ORDINAL_UNKNOWN) w->ordinal = p->ordinal;
}

static void wait_for_pending(const struct fdri_mpi_pending *p, struct wait *w)
{
    switch (p->kind) {
    case FDRI_MPI_PENDING_RECV: wait_for_receive(&p->receive, w); break;
    case FDRI_MPI_PENDING_SEND:
        w->group = p->group, w->peer = (uint32_t)p->peer, w->tag = p->tag;
        w->ordinal = ordinal_of(&p->send);
        break;
    default:
        w->group = p->group, w->operation = p->operation, w->peer = (uint32_t)p->root;
        if (p->ordinal != FDR_ORDINAL_UNKNOWN) w->ordinal = p->ordinal;
    }
    if (p->kind == FDRI_MPI_PENDING_SEND) w->operation = 1; /* below all operations: a send */
}

static bool is_open(const struct fdri_mpi_pending *p)
{
    bool told = p->kind == FDRI_MPI_PENDING_RECV || p->kind == FDRI_MPI_PENDING_SEND ||
                p->kind == FDRI_MPI_PENDING_COLL;
    return told && (!p->persistent || p->active);
}

/* Of several requests the first receive is told, else the first one: a receive cannot end without its sender. */
static void wait_for_requests(const struct fdri_mpi_call *c, const struct fdri_mpi_completion *done, struct wait *w)
{
    const struct fdri_mpi_pending *told = NULL;
    bool all = !fdri_mpi_has(c, FDRI_MPI_indx) && !fdri_mpi_has(c, FDRI_MPI_outcount);
    w->kind = all ? FDRI_MPI_WAIT_REQUESTS : FDRI_MPI_WAIT_ANY;
    for (int i = 0; done && i < done->count; i++) {
        const struct fdri_mpi_pending *p = done->claimed[i];
        if (!p || !is_open(p)) continue;
        w->pending++;
        if (!told || (told->kind != FDRI_MPI_PENDING_RECV && p->kind == FDRI_MPI_PENDING_RECV)) told = p;
    }
    if (told) wait_for_pending(told, w);
}

static bool is_named(const struct fdri_mpi_call *c, const char *name) { return strcmp(c->f->name + 4, name) == 0; }

/* Programs poll with such calls, so they are counted when they end, and the thread does not tell that it is in one. */
static bool never_blocks(const struct fdri_mpi_call *c)
{
    if (fdri_mpi_has(c, FDRI_MPI_flag)) return true;
    if (fdri_mpi_has(c, FDRI_MPI_request)) return c->f->kind != FDRI_MPI_wait; /* it posts */
    static const char *const name[] = {"Testsome", "Testsome_c", "Bsend", "Bsend_c"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (is_named(c, name[i])) return true;
    return false;
}

static void describe(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p,
                     const struct fdri_mpi_completion *done, struct wait *w)
{
    uint8_t kind = c->f->kind;
    if (kind == FDRI_MPI_finalize) w->kind = FDRI_MPI_WAIT_FINALIZE;
    if (!c->runs) return;
    if (kind == FDRI_MPI_wait) {
        wait_for_requests(c, done, w);
    } else if (kind == FDRI_MPI_send && p) {
        w->kind = FDRI_MPI_WAIT_SEND;
        wait_for_receiver(c, p, w);
    } else if ((kind == FDRI_MPI_recv || kind == FDRI_MPI_sendrecv) && p) {
        w->kind = kind == FDRI_MPI_recv ? FDRI_MPI_WAIT_RECEIVE : FDRI_MPI_WAIT_SENDRECV;
        wait_for_receive(&p->receive, w);
    } else if (kind == FDRI_MPI_mprobe || (kind == FDRI_MPI_region && is_named(c, "Probe"))) {
        w->kind = FDRI_MPI_WAIT_PROBE;
        wait_for_probe(c, w);
    } else if (kind == FDRI_MPI_coll && p) {
        w->kind = FDRI_MPI_WAIT_COLLECTIVE;
        wait_for_members(c, p, w);
    } else if (kind == FDRI_MPI_comm_new) {
        w->kind = FDRI_MPI_WAIT_COMM;
        w->group = group_of(c, FDRI_MPI_comm);
    }
}

/* ---- telling it ---- */

/* A call that was left by longjmp or by an exception has ended: this one lies not deeper in the stack than it. */
static bool is_outermost(const char *here)
{
    if (self.depth && here < self.outside) return false;
    self.depth = 0;
    self.outside = here;
    return true;
}

static uint64_t upto(uint64_t value, uint64_t most) { return value < most ? value : most; }

void fdri_mpi_state_enter(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *posting,
                          const struct fdri_mpi_completion *done)
{
    if (!is_outermost(__builtin_frame_address(0))) {
        self.depth++;
        return;
    }
    self.depth = 1;
    if (!has_rows() || (c->runs && never_blocks(c))) return;
    struct wait w = {.peer = UINT32_MAX, .ordinal = ORDINAL_UNKNOWN};
    describe(c, posting, done, &w);
    uint64_t number = NUMBER(self.calls), comm = w.group && !w.group->inter ? w.group->id : COMM_MOST;
    const uint64_t words[] = {
        self.calls << CALLS_SHIFT | (c->f->region ? upto(c->f->region, REGION_MOST) : REGION_MOST),
        (fdri_mpi_state_now() & ~(uint64_t)0xffff) | number,
        upto(comm, COMM_MOST) << 40 | (uint64_t)w.kind << 32 | upto(w.pending, PENDING_MOST) << 16 | number,
        (uint64_t)(uint32_t)w.tag << 32 | number,
        w.ordinal << 16 | number,
        (uint64_t)w.peer << 32 | (uint64_t)w.operation << 16 | number,
    };
    fdr_tally_set_all(self.row, w.kind == FDRI_MPI_WAIT_OTHER ? 1 : 2, words);
}

void fdri_mpi_state_leave(void)
{
    if (!self.depth) return;
    self.calls++;
    if (--self.depth || !self.row[0]) return;
    if (fdr_tally_set(self.row[0], 0, self.calls << CALLS_SHIFT)) self.recording = 0;
}
