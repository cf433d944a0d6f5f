/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,tools timeout=120
 * The verdict of fdr hang on made-up jobs, whose truth is known: who is behind, and whether that is proven. Thousands
 * of runs have a clock of their own. Some are healthy, with phases ten times slower; others hang in one of eight ways.
 * Recordings are missing, or of other moments. No rank is accused that goes on; no fact is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/random_numbers.h"
#include "tools/hang/edges.c"
#include "tools/hang/judge.c"
#include "tools/hang/proof.c"
#include "tools/hang/verdict_sentence.c"

/* ---- a job on a clock of its own ---- */

#define SECOND  1000000000u
#define NEVER   UINT64_MAX
#define WORLD   1u
#define UNUSUAL 7u /* an operation that nobody else calls */
enum { RANKS_MOST = 48, OPS_MOST = 400, ALLREDUCE = 13, BCAST = 11 };
enum what { COMPUTE, COLLECTIVE, SEND, RECEIVE, FINALIZE_ };
enum mode {
    HEALTHY,
    SLOW_PHASE,
    COMPUTES_EVER,
    STOPS,
    STANDS_IN_IO,
    STANDS_ON_LOCK,
    PAIR,
    CIRCLE,
    MISMATCH,
    SKIPS,
    DIES,
    LEAVES,
    MODES
};

struct op {
    enum what what;
    uint32_t peer, operation, root;
    uint64_t lasts, begin, end, nth; /* nth: ordinal of its envelope, or of its communicator */
};
struct run {
    uint32_t ranks, culprit;
    enum mode mode;
    struct op op[RANKS_MOST][OPS_MOST];
    uint32_t ops[RANKS_MOST];
    uint64_t frozen_ns[RANKS_MOST]; /* it does nothing from here on */
    uint64_t scale;
    bool dense; /* a computing rank has events all the time */
};
static struct run run;

static struct op *add_op(uint32_t rank, enum what what, uint32_t peer)
{
    struct op *o = &run.op[rank][run.ops[rank]++];
    *o = (struct op){.what = what, .peer = peer, .begin = NEVER, .end = NEVER};
    return o;
}

static void exchange(uint64_t *seed)
{
    bool eager = rnd(seed, 2);
    uint64_t longest = run.scale < SECOND / 2 ? run.scale : SECOND / 2;
    for (uint32_t r = 0; r < run.ranks; r++) {
        uint32_t right = (r + 1) % run.ranks, left = (r + run.ranks - 1) % run.ranks;
        bool first = eager || r % 2 == 0;
        if (first) add_op(r, SEND, right)->lasts = rnd(seed, 1000) * (longest / 1000);
        add_op(r, RECEIVE, left);
        if (!first) add_op(r, SEND, right)->lasts = rnd(seed, 1000) * (longest / 1000);
    }
}

static void all_collective(uint32_t operation, uint32_t root)
{
    for (uint32_t r = 0; r < run.ranks; r++) {
        struct op *o = add_op(r, COLLECTIVE, 0);
        o->operation = operation, o->root = root;
    }
}

static void compute(uint64_t *seed, bool slow)
{
    for (uint32_t r = 0; r < run.ranks; r++) {
        uint64_t lasts = run.scale / 2 + rnd(seed, 1000) * (run.scale / 1000);
        add_op(r, COMPUTE, 0)->lasts = slow && r == run.culprit ? 10 * lasts : lasts;
    }
}

