/* SPDX-License-Identifier: MIT */
/* The verdict in words: one sentence that says who is behind, what the others wait in, and what it does meanwhile. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/hang/verdict.h"

const char *const hang_kind_name[] = {"stopped", "computing", "io",    "lock",   "mismatch",
                                      "cycle",   "dead",      "ended", "absent", "unknown"};
const char *const rank_class_name[] = {"stopped", "computing", "waiting", "io",     "lock",   "ended",
                                       "dead",    "mismatch",  "cycle",   "absent", "unknown"};
const char *const judgement_name[] = {"none", "slow", "undecided", "hang"};

static void add(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    if (used < bytes) vsnprintf(text + used, bytes - used, format, list);
    va_end(list);
}

const char *hang_time_text(uint64_t ns, char text[24])
{
    double s = (double)ns / 1e9;
    if (s < 0.1) snprintf(text, 24, "%.1f ms", s * 1e3);
    else if (s < 600) snprintf(text, 24, "%.1f s", s);
    else if (s < 36000) snprintf(text, 24, "%.0f min", s / 60);
    else snprintf(text, 24, "%.1f h", s / 3600);
    return text;
}

const char *hang_ranks_text(const uint32_t *rank, size_t count, char *text, size_t bytes)
{
    *text = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && rank[end] == rank[end - 1] + 1;) end++;
        if (strlen(text) + 32 > bytes) {
            add(text, bytes, ", ...");
            break;
        }
        add(text, bytes, "%s%u", i ? ", " : "", rank[i]);
        if (end > i + 1) add(text, bytes, "%s%u", end == i + 2 ? ", " : "-", rank[end - 1]);
    }
    return text;
}

static const char *comm_name(const struct job *job, uint64_t identity)
{
    const struct job_comm *c = job_comm_of(job, identity);
    return c && c->name[0] ? c->name : "a communicator";
}

static void add_envelope(const struct job_wait *w, bool sends, char *text, size_t bytes)
{
    add(text, bytes, sends ? " to " : " from ");
    if (w->peer == FDR_MPI_ANY) add(text, bytes, "any rank");
    else if (w->peer == UINT32_MAX) add(text, bytes, "an unknown rank");
    else add(text, bytes, "rank %u", w->peer);
    if (w->tag == INT32_MIN) add(text, bytes, ", any tag");
    else add(text, bytes, ", tag %d", w->tag);
}

const char *hang_call_text(const struct job *job, const struct job_wait *w, char *text, size_t bytes)
{
    bool requests = w->kind == FDR_MPI_WAIT_REQUESTS || w->kind == FDR_MPI_WAIT_ANY;
    bool message = (w->kind >= FDR_MPI_WAIT_SEND && w->kind <= FDR_MPI_WAIT_PROBE) ||
                   (requests && w->pending && w->operation <= 1);
    snprintf(text, bytes, "%s", w->call[0] ? w->call : "MPI");
    if (requests && w->operation > 1) add(text, bytes, " for %s", w->collective);
    if (requests && message) add(text, bytes, " for a message");
    if (message) add_envelope(w, w->kind == FDR_MPI_WAIT_SEND || (requests && w->operation == 1), text, bytes);
    else if (w->ordinal != UINT64_MAX) add(text, bytes, " #%llu", (unsigned long long)w->ordinal);
    if (w->comm) add(text, bytes, "%s %s", message ? "," : " on", comm_name(job, w->comm));
    if (!message && w->peer < FDR_MPI_ANY) add(text, bytes, ", root %u", w->peer);
    if (requests && w->pending > 1) add(text, bytes, " (%u requests are open)", w->pending);
    return text;
}

/* "rank 1", "ranks 0-2, 7", "1,000 ranks (0-999)" */
static void add_ranks(const uint32_t *rank, size_t count, char *text, size_t bytes)
{
    char list[64];
    add(text, bytes, "rank%s %s", count == 1 ? "" : "s", hang_ranks_text(rank, count, list, sizeof list));
}

static void add_others(const struct finding *f, char *text, size_t bytes)
{
    if (f->waitings == 1) add(text, bytes, "rank %u waits", f->waiting[0]);
    else add(text, bytes, "%zu others wait", f->waitings);
}

/* Its recording is there, and has no counters of the communicator. */
static bool is_not_counted(const struct job *job, const struct finding *f)
{
    size_t at = f->behinds ? job_find(job, f->behind[0]) : job->ranks;
    return at < job->ranks && f->ordinal != UINT64_MAX && job_begun(&job->rank[at], f->comm) == UINT64_MAX;
}

