/* SPDX-License-Identifier: MIT */
/* Facts about a death in a file, and the first of several deaths. */
#include "tools/common/short_names.h"
#include "tools/crash.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/live_files.h"

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

static bool is_system_header(const char *path)
{
    static const char *const folder[] = {"/usr/include/", "/usr/local/include/", "/usr/lib/gcc", "/usr/lib/llvm"};
    for (size_t i = 0; i < sizeof folder / sizeof *folder; i++)
        if (!strncmp(path, folder[i], strlen(folder[i]))) return true;
    return strstr(path, "/include/c++/") != NULL;
}

/* Is the event an enter or a leave of a function that a system header defines? known: of each region, 0: not asked. */
static bool is_of_system_header(const struct fdr_file *file, const struct fdr_read_event *e, uint8_t *known)
{
    if ((e->kind != FDR_ENTER && e->kind != FDR_LEAVE) || !known) return false;
    if (e->id > fdr_definition_count(file, FDR_REGION_DEFINITION)) return false;
    if (!known[e->id])
        known[e->id] = is_system_header(fdr_definition(file, FDR_REGION_DEFINITION, e->id)->file) ? 1 : 2;
    return known[e->id] == 1;
}

/* Reads ever longer stretches from the end backwards: a large recording is not read completely to show its end. */
static size_t newest_that(struct fdr_file *file, uint32_t location, uint64_t until_ns, struct past_event *event,
                          size_t most, uint8_t *known)
{
    for (uint64_t back = 20000;; back = back < UINT64_MAX / 16 ? back * 16 : UINT64_MAX) {
        struct fdr_select s = {
            .locations = &location, .location_count = 1, .from_ns = until_ns > back ? until_ns - back : 0};
        struct fdr_iter *i = fdr_iter_open(file, &s);
        struct fdr_read_event e;
        size_t seen = 0;
        while (i && fdr_iter_next(i, &e))
            if (e.time_ns >= s.from_ns && !(e.repaired && e.kind == FDR_LEAVE) && !is_of_system_header(file, &e, known))
                event[seen++ % most] = past_event_of(&e);
        fdr_iter_close(i);
        if (seen < most && s.from_ns) continue;
        seen = oldest_first(event, seen, most);
        for (size_t k = 0; k < seen; k++)
            if (event[k].e.sample) event[k].e.sample = &event[k].sample;
        return seen;
    }
}

size_t newest_events(struct fdr_file *file, uint32_t location, uint64_t until_ns, struct past_event *event, size_t most)
{
    return newest_that(file, location, until_ns, event, most, NULL);
}

size_t newest_own_events(struct fdr_file *file, uint32_t location, uint64_t until_ns, struct past_event *event,
                         size_t most)
{
    uint8_t *known = calloc(fdr_definition_count(file, FDR_REGION_DEFINITION) + 1, 1);
    size_t count = newest_that(file, location, until_ns, event, most, known);
    free(known);
    return count;
}

/* Signs of life come each second; a busy machine delays them. */
#define SILENCE_NS   5000000000u
#define UNORDERED_NS 2000000000u

/* ---- the first death -------------------------------------------------------------------------------------------- */

bool is_request_to_end(int number) { return number == SIGTERM || number == SIGINT || number == SIGXCPU; }

/* Sets its kind and its time. */
static void classify_death(struct death *d)
{
    const struct fdr_file_info *i = fdr_file_info(d->file);
    d->realtime_ns = (i->alive_ns > i->last_ns ? i->alive_ns : i->last_ns) + (uint64_t)i->realtime_offset_ns;
    if (d->realtime_ns < i->created_realtime_ns) d->realtime_ns = i->created_realtime_ns; /* no event in the file */
    if (i->has_cause) {
        d->kind = is_request_to_end(i->cause_signal) ? BY_REQUEST : BY_FAULT;
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

/* It was gone before the fault. Either its end was seen, or fdr's thread, which gives a sign of life each second, had
 * been silent for long. */
static bool was_gone_before(const struct death *killed, const struct death *fault)
{
    const struct fdr_file_info *i = fdr_file_info(killed->file);
    if (i->has_end && i->end_realtime_ns) return killed->realtime_ns < fault->realtime_ns;
    bool same_clock = !strcmp(i->host, fdr_file_info(fault->file)->host);
    return i->alive_ns && same_clock && killed->realtime_ns + SILENCE_NS < fault->realtime_ns;
}

static bool ended_unseen(const struct death *d)
{
    const struct fdr_file_info *i = fdr_file_info(d->file);
    return d->kind == KILLED && !(i->has_end && i->end_realtime_ns);
}

bool may_be_first(const struct death *d, const struct death *first)
{
    bool unordered = ended_unseen(d) && ended_unseen(first);
    return d == first || (unordered && d->realtime_ns < first->realtime_ns + UNORDERED_NS);
}

struct death *first_of(struct death *d, size_t count)
{
    struct death *best[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < count; i++)
        if (d[i].kind <= KILLED && (!best[d[i].kind] || d[i].realtime_ns < best[d[i].kind]->realtime_ns))
            best[d[i].kind] = &d[i];
    if (best[BY_FAULT])
        return best[KILLED] && was_gone_before(best[KILLED], best[BY_FAULT]) ? best[KILLED] : best[BY_FAULT];
    if (best[KILLED] && (!best[BY_REQUEST] || best[KILLED]->realtime_ns < best[BY_REQUEST]->realtime_ns))
        return best[KILLED];
    return best[BY_REQUEST];
}
