/* SPDX-License-Identifier: MIT */
/* fdr crash: the post-mortem. For many files it finds the process that died first and those killed after it. */
#include "tools/common/short_names.h"
#include "tools/unseen_end.h"
#include "tools/crash.h"
#include "tools/common/job_ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/live_files.h"

struct arguments {
    struct file_list files;
    bool json, all;
};

static const struct argp_option options[] = {
    {"all", 'a', 0, 0, "Of several files every death, not only the first; the newest events also of the living", 0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'a': a->all = true; return 0;
    case 'j': a->json = true; return 0;
    default: return some_files(state, key, text, &a->files);
    }
}

/* ---- facts -------------------------------------------------------------------------------------------------- */

const struct fdr_location_info *last_location(const struct fdr_file *file)
{
    const struct fdr_location_info *last = NULL;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (!last || l->samples < last->samples || (l->samples == last->samples && l->to_ns > last->to_ns)) last = l;
    }
    return last;
}

bool is_without_stack(const struct fdr_file *file, const struct fdr_location_info *l)
{
    const struct fdr_crash_thread_info *t;
    size_t count = fdr_crash_threads(file, &t);
    if (!l->live || l->parent != UINT32_MAX || l->samples) return false;
    for (size_t i = 0; i < count; i++)
        if (t[i].tid == l->tid) return false;
    return true;
}

struct fdr_crash_cause_info main_cause(const struct fdr_file *file)
{
    const struct fdr_crash_cause_info *row;
    const struct fdr_file_info *i = fdr_file_info(file);
    if (fdr_crash_causes(file, &row)) return row[0];
    return (struct fdr_crash_cause_info){.signal = i->cause_signal,
                                         .code = i->cause_code,
                                         .tid = i->cause_tid,
                                         .addr = i->cause_addr,
                                         .time_ns = i->cause_time_ns,
                                         .realtime_ns = i->cause_realtime_ns,
                                         .sent = i->cause_signal && i->cause_code <= 0};
}

static const char *code_text(int number, int code)
{
    static const struct {
        int signal, code;
        const char *text;
    } known[] = {{SIGSEGV, SEGV_MAPERR, "address not mapped"},
                 {SIGSEGV, SEGV_ACCERR, "access not permitted"},
                 {SIGSEGV, SI_KERNEL, "address not canonical"},
                 {SIGBUS, BUS_ADRALN, "misaligned address"},
                 {SIGBUS, BUS_ADRERR, "beyond the end of a mapped file"},
                 {SIGBUS, BUS_OBJERR, "hardware error"},
                 {SIGFPE, FPE_INTDIV, "integer divided by zero"},
                 {SIGFPE, FPE_INTOVF, "integer overflow"},
                 {SIGFPE, FPE_FLTDIV, "floating point divided by zero"},
                 {SIGFPE, FPE_FLTOVF, "floating point overflow"},
                 {SIGFPE, FPE_FLTUND, "floating point underflow"},
                 {SIGFPE, FPE_FLTRES, "inexact floating point result"},
                 {SIGFPE, FPE_FLTINV, "invalid floating point operation"},
                 {SIGILL, ILL_ILLOPC, "illegal instruction"},
                 {SIGILL, ILL_ILLOPN, "illegal operand"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].signal == number && known[i].code == code) return known[i].text;
    return "";
}

const char *describe_cause(const struct fdr_file *file, const struct fdr_crash_cause_info *c, char *text, size_t bytes)
{
    char name[HUMAN_BYTES];
    const char *why = code_text(c->signal, c->code);
    bool address = c->signal == SIGSEGV || c->signal == SIGBUS || c->signal == SIGFPE || c->signal == SIGILL;
    signal_name(c->signal, name);
    if (!c->signal) snprintf(text, bytes, "%s with status %d", plain_name(ended_by(file)), c->code);
    else if (c->sent && c->signal == SIGABRT && c->sender_pid == fdr_file_info(file)->pid)
        snprintf(text, bytes, "%s (abort)", name);
    else if (c->sent && !c->sender_pid) snprintf(text, bytes, "%s, sent by an unknown process", name);
    else if (c->sent) snprintf(text, bytes, "%s, sent by process %u of user %u", name, c->sender_pid, c->sender_uid);
    else if (!address) snprintf(text, bytes, "%s (code %d)", name, c->code);
    else if (c->signal == SIGSEGV && c->code == SI_KERNEL) snprintf(text, bytes, "%s (%s)", name, why);
    else if (*why) snprintf(text, bytes, "%s (%s: 0x%llx)", name, why, (unsigned long long)c->addr);
    else snprintf(text, bytes, "%s (code %d, address 0x%llx)", name, c->code, (unsigned long long)c->addr);
    return text;
}