/* The state of a rank outside of MPI: as the kernel says, else by its processor time. Without both it is not known. */
enum outside { COMPUTING, SLEEPING, WITH_IO, WITH_LOCK, STANDING, OUTSIDE_OF_MPI };
static enum outside outside_of(const struct job_rank *r)
{
    static const enum outside seen[] = {
        [COMPUTES] = COMPUTING, [IN_IO] = WITH_IO, [ON_LOCK] = WITH_LOCK, [SLEEPS] = SLEEPING, [STANDS] = STANDING};
    if (r->doing != NOT_SEEN) return seen[r->doing];
    return r->busy == YES ? COMPUTING : r->busy == NO ? STANDING : OUTSIDE_OF_MPI;
}

const char *hang_class_text(enum rank_class c, const struct job_rank *r)
{
    static const char *const name[] = {"computing", "sleeping", "io", "lock", "standing", "outside"};
    return c == IS_COMPUTING ? name[outside_of(r)] : rank_class_name[c];
}

/* "it sleeps", "they compute" */
static void add_outside(const struct job_rank *r, const char *who, bool one, char *text, size_t bytes)
{
    static const char *const does[] = {"computes",         "sleeps", "waits for I/O",
                                       "waits for a lock", "stands", "is outside of MPI"},
                             *const do_[] = {"compute",         "sleep", "wait for I/O",
                                             "wait for a lock", "stand", "are outside of MPI"};
    add(text, bytes, "%s %s", who, (one ? does : do_)[outside_of(r)]);
}

/* Appends the activity of rank `at`, which is behind; job->ranks: it has no recording. many: others are behind, too. */
static void add_doing_of(const struct job *job, const struct finding *f, size_t at, const char *who, bool many,
                         char *text, size_t bytes)
{
    const struct job_rank *r = at < job->ranks ? &job->rank[at] : NULL;
    const char *s = many ? "" : "s", *is = many ? "are" : "is", *has = many ? "have" : "has";
    char call[160];
    switch (f->kind) {
    case BY_STOPPED: add(text, bytes, "%s %s stopped", who, is); break;
    case BY_DEAD: add(text, bytes, "%s died%s%s", who, r && r->cause[0] ? " of " : "", r ? r->cause : ""); break;
    case BY_ENDED:
        add(text, bytes, "%s %s %s", who, has, r && r->wait.in_call ? "called MPI_Finalize" : "ended");
        return;
    case BY_ABSENT:
        if (is_not_counted(job, f)) add(text, bytes, "no counters of this communicator are there");
        else if (job_find(job, f->behind[0]) < job->ranks)
            add(text, bytes, "%s recording is older", many ? "their" : "its");
        else add(text, bytes, "%s %s no recording", who, has);
        return;
    case BY_UNKNOWN:
        if (r) add(text, bytes, "%s stand%s in %s", who, s, hang_call_text(job, &r->wait, call, sizeof call));
        return;
    default:
        if (r && r->wait.in_call) {
            add(text, bytes, "%s poll%s in %s", who, s, r->wait.call);
            return;
        }
        if (r) add_outside(r, who, !many, text, bytes);
    }
    if (r && r->where[0] && f->kind != BY_DEAD) add(text, bytes, " in %s", r->where);
    if (r && r->end != GOES_ON && f->kind != BY_DEAD)
        add(text, bytes, ", until %s %s killed%s%s", many ? "they" : "it", many ? "were" : "was",
            r->cause[0] ? " by " : "", r->cause);
}

/* All that are behind do the same, as far as a sentence tells it. */
static bool do_the_same(const struct job *job, const struct finding *f)
{
    char first[400], text[400];
    for (size_t i = 0; i < f->behinds; i++) {
        char *to = i ? text : first;
        *to = 0;
        add_doing_of(job, f, job_find(job, f->behind[i]), "they", true, to, sizeof text);
        if (i && strcmp(first, text) != 0) return false;
    }
    return true;
}

static void add_doing(const struct job *job, const struct finding *f, char *text, size_t bytes)
{
    char who[24] = "it";
    bool many = f->behinds > 1 && do_the_same(job, f);
    if (many) snprintf(who, sizeof who, "they");
    else if (f->behinds > 1 && f->one < job->ranks) snprintf(who, sizeof who, "rank %u", job->rank[f->one].rank);
    add_doing_of(job, f, f->one, who, many || f->kind == BY_ABSENT, text, bytes);
}