/* The faults, in the middle of the run. */
static void break_it(uint64_t *seed)
{
    uint32_t c = run.culprit, next = (c + 1) % run.ranks;
    struct op *o;
    switch (run.mode) {
    case SLOW_PHASE: compute(seed, true); break;
    case COMPUTES_EVER:
    case STOPS:
    case STANDS_IN_IO:
    case STANDS_ON_LOCK:
    case DIES:
    case LEAVES: add_op(c, COMPUTE, 0)->lasts = NEVER; break;
    case PAIR: add_op(c, RECEIVE, next), add_op(next, RECEIVE, c); break;
    case CIRCLE:
        for (uint32_t r = 0; r < run.ranks; r++) add_op(r, RECEIVE, (r + 1) % run.ranks);
        break;
    case MISMATCH:
        all_collective(ALLREDUCE, UINT32_MAX);
        o = &run.op[c][run.ops[c] - 1];
        if (rnd(seed, 2)) o->operation = UNUSUAL;
        else o->operation = BCAST, o->root = 0;
        break;
    case SKIPS:
        all_collective(ALLREDUCE, UINT32_MAX);
        run.ops[c]--;
        break;
    default: break;
    }
}

static void write_program(uint64_t *seed)
{
    uint32_t rounds = 8 + rnd(seed, 12), bad = 4 + rnd(seed, rounds - 6);
    for (uint32_t i = 0; i < rounds; i++) {
        compute(seed, false);
        if (i == bad) break_it(seed);
        switch (rnd(seed, 4)) {
        case 0: exchange(seed); break;
        case 1: all_collective(BCAST, rnd(seed, run.ranks)); break;
        default: all_collective(ALLREDUCE, UINT32_MAX);
        }
    }
    all_collective(ALLREDUCE, UINT32_MAX);
    for (uint32_t r = 0; r < run.ranks; r++) add_op(r, FINALIZE_, 0);
}

static bool is_message(const struct op *o) { return o->what == SEND || o->what == RECEIVE; }

static void number_ops(void)
{
    for (uint32_t r = 0; r < run.ranks; r++)
        for (uint32_t k = 0; k < run.ops[r]; k++)
            for (uint32_t i = 0; i < k; i++) {
                struct op *o = &run.op[r][k], *was = &run.op[r][i];
                o->nth += o->what == was->what && (!is_message(o) || o->peer == was->peer);
            }
}

/* The other end of a message; NULL: there is none. */
static struct op *partner(uint32_t r, const struct op *o)
{
    enum what other = o->what == SEND ? RECEIVE : SEND;
    for (uint32_t k = 0; k < run.ops[o->peer]; k++) {
        struct op *p = &run.op[o->peer][k];
        if (p->what == other && p->peer == r && p->nth == o->nth) return p;
    }
    return NULL;
}

static struct op *collective_at(uint32_t r, uint64_t nth)
{
    for (uint32_t k = 0; k < run.ops[r]; k++)
        if (run.op[r][k].what == COLLECTIVE && run.op[r][k].nth == nth) return &run.op[r][k];
    return NULL;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Nobody leaves an operation that all must join before they have; a broadcast needs the root alone. */
static uint64_t end_of_collective(const struct op *o)
{
    uint64_t end = o->begin;
    for (uint32_t r = 0; r < run.ranks; r++) {
        const struct op *its = collective_at(r, o->nth);
        bool needed = o->operation != BCAST || r == o->root;
        if (!needed) continue;
        if (!its || its->operation != o->operation || its->root != o->root) return NEVER;
        end = later(end, its->begin);
    }
    return end;
}

static uint64_t end_of_op(uint32_t r, const struct op *o)
{
    const struct op *p = is_message(o) ? partner(r, o) : NULL;
    if (o->what == COMPUTE) return o->lasts == NEVER ? NEVER : o->begin + o->lasts;
    if (o->what == SEND) return o->begin + o->lasts;
    if (o->what == RECEIVE) return p ? later(o->begin, p->begin) : NEVER;
    return o->what == COLLECTIVE ? end_of_collective(o) : NEVER;
}

static void simulate(void)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t r = 0; r < run.ranks; r++) {
            uint64_t now = SECOND;
            for (uint32_t k = 0; k < run.ops[r] && now != NEVER; k++) {
                struct op *o = &run.op[r][k];
                again |= o->begin != now;
                o->begin = now;
                uint64_t end = end_of_op(r, o);
                again |= o->end != end;
                o->end = now = end;
            }
        }
    }
}

/* ---- what its recordings show ---- */

static const char *name_of(uint32_t operation) { return operation == ALLREDUCE ? "Allreduce" : "Bcast"; }