/* True for functions on the stack of an uncaught exception: those that throw it, forbid it to leave, or end the
 * program. */
static bool ends_uncaught(const char *function)
{
    return strstr(function, "terminate") || !strncmp(function, "__cxa_", 6) || !strncmp(function, "__gxx_", 6) ||
           strstr(function, "rethrow_exception");
}

/* True for a frame without a module, or without a name in the C++ library: it may be such a function. Near the start of
 * a thread it is the thread's entry. */
static bool may_end_uncaught(const struct fdr_crash_frame *r, size_t outwards)
{
    bool library = strstr(r->module, "libstdc++") || strstr(r->module, "libc++");
    return !r->module[0] || (library && !r->function[0] && outwards > 2);
}

bool exception_was_caught(struct fdr_file *file)
{
    const struct fdr_crash_frame *r;
    bool aborts = false;
    size_t count = fdr_crash_text(file, "exception", NULL) ? fdr_crash_frames(file, 0, &r) : 0;
    for (size_t i = 0; i < count; i++) {
        if (r[i].guessed || ends_uncaught(r[i].function) || may_end_uncaught(&r[i], count - 1 - i)) return false;
        aborts = aborts || strstr(r[i].function, "abort");
    }
    return aborts;
}

bool stack_is_cut(struct fdr_file *file, size_t thread)
{
    const struct fdr_crash_frame *r;
    size_t count = fdr_crash_frames(file, thread, &r);
    return count && r[count - 1].cut;
}

static struct past_event past_event_of(const struct fdr_read_event *e)
{
    struct past_event p = {.e = *e};
    if (e->sample) p.sample = (struct fdr_sample_path){.pc = e->sample->pc, .state = e->sample->state};
    return p;
}

/* Turns the ring so that it begins with the oldest event; it begins in the middle once it was full. Returns the number
 * of events, 0 if out of memory. */
static size_t oldest_first(struct past_event *event, size_t seen, size_t most)
{
    struct past_event *turned = seen > most ? malloc(most * sizeof *turned) : NULL;
    if (seen > most && !turned) return 0;
    for (size_t k = 0; turned && k < most; k++) turned[k] = event[(seen + k) % most];
    if (turned) memcpy(event, turned, most * sizeof *turned);
    free(turned);
    return seen < most ? seen : most;
}

/* Reads ever longer stretches from the end backwards: a large recording is not read completely to show its end. */
size_t newest_events(struct fdr_file *file, uint32_t location, uint64_t until_ns, struct past_event *event, size_t most)
{
    for (uint64_t back = 20000;; back *= 16) {
        struct fdr_select s = {
            .locations = &location, .location_count = 1, .from_ns = until_ns > back ? until_ns - back : 0};
        struct fdr_iter *i = fdr_iter_open(file, &s);
        struct fdr_read_event e;
        size_t seen = 0;
        while (i && fdr_iter_next(i, &e))
            if (e.time_ns >= s.from_ns && !(e.repaired && e.kind == FDR_LEAVE))
                event[seen++ % most] = past_event_of(&e);
        fdr_iter_close(i);
        if (seen < most && s.from_ns) continue;
        seen = oldest_first(event, seen, most);
        for (size_t k = 0; k < seen; k++)
            if (event[k].e.sample) event[k].e.sample = &event[k].sample;
        return seen;
    }
}

/* ---- the first death -------------------------------------------------------------------------------------------- */

static bool is_request(int number) { return number == SIGTERM || number == SIGINT || number == SIGXCPU; }