static void say_circle(const struct job *job, const struct finding *f, char *text, size_t bytes)
{
    enum { TOLD = 4 };
    char call[160];
    add_ranks(f->behind, f->behinds, text, bytes);
    add(text, bytes, " wait for each other in a circle");
    for (size_t i = 0; i < f->behinds && i < TOLD; i++) {
        const struct job_rank *r = &job->rank[job_find(job, f->behind[i])];
        add(text, bytes, "%s rank %u in %s", i ? ";" : ":", r->rank, hang_call_text(job, &r->wait, call, sizeof call));
    }
    if (f->behinds > TOLD) add(text, bytes, "; ...");
}

static bool holds(const uint32_t *list, size_t count, uint32_t rank)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == rank) return true;
    return false;
}

/* "rank 0 calls ..., rank 1 calls ...: these do not fit" */
static void say_no_majority(const struct job *job, const struct finding *f, char *text, size_t bytes)
{
    enum { TOLD = 3 };
    char call[160];
    for (size_t i = 0; i < f->behinds && i < TOLD; i++) {
        const struct job_rank *r = &job->rank[job_find(job, f->behind[i])];
        add(text, bytes, "%srank %u calls %s", i ? "; " : "", r->rank,
            hang_call_text(job, &r->wait, call, sizeof call));
    }
    add(text, bytes, "%s: these do not fit", f->behinds > TOLD ? "; ..." : "");
}

static void say_mismatch(const struct job *job, const struct finding *f, char *text, size_t bytes)
{
    const struct job_rank *odd = &job->rank[f->one], *r = &job->rank[f->waits];
    char call[160];
    if (holds(f->behind, f->behinds, r->rank)) {
        say_no_majority(job, f, text, bytes);
        return;
    }
    add_ranks(f->behind, f->behinds, text, bytes);
    if (!odd->wait.in_call || odd->wait.comm != r->wait.comm || odd->wait.ordinal != r->wait.ordinal) {
        add(text, bytes, " left %s, where %zu other%s", hang_call_text(job, &r->wait, call, sizeof call), f->waitings,
            f->waitings == 1 ? " stands" : "s stand");
        return;
    }
    add(text, bytes, f->behinds == 1 ? " calls %s" : " call %s", hang_call_text(job, &odd->wait, call, sizeof call));
    add(text, bytes, ", where ");
    if (f->waitings == 1) add(text, bytes, "rank %u calls", f->waiting[0]);
    else add(text, bytes, "%zu others call", f->waitings);
    add(text, bytes, " %s", hang_call_text(job, &r->wait, call, sizeof call));
}

void hang_say_finding(const struct job *job, const struct verdict *v, const struct finding *f, char *text, size_t bytes)
{
    char call[160], time[24];
    uint64_t since = v->now_ns > f->since_ns ? v->now_ns - f->since_ns : 0;
    *text = 0;
    if (f->kind == BY_CYCLE || f->kind == BY_MISMATCH) {
        (f->kind == BY_CYCLE ? say_circle : say_mismatch)(job, f, text, bytes);
        add(text, bytes, ", since %s", hang_time_text(since, time));
        if (f->kind == BY_CYCLE && f->waitings) {
            add(text, bytes, "; ");
            add_others(f, text, bytes);
            add(text, bytes, " for them");
        }
        return;
    }
    if (f->kind == BY_ABSENT && f->behinds > 1) add(text, bytes, "one or more of ");
    add_ranks(f->behind, f->behinds, text, bytes);
    add(text, bytes, f->behinds == 1 || f->kind == BY_ABSENT ? " is behind: " : " are behind: ");
    add_others(f, text, bytes);
    add(text, bytes, " for %s in %s since %s; ", f->behinds == 1 ? "it" : "them",
        hang_call_text(job, &job->rank[f->waits].wait, call, sizeof call), hang_time_text(since, time));
    add_doing(job, f, text, bytes);
}