static void observe_op(struct job_rank *f, const struct op *o, uint64_t t)
{
    struct job_wait *w = &f->wait;
    bool under_way = o->end > t;
    if (o->what == COMPUTE) {
        f->moved_ns = run.dense && o->lasts != NEVER ? (under_way ? t : o->end) : under_way ? o->begin : o->end;
        if (!under_way && !run.dense) f->longest_still_ns = later(f->longest_still_ns, o->lasts);
        return;
    }
    f->moved_ns = under_way ? o->begin : o->end;
    if (o->what == COLLECTIVE) f->comm[0].begun++, f->comm[0].ended += !under_way;
    if (is_message(o)) {
        size_t i = 0;
        while (i < f->envelopes && (f->envelope[i].peer != o->peer || f->envelope[i].sent != (o->what == SEND))) i++;
        if (i == f->envelopes)
            f->envelope[f->envelopes++] = (struct job_envelope){
                .comm = WORLD, .peer = o->peer, .sent = o->what == SEND};
        f->envelope[i].count++;
    }
    if (!under_way) return;
    *w = (struct job_wait){.in_call = true, .comm = WORLD, .since_ns = o->begin, .ordinal = o->nth, .peer = o->peer};
    if (o->what == COLLECTIVE) w->kind = FDR_MPI_WAIT_COLLECTIVE, w->operation = o->operation, w->peer = o->root;
    if (o->what == COLLECTIVE) strcpy(w->collective, name_of(o->operation));
    if (o->what == SEND) w->kind = FDR_MPI_WAIT_SEND;
    if (o->what == RECEIVE) w->kind = FDR_MPI_WAIT_RECEIVE;
    if (o->what == FINALIZE_)
        w->kind = FDR_MPI_WAIT_FINALIZE, w->comm = 0, w->ordinal = UINT64_MAX, w->peer = UINT32_MAX;
    strcpy(w->call, "MPI_Call");
}

static bool computes(uint32_t r, uint64_t t)
{
    for (uint32_t k = 0; k < run.ops[r]; k++)
        if (run.op[r][k].begin <= t && run.op[r][k].end > t) return run.op[r][k].what == COMPUTE;
    return false;
}

/* looks: the kernel was asked, too. */
static void observe(struct job_rank *f, uint32_t r, uint64_t t, bool looks)
{
    bool culprit = r == run.culprit;
    f->rank = r, f->seen_ns = t, f->counts = true, f->callers = 1, f->comms = 1;
    f->comm = calloc(1, sizeof *f->comm), f->envelope = calloc(2 * RANKS_MOST, sizeof *f->envelope);
    assert_true(f->comm && f->envelope);
    f->comm[0].comm = WORLD;
    for (uint32_t k = 0; k < run.ops[r] && run.op[r][k].begin <= t; k++) observe_op(f, &run.op[r][k], t);
    bool stands = culprit && run.mode >= COMPUTES_EVER && computes(r, t);
    f->doing = stands && run.mode == STANDS_IN_IO ? IN_IO : stands && run.mode == STANDS_ON_LOCK ? ON_LOCK : COMPUTES;
    if (!looks) return;
    bool moves = run.dense && computes(r, t) && !stands;
    f->moves = moves ? YES : NO;
    f->busy = computes(r, t) && (!stands || run.mode == COMPUTES_EVER) ? YES : NO;
}

static uint64_t last_begin(uint32_t r)
{
    uint64_t t = 0;
    for (uint32_t k = 0; k < run.ops[r]; k++)
        if (run.op[r][k].begin != NEVER) t = later(t, run.op[r][k].begin);
    return t;
}

/* The process of the one to blame ends, or is stopped, some time after it began to stand. */
static void end_culprit(struct job_rank *f, uint64_t at)
{
    if (run.mode == STOPS) f->stopped = true;
    if (run.mode != DIES && run.mode != LEAVES) return;
    f->end = run.mode == DIES ? FAULT : LEFT;
    f->end_ns = f->seen_ns = at;
    f->moves = f->busy = UNKNOWN;
}