/* Sets its kind and its time. */
static void classify_death(struct death *d)
{
    const struct fdr_file_info *i = fdr_file_info(d->file);
    d->realtime_ns = (i->alive_ns > i->last_ns ? i->alive_ns : i->last_ns) + (uint64_t)i->realtime_offset_ns;
    if (d->realtime_ns < i->created_realtime_ns) d->realtime_ns = i->created_realtime_ns; /* no event in the file */
    if (i->has_cause) {
        d->kind = is_request(i->cause_signal) ? BY_REQUEST : BY_FAULT;
        d->realtime_ns = i->cause_realtime_ns ? i->cause_realtime_ns
                                              : i->cause_time_ns + (uint64_t)i->realtime_offset_ns;
    } else if (i->reason[0] || strcmp(i->state, "recording")) {
        d->kind = NO_DEATH;
    } else {
        d->kind = written_by(d->path, i) ? ALIVE : KILLED;
        if (d->kind == KILLED && i->has_end && i->end_realtime_ns) d->realtime_ns = i->end_realtime_ns;
    }
    if (i->over) d->kind = UNNEEDED_LIVE_FILE;
}

struct death *open_deaths(struct file_list *list, size_t *count, int *status)
{
    struct death *d = calloc(list->count, sizeof *d);
    *count = 0;
    if (!d) *status = COULD_NOT;
    for (size_t i = 0; d && i < list->count; i++) {
        struct death *at = &d[*count];
        *at = (struct death){.path = list->path[i], .file = open_recording(list->path[i], status)};
        if (!at->file) continue;
        classify_death(at);
        ++*count;
    }
    free(list->path);
    *list = (struct file_list){0};
    return d;
}

bool same_recording(const struct fdr_file_info *a, const struct fdr_file_info *b)
{
    return a->pid == b->pid && a->created_realtime_ns == b->created_realtime_ns && !strcmp(a->host, b->host);
}

/* A process killed after its bundle was complete and before its live file was removed leaves both. Its live file then
 * counts as over. */
static void find_bundles(struct death *d, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; fdr_file_info(d[i].file)->killed_in_handler && k < count; k++) {
            const struct fdr_file_info *other = fdr_file_info(d[k].file);
            if (other->has_cause && !other->killed_in_handler && !other->over &&
                same_recording(fdr_file_info(d[i].file), other))
                d[i].kind = UNNEEDED_LIVE_FILE;
        }
}

/* A process dies once. Of a kill the latest file counts; the others are copies from before. */
static bool same_death(const struct death *a, const struct death *b)
{
    return a->kind == b->kind && a->kind <= KILLED && (a->kind == KILLED || a->realtime_ns == b->realtime_ns) &&
           same_recording(fdr_file_info(a->file), fdr_file_info(b->file));
}

/* Moves one file of each death to the front; the others of the same death follow. Returns the number of deaths. */
static size_t move_duplicates_back(struct death *d, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t best = i;
        for (size_t k = 0; k < count; k++)
            if (same_death(&d[i], &d[k]) &&
                (d[k].realtime_ns > d[best].realtime_ns || (d[k].realtime_ns == d[best].realtime_ns && k < best)))
                best = k;
        if (best != i) d[i].seen_by = d[best].path;
    }
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct death one = d[i];
        if (one.seen_by) continue;
        d[i] = d[left];
        d[left++] = one;
    }
    return left;
}

struct death *first_of(struct death *d, size_t count)
{
    struct death *best[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < count; i++)
        if (d[i].kind <= KILLED && (!best[d[i].kind] || d[i].realtime_ns < best[d[i].kind]->realtime_ns))
            best[d[i].kind] = &d[i];
    if (best[BY_FAULT]) return best[BY_FAULT];
    if (best[KILLED] && (!best[BY_REQUEST] || best[KILLED]->realtime_ns < best[BY_REQUEST]->realtime_ns))
        return best[KILLED];
    return best[BY_REQUEST];
}

static int by_time(const void *x, const void *y)
{
    const struct death *a = x, *b = y;
    if (a->first != b->first) return a->first ? -1 : 1;
    return a->realtime_ns < b->realtime_ns ? -1 : a->realtime_ns > b->realtime_ns;
}

static void print_one_line(const struct death *d, const struct death *first)
{
    const struct fdr_file_info *i = fdr_file_info(d->file);
    char cause[160], since[HUMAN_BYTES], rank[24] = "", unseen[256];
    struct fdr_crash_cause_info c = main_cause(d->file);
    if (i->rank >= 0) snprintf(rank, sizeof rank, "rank %d, ", i->rank);
    const char *what = d->kind == KILLED               ? unseen_end(i, unseen, sizeof unseen)
                       : d->kind == ALIVE              ? "still running"
                       : d->kind == NO_DEATH           ? "a snapshot, not a death"
                       : d->kind == UNNEEDED_LIVE_FILE ? "over: the rest of a live file, not a death"
                                                       : describe_cause(d->file, &c, cause, sizeof cause);
    printf("%s  %-16s %spid %u on %s: %s  %s\n", d->first ? "FIRST" : "     ",
           d->realtime_ns ? human_since(since, d->realtime_ns, first ? first->realtime_ns : d->realtime_ns) : "", rank,
           i->pid, plain_name(i->host), what, plain_name(d->path));
}