void hang_say_why(const struct job *job, const struct finding *f, char *text, size_t bytes)
{
    const struct job_rank *r = f->one < job->ranks ? &job->rank[f->one] : NULL;
    char stood[24], limit[24];
    uint64_t stands = r && r->seen_ns > r->moved_ns ? r->seen_ns - r->moved_ns : 0;
    *text = 0;
    if (r) hang_time_text(stands, stood), hang_time_text(hang_limit(job, r), limit);
    if (f->kind == BY_CYCLE) add(text, bytes, "none of them can go on before another one does");
    else if (f->kind == BY_UNKNOWN && f->judgement == UNDECIDED)
        add(text, bytes, "nothing of it has moved for %s, and no counter shows for whom it waits there", stood);
    else if (f->kind == BY_MISMATCH && f->judgement != HANG)
        add(text, bytes, "all have begun it, so it should end at once; another call may have had its number");
    else if (f->kind == BY_MISMATCH) add(text, bytes, "all ranks must call the same collective, with the same root");
    else if (f->judgement == NOTHING) add(text, bytes, "such short waits are usual");
    else if (f->kind == BY_ABSENT && is_not_counted(job, f))
        add(text, bytes,
            "it cannot be known who is behind: too many communicators were made, or fdr did not see this one being "
            "made");
    else if (f->kind == BY_ABSENT)
        add(text, bytes, "no recording of this moment shows what the rank does that all wait for");
    else if (f->kind == BY_STOPPED) add(text, bytes, "a stopped process never comes");
    else if (f->kind == BY_DEAD || f->kind == BY_ENDED) add(text, bytes, "it will never come");
    else if (f->judgement == SLOW)
        add(text, bytes,
            r && r->moves == YES  ? "it moves"
            : r && r->busy == YES ? "it uses processor time, and nothing proves that it is stuck"
                                  : "it moved a moment ago");
    else if (f->judgement == HANG) add(text, bytes, "nothing of it has moved for %s; the limit is %s", stood, limit);
    else add(text, bytes, "nothing of it has moved for %s; it counts as a hang from %s on", stood, limit);
}

static bool is_outside(const struct job_rank *r)
{
    return !r->wait.in_call && (r->end == GOES_ON || r->end == OUTSIDE);
}

/* "3 of 4 ranks wait in MPI_Win_fence for long, and no counter shows for whom; rank 1 sleeps in read_input" */
static void say_unexplained(const struct job *job, struct verdict *v, size_t waiting)
{
    size_t outside = 0, one = 0;
    const char *call = NULL;
    char who[24];
    for (size_t i = 0; i < job->ranks; i++) {
        const struct job_rank *r = &job->rank[i];
        if (v->class_of[i] == IS_WAITING) call = !call || !strcmp(call, r->wait.call) ? r->wait.call : "MPI";
        else if (is_outside(r) && !outside++) one = i;
    }
    snprintf(v->sentence, sizeof v->sentence, "%zu of %zu ranks wait in %s for long, and no counter shows for whom",
             waiting, job->ranks, call && *call ? call : "MPI");
    if (!outside) return;
    const struct job_rank *r = &job->rank[v->told = one];
    snprintf(who, sizeof who, "; rank %u", r->rank);
    add_outside(r, who, true, v->sentence, sizeof v->sentence);
    if (r->where[0]) add(v->sentence, sizeof v->sentence, " in %s", r->where);
    if (r->end != GOES_ON) add(v->sentence, sizeof v->sentence, ", until it was killed");
    if (outside > 1) add(v->sentence, sizeof v->sentence, ", and %zu more are outside of MPI", outside - 1);
}

static void say_nothing(const struct job *job, struct verdict *v)
{
    size_t waiting = 0, stopped = 0, dead = 0;
    for (size_t i = 0; i < job->ranks; i++) {
        waiting += v->class_of[i] == IS_WAITING;
        stopped += job->rank[i].stopped;
        dead += job->rank[i].end == FAULT || job->rank[i].end == OUTSIDE;
    }
    if (v->judgement == NOTHING) {
        snprintf(v->sentence, sizeof v->sentence, "%s: of %zu ranks, %zu wait in MPI",
                 v->findings ? "nobody waits for long" : "nobody is behind", job->ranks, waiting);
        if (dead) add(v->sentence, sizeof v->sentence, ", and %zu were killed or died", dead);
        snprintf(v->why, sizeof v->why, "%s",
                 v->findings ? "waits of less than 1 s are usual" : "no rank waits for one that has not come");
        return;
    }
    if (!stopped) say_unexplained(job, v, waiting);
    else
        snprintf(v->sentence, sizeof v->sentence, "%zu of %zu ranks are stopped, and nobody waits for them yet",
                 stopped, job->ranks);
    snprintf(v->why, sizeof v->why, "%s",
             stopped ? "others may come to wait for them"
                     : "fdr does not know what these calls wait for, or the messages are on their way");
}

void hang_say(const struct job *job, struct verdict *v)
{
    const struct finding *f = v->findings && v->finding[0].judgement == v->judgement ? v->finding : NULL;
    v->told = f ? f->one : job->ranks;
    if (f && v->judgement != NOTHING) {
        hang_say_finding(job, v, f, v->sentence, sizeof v->sentence);
        hang_say_why(job, f, v->why, sizeof v->why);
        return;
    }
    say_nothing(job, v);
}