/* ---- a run, and its judgement ---- */

struct score {
    unsigned runs, hung, right, told, provable, proven, wrong_hangs, wrong_facts;
};

/* True if it had not begun the collective at the moment of its recording. */
static bool truly_behind(const struct job *job, const struct finding *f, uint32_t rank)
{
    size_t i = job_find(job, rank);
    const struct op *o = i < job->ranks && f->ordinal != UINT64_MAX ? collective_at(rank, f->ordinal) : NULL;
    bool others = f->kind == BY_CYCLE || f->kind == BY_MISMATCH || f->kind == BY_ABSENT;
    return others || !o || o->begin > job->rank[i].seen_ns;
}

static bool truly_waits(const struct job *job, uint32_t rank)
{
    const struct job_rank *r = &job->rank[job_find(job, rank)];
    return r->wait.in_call && !computes(rank, r->seen_ns);
}

static void check_facts(const struct job *job, const struct verdict *v, struct score *s)
{
    for (size_t n = 0; n < v->findings; n++) {
        const struct finding *f = &v->finding[n];
        for (size_t i = 0; i < f->behinds; i++) s->wrong_facts += !truly_behind(job, f, f->behind[i]);
        for (size_t i = 0; i < f->waitings; i++) s->wrong_facts += !truly_waits(job, f->waiting[i]);
        bool circle = run.mode == PAIR || run.mode == CIRCLE;
        s->wrong_facts += f->kind == BY_CYCLE && !circle && run.mode != SKIPS && run.mode != MISMATCH;
        s->wrong_facts += f->kind == BY_MISMATCH && run.mode != MISMATCH && run.mode != SKIPS;
    }
}

static void score(const struct job *job, const struct verdict *v, bool all_there, bool same_moment, struct score *s)
{
    bool hangs = run.mode >= COMPUTES_EVER;
    s->runs++;
    check_facts(job, v, s);
    s->wrong_hangs += v->judgement == HANG && !hangs;
    if (!hangs || !all_there || !same_moment) return;
    s->hung++;
    bool right = v->findings && holds(v->finding[0].behind, v->finding[0].behinds, run.culprit);
    s->right += right;
    s->told += right && v->judgement != NOTHING;
    bool provable = run.mode == STOPS || run.mode >= PAIR;
    s->provable += provable;
    s->proven += provable && v->judgement == HANG;
    if (provable && v->judgement != HANG)
        print_message("mode %d, %u ranks: %s: %s (%s)\n", (int)run.mode, run.ranks, judgement_name[v->judgement],
                      v->sentence, v->why);
    if (!right) print_message("mode %d, %u ranks: %s (%s)\n", (int)run.mode, run.ranks, v->sentence, v->why);
}

static void make_run(uint64_t *seed)
{
    static const uint64_t scale[] = {SECOND / 100, SECOND, 10ull * SECOND};
    memset(&run, 0, sizeof run);
    run.ranks = 3 + rnd(seed, rnd(seed, 4) ? 6 : RANKS_MOST - 3);
    run.culprit = rnd(seed, run.ranks);
    run.mode = rnd(seed, MODES);
    run.scale = scale[rnd(seed, 3)];
    run.dense = rnd(seed, 2);
    write_program(seed);
    number_ops();
    simulate();
}

static uint64_t moment_of(uint64_t *seed)
{
    uint64_t newest = 0, t;
    for (uint32_t r = 0; r < run.ranks; r++) newest = later(newest, last_begin(r));
    if (run.mode >= COMPUTES_EVER) return newest + 3ull * SECOND + (uint64_t)rnd(seed, 400) * SECOND;
    t = SECOND + (uint64_t)rnd(seed, 1000) * (newest / 1000); /* while it runs */
    return t;
}