/* Ranks of one job begin within minutes. */
#define BEGAN_APART_NS 600000000000u

static void print_other_job(const struct death *d, size_t count)
{
    char job[128] = "", other[128], apart[HUMAN_BYTES];
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t began = fdr_file_info(d[i].file)->created_realtime_ns;
        if (!began) continue; /* damaged, or without a time */
        if (began < first) first = began;
        if (began > last) last = began;
        if (!*job_of(d[i].file, other, sizeof other)) continue;
        if (*job && strcmp(job, other)) {
            printf("warning: these files are of several jobs (%s", plain_name(job));
            printf(", %s); FIRST is the first of all jobs\n", plain_name(other));
            return;
        }
        memcpy(job, other, sizeof job);
    }
    if (last - first > BEGAN_APART_NS)
        printf("warning: these processes began %s apart and may be of several jobs; FIRST is the first of all jobs\n",
               human_time(apart, last - first));
}

/* Prints what the list cannot show: that no process died by itself, and ranks without a recording. */
static void print_missing_deaths(const struct death *d, size_t count)
{
    struct ranks r = {.rank = calloc(count, sizeof *r.rank)};
    for (size_t i = 0; r.rank && i < count; i++) {
        const struct fdr_file_info *info = fdr_file_info(d[i].file);
        int world = world_size(d[i].file);
        if (info->rank >= 0) r.rank[r.count++] = info->rank;
        if (world > r.world) r.world = world;
    }
    sort_ranks(&r);
    if (d[0].first && d[0].kind == BY_REQUEST)
        printf("none of these died by itself: the first was asked to end before the others\n");
    print_missing_ranks(&r);
    print_other_job(d, count);
    free(r.rank);
}

static void print_duplicates(const struct death *again, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("note: left out, the same death as %s", plain_name(again[i].seen_by));
        printf(": %s\n", plain_name(again[i].path));
    }
}

static json_t *duplicates_json(const struct death *d, const struct death *again, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (again[i].seen_by == d->path) json_array_append_new(list, json_text(again[i].path));
    return list;
}

/* The files left out follow the first `count`. */
static int print_deaths(const struct arguments *a, struct death *d, size_t count, const struct death *first,
                        size_t left_out)
{
    json_t *list = a->json ? json_array() : NULL;
    for (size_t i = 0; count > 1 && !a->json && i < count; i++) print_one_line(&d[i], first);
    if (count > 1 && !a->json) print_missing_deaths(d, count);
    int result = DONE;
    for (size_t i = 0; i < count; i++) {
        if (list) {
            json_t *o = crash_json(&d[i]);
            json_object_set_new(o, "left_out", duplicates_json(&d[i], d + count, left_out));
            json_array_append_new(list, o);
        } else if (count == 1 || d[i].first || (a->all && d[i].kind <= KILLED)) {
            if (count > 1) printf("\n");
            result = worse(result, print_crash(&d[i], a->all));
        }
    }
    if (!list) print_duplicates(d + count, left_out);
    if (!list) return worse(result, finish_output());
    return print_json(list);
}

int verb_crash(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "The post-mortem: cause of death, place, the state of each thread, and the time "
                                     "before. Of several files it names the process that died first. Function names "
                                     "come from the program's own files (FDR_SYMBOLS=0: no names).",
                                     children,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    int status = DONE;
    size_t count;
    parse_arguments(&argp, argc, argv, &a);
    struct death *d = open_deaths(&a.files, &count, &status);
    find_bundles(d, count);
    size_t opened = count;
    count = move_duplicates_back(d, count);
    struct death *first = d && count ? first_of(d, count) : NULL;
    if (first) first->first = true;
    if (count) qsort(d, count, sizeof *d, by_time);
    if (count) status = worse(status, print_deaths(&a, d, count, first ? d : NULL, opened - count));
    for (size_t i = 0; i < opened; i++) status = worse(status, close_partly_read(d[i].file, d[i].path));
    free(d);
    return status;
}