static void judge_run(uint64_t *seed, struct score *s)
{
    struct job job = {.world = run.ranks};
    struct job_comm world = {.identity = WORLD, .name = "MPI_COMM_WORLD", .size = run.ranks};
    struct job_rank rank[RANKS_MOST] = {0};
    struct verdict v;
    bool drops = rnd(seed, 3) == 0, ages = rnd(seed, 5) == 0, looks = rnd(seed, 2);
    uint64_t now = moment_of(seed);
    job.rank = rank, job.comm = &world, job.comms = 1;
    for (uint32_t r = 0; r < run.ranks; r++) {
        if (drops && rnd(seed, 4) == 0) continue;
        uint64_t age = ages ? (uint64_t)rnd(seed, 100) * SECOND : (uint64_t)rnd(seed, 1000) * 1000000u;
        struct job_rank *f = &rank[job.ranks++];
        uint64_t died = last_begin(r) + SECOND / 2;
        bool gone = r == run.culprit && (run.mode == DIES || run.mode == LEAVES) && computes(r, now);
        observe(f, r, gone ? died : now > age ? now - age : now, looks && !ages && !gone);
        if (r == run.culprit && computes(r, f->seen_ns) && run.mode >= COMPUTES_EVER) end_culprit(f, died);
    }
    assert_true(hang_judge(&job, &v));
    assert_true(v.sentence[0] && v.why[0]);
    score(&job, &v, job.ranks == run.ranks, !ages, s);
    hang_verdict_free(&v);
    for (size_t i = 0; i < job.ranks; i++) free(rank[i].comm), free(rank[i].envelope);
}

static void generated_runs(void **state)
{
    (void)state;
    struct score s = {0};
    uint64_t seed = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 2000; i++) {
        make_run(&seed);
        judge_run(&seed, &s);
    }
    print_message(
        "%u runs: %u hung with all recordings: %u right, %u told; of %u provable ones %u judged hang; %u wrong "
        "hangs, %u wrong facts\n",
        s.runs, s.hung, s.right, s.told, s.provable, s.proven, s.wrong_hangs, s.wrong_facts);
    assert_int_equal(s.wrong_hangs, 0);
    assert_int_equal(s.wrong_facts, 0);
    assert_true(s.hung > 500);
    assert_true(s.right * 100 >= s.hung * 97);
    assert_true(s.told == s.right);
    assert_true(s.proven * 100 >= s.provable * 95);
}

/* ---- single cases ---- */

#define NOW (1000ull * SECOND)

static struct job_comm world_of = {.identity = WORLD, .name = "MPI_COMM_WORLD"};
static struct job_rank few[8];
static struct job_comm_state begun_of[8];

/* Ranks that compute, and were seen now; none of them has begun a collective. */
static struct job ranks_that_compute(uint32_t count)
{
    world_of.size = count;
    for (uint32_t r = 0; r < count; r++) {
        begun_of[r] = (struct job_comm_state){.comm = WORLD};
        few[r] = (struct job_rank){.rank = r,
                                   .seen_ns = NOW,
                                   .moved_ns = NOW - 40ull * SECOND,
                                   .counts = true,
                                   .callers = 1,
                                   .comm = &begun_of[r],
                                   .comms = 1};
    }
    return (struct job){.rank = few, .ranks = count, .comm = &world_of, .comms = 1, .world = count};
}

static void waits_in_allreduce(uint32_t r, uint64_t ordinal)
{
    begun_of[r].begun = ordinal + 1;
    few[r].wait = (struct job_wait){.in_call = true,
                                    .kind = FDR_MPI_WAIT_COLLECTIVE,
                                    .comm = WORLD,
                                    .operation = ALLREDUCE,
                                    .peer = UINT32_MAX,
                                    .ordinal = ordinal,
                                    .since_ns = NOW - 40ull * SECOND,
                                    .call = "MPI_Allreduce",
                                    .collective = "Allreduce"};
}

static void waits_for_message(uint32_t r, uint32_t from)
{
    few[r].wait = (struct job_wait){.in_call = true,
                                    .kind = FDR_MPI_WAIT_RECEIVE,
                                    .comm = WORLD,
                                    .peer = from,
                                    .tag = 7,
                                    .since_ns = NOW - 40ull * SECOND,
                                    .call = "MPI_Recv"};
}

static void expect(const struct job *job, enum judgement judgement, enum hang_kind kind, uint32_t behind,
                   size_t behinds)
{
    struct verdict v;
    assert_true(hang_judge(job, &v));
    if (v.judgement != judgement) print_message("%s: %s (%s)\n", judgement_name[v.judgement], v.sentence, v.why);
    assert_int_equal(v.judgement, judgement);
    assert_true(v.findings > 0);
    assert_int_equal(v.finding[0].kind, kind);
    assert_int_equal(v.finding[0].behinds, behinds);
    assert_int_equal(v.finding[0].behind[0], behind);
    hang_verdict_free(&v);
}

/* One is ahead, four are behind: these are named, not the one. */
static void those_behind_may_be_most(void **state)
{
    (void)state;
    struct job job = ranks_that_compute(5);
    waits_in_allreduce(0, 3);
    expect(&job, HANG, BY_COMPUTING, 1, 4);
    begun_of[2].begun = 3; /* further than the others */
    expect(&job, HANG, BY_COMPUTING, 1, 3);
}

static void processor_time_and_movement_are_slow(void **state)
{
    (void)state;
    struct job job = ranks_that_compute(2);
    waits_in_allreduce(0, 3);
    few[1].busy = YES; /* the other one waits longer than the limit */
    expect(&job, SLOW, BY_COMPUTING, 1, 1);
    job.after_ns = 10ull * SECOND;
    expect(&job, HANG, BY_COMPUTING, 1, 1);
    few[1].moves = YES;
    expect(&job, SLOW, BY_COMPUTING, 1, 1);
}

/* Twenty times what is usual in this run, but at least 30 s. */
static void the_limit_is_of_the_run(void **state)
{
    (void)state;
    struct job job = ranks_that_compute(2);
    waits_in_allreduce(0, 3);
    few[1].longest_still_ns = 3ull * SECOND;
    expect(&job, UNDECIDED, BY_COMPUTING, 1, 1);
    few[1].longest_still_ns = 2ull * SECOND;
    expect(&job, HANG, BY_COMPUTING, 1, 1);
    few[1].moved_ns = NOW - 29ull * SECOND;
    expect(&job, UNDECIDED, BY_COMPUTING, 1, 1);
}

static void a_rank_without_recording_is_undecided(void **state)
{
    (void)state;
    struct job job = ranks_that_compute(3);
    waits_in_allreduce(0, 3), waits_in_allreduce(1, 3);
    job.ranks = 2;
    expect(&job, UNDECIDED, BY_ABSENT, 2, 1);
    job.ranks = 3, few[2].seen_ns = NOW - 50ull * SECOND; /* it was seen before the others began to wait */
    expect(&job, UNDECIDED, BY_ABSENT, 2, 1);
}

/* A rank that does not count a communicator has no counters of it, whatever it has done there; the world it counts. */
static void a_communicator_without_counters_is_undecided(void **state)
{
    (void)state;
    enum { OTHER = 4711 };
    struct job job = ranks_that_compute(2);
    struct job_comm both[] = {world_of, {.identity = OTHER, .name = "rows", .size = 2}};
    struct job_comm_state begun[] = {{.comm = WORLD, .begun = 4}, {.comm = OTHER, .begun = 4}};
    waits_in_allreduce(0, 3);
    few[0].wait.comm = OTHER, few[0].comm = begun, few[0].comms = 2, job.comm = both, job.comms = 2;
    expect(&job, HANG, BY_COMPUTING, 1, 1);
    few[1].leaves_out = true;
    expect(&job, UNDECIDED, BY_ABSENT, 1, 1);
    few[0].wait.comm = WORLD;
    expect(&job, HANG, BY_COMPUTING, 1, 1);
    few[1].comms = 0;
    expect(&job, HANG, BY_COMPUTING, 1, 1);
}

/* Two looks at many processes take their time, and are of one moment all the same. */
static void slow_looks_are_of_one_moment(void **state)
{
    (void)state;
    struct job job = ranks_that_compute(2);
    waits_in_allreduce(0, 3);
    few[1].seen_ns = NOW - 20ull * SECOND, few[1].moved_ns = NOW - 60ull * SECOND;
    expect(&job, UNDECIDED, BY_ABSENT, 1, 1); /* two files */
    few[1].looked_twice = true, few[1].moves = NO;
    expect(&job, HANG, BY_COMPUTING, 1, 1);
}

/* The signal that ends all ranks of a job is not the reason for which they waited. */
static void ended_together_is_no_proof(void **state)
{
    (void)state;
    struct job job = ranks_that_compute(2);
    waits_in_allreduce(0, 3);
    few[0].end = few[1].end = OUTSIDE;
    few[0].end_ns = NOW, few[1].end_ns = NOW - SECOND;
    few[1].moved_ns = NOW - 10ull * SECOND;
    expect(&job, UNDECIDED, BY_COMPUTING, 1, 1);
    few[1].end_ns = NOW - 10ull * SECOND; /* the other one waited on */
    expect(&job, HANG, BY_DEAD, 1, 1);
    few[1].end = FAULT, few[1].end_ns = NOW - SECOND;
    expect(&job, HANG, BY_DEAD, 1, 1);
}

static void circles_need_counters(void **state)
{
    (void)state;
    struct verdict v;
    struct job job = ranks_that_compute(2);
    waits_for_message(0, 1), waits_for_message(1, 0);
    few[0].moved_ns = few[1].moved_ns = few[0].wait.since_ns = few[1].wait.since_ns = NOW - 10ull * SECOND;
    expect(&job, HANG, BY_CYCLE, 0, 2);
    struct job_envelope sent = {.comm = WORLD, .peer = 0, .tag = 7, .sent = true, .count = 1};
    few[1].envelope = &sent, few[1].envelopes = 1; /* rank 1 has sent what rank 0 waits for */
    assert_true(hang_judge(&job, &v));
    assert_int_not_equal(v.judgement, HANG);
    hang_verdict_free(&v);
    few[1].envelopes = 0, few[1].callers = 2; /* another thread may send it */
    assert_true(hang_judge(&job, &v));
    assert_int_not_equal(v.judgement, HANG);
    hang_verdict_free(&v);
    few[1].callers = 1, few[1].wait.since_ns = NOW - SECOND, few[0].seen_ns = NOW - 2ull * SECOND;
    assert_true(hang_judge(&job, &v)); /* no moment at which both waited */
    assert_int_not_equal(v.judgement, HANG);
    hang_verdict_free(&v);
}

static void short_waits_are_nothing(void **state)
{
    (void)state;
    struct verdict v;
    struct job job = ranks_that_compute(3);
    waits_in_allreduce(0, 3);
    few[0].wait.since_ns = NOW - SECOND / 2;
    assert_true(hang_judge(&job, &v));
    assert_int_equal(v.judgement, NOTHING);
    hang_verdict_free(&v);
    few[2].stopped = true; /* but one that is stopped is waited for from the first moment on */
    expect(&job, HANG, BY_STOPPED, 2, 1);
}

/* Everybody has begun an operation that does not block, and one rank computes before it waits for it. MPI may need it
 * to go on: the others stand, and nobody has called the wrong thing. */
static void overlap_is_no_mismatch(void **state)
{
    (void)state;
    struct verdict v;
    struct job job = ranks_that_compute(3);
    for (uint32_t r = 1; r < 3; r++) {
        waits_in_allreduce(r, 3);
        few[r].wait.kind = FDR_MPI_WAIT_REQUESTS, few[r].wait.pending = 1;
        begun_of[r].ended = 3;
    }
    begun_of[0].begun = 4, begun_of[0].ended = 3, few[0].busy = YES;
    strcpy(few[0].where, "solve");
    for (uint64_t ended = 3; ended <= 4; ended++) { /* and one that is past it, as it needed nobody any more */
        begun_of[0].ended = ended;
        assert_true(hang_judge(&job, &v));
        assert_int_equal(v.findings, 0);
        assert_int_equal(v.judgement, UNDECIDED);
        assert_non_null(strstr(v.sentence, "2 of 3 ranks wait in MPI_Allreduce"));
        assert_non_null(strstr(v.sentence, "rank 0 computes in solve"));
        hang_verdict_free(&v);
    }
}

/* A call that blocks, and that one rank has left: the number was another call's. */
static void left_by_some_is_a_mismatch(void **state)
{
    (void)state;
    struct verdict v;
    struct job job = ranks_that_compute(3);
    for (uint32_t r = 1; r < 3; r++) waits_in_allreduce(r, 3), begun_of[r].ended = 3;
    begun_of[0].begun = begun_of[0].ended = 4;
    expect(&job, HANG, BY_MISMATCH, 0, 1);
    begun_of[0].ended = 3; /* another thread of it is in the call */
    assert_true(hang_judge(&job, &v));
    assert_int_not_equal(v.judgement, HANG);
    hang_verdict_free(&v);
}

/* Only what is known of it is said. */
static void what_it_does_is_known_or_not_said(void **state)
{
    (void)state;
    static const struct {
        enum hang_doing doing;
        enum tri busy;
        const char *says, *class_;
    } known[] = {{SLEEPS, NO, "it sleeps in read", "sleeping"},
                 {STANDS, NO, "it stands in read", "standing"},
                 {IN_IO, NO, "it waits for I/O in read", "io"},
                 {COMPUTES, YES, "it computes in read", "computing"},
                 {NOT_SEEN, YES, "it computes in read", "computing"},
                 {NOT_SEEN, NO, "it stands in read", "standing"},
                 {NOT_SEEN, UNKNOWN, "it is outside of MPI in read", "outside"}};
    struct job job = ranks_that_compute(2);
    waits_in_allreduce(0, 3);
    strcpy(few[1].where, "read");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct verdict v;
        few[1].doing = known[i].doing, few[1].busy = known[i].busy;
        assert_true(hang_judge(&job, &v));
        assert_non_null(strstr(v.sentence, known[i].says));
        assert_string_equal(hang_class_text(v.class_of[1], &few[1]), known[i].class_);
        hang_verdict_free(&v);
    }
}

/* Of several that are behind and do different things, one is told by name. */
static void what_one_does_is_not_said_of_all(void **state)
{
    (void)state;
    struct verdict v;
    struct job job = ranks_that_compute(4);
    waits_in_allreduce(0, 3), waits_in_allreduce(3, 3);
    strcpy(few[1].where, "read"), strcpy(few[2].where, "read");
    assert_true(hang_judge(&job, &v));
    assert_non_null(strstr(v.sentence, "ranks 1, 2 are behind: 2 others wait for them"));
    assert_non_null(strstr(v.sentence, "; they compute in read"));
    hang_verdict_free(&v);
    strcpy(few[2].where, "write");
    assert_true(hang_judge(&job, &v));
    assert_non_null(strstr(v.sentence, "; rank 1 computes in read"));
    hang_verdict_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_runs),
        cmocka_unit_test(those_behind_may_be_most),
        cmocka_unit_test(processor_time_and_movement_are_slow),
        cmocka_unit_test(the_limit_is_of_the_run),
        cmocka_unit_test(a_rank_without_recording_is_undecided),
        cmocka_unit_test(a_communicator_without_counters_is_undecided),
        cmocka_unit_test(slow_looks_are_of_one_moment),
        cmocka_unit_test(ended_together_is_no_proof),
        cmocka_unit_test(circles_need_counters),
        cmocka_unit_test(short_waits_are_nothing),
        cmocka_unit_test(overlap_is_no_mismatch),
        cmocka_unit_test(left_by_some_is_a_mismatch),
        cmocka_unit_test(what_it_does_is_known_or_not_said),
        cmocka_unit_test(what_one_does_is_not_said_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
