/* SPDX-License-Identifier: MIT */
/* Threads that stand, as JSON: the keys of a verdict on ranks, and a list of the threads. Times are seconds before the
 * newest moment of the process. */
#include <stdio.h>
#include <string.h>

#include "tools/crash.h"
#include "tools/common/short_names.h"
#include "tools/hang/standing_threads.h"

static json_t *identity_json(const struct process *p)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    json_t *o = json_object();
    json_object_set_new(o, "pid", json_u64(info->pid));
    json_object_set_new(o, "rank", info->rank >= 0 ? json_integer(info->rank) : json_null());
    json_object_set_new(o, "host", json_text(info->host));
    return o;
}

static json_t *stuck_json(const struct stuck *s)
{
    json_t *o = identity_json(s->process), *open = json_array();
    char why[160];
    for (size_t i = 0; i < s->location->open_count; i++)
        json_array_append_new(open, json_text(region_name(s->process->file, s->location->open[i].region)));
    json_object_set_new(o, "location", json_u64(s->location->id));
    json_object_set_new(o, "tid", json_u64(s->location->tid));
    json_object_set_new(o, "thread", json_text(s->location->name));
    json_object_set_new(o, "region", json_text(s->region));
    json_object_set_new(o, "open", open);
    json_object_set_new(o, "stood_ns", json_u64(s->stood_ns));
    json_object_set_new(o, "since_realtime_ns", json_u64(s->since_real_ns));
    size_t stack = stack_of(s);
    json_object_set_new(o, "frames", stack != SIZE_MAX ? frames_json(s->process->file, stack) : json_array());
    json_object_set_new(o, "state", s->task ? json_pack("s#", &s->task->state, 1) : json_null());
    json_object_set_new(o, "frozen", s->task ? json_boolean(s->task->frozen) : json_null());
    json_object_set_new(o, "waits_for", s->task && s->task->waits_for[0] ? json_text(s->task->waits_for) : json_null());
    json_object_set_new(o, "lock_owner", s->task && s->task->lock_owner ? json_u64(s->task->lock_owner) : json_null());
    json_object_set_new(o, "cut", json_boolean(stack != SIZE_MAX && stack_is_cut(s->process->file, stack)));
    json_object_set_new(o, "judgement", json_text(standing_name[s->judgement]));
    json_object_set_new(o, "why", s->judgement == STANDS_UNKNOWN ? json_text(why_unknown(s, why)) : json_null());
    return o;
}

/* ---- the keys of a verdict -------------------------------------------------------------------------------------- */

static const char *kind_of(const struct stuck *s)
{
    if (is_stopped(s->task)) return "stopped";
    if (s->task && strcmp(s->task->waits_for, "lock") == 0) return "lock";
    if (s->task && (s->task->state == 'D' || strcmp(s->task->waits_for, "input") == 0)) return "io";
    return s->task && s->task->state == 'R' ? "computing" : "unknown";
}

/* The thread of a location that stands; NULL: it does not. */
static const struct stuck *standing_at(const struct stuck *list, size_t count, const struct fdr_location_info *l)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].location == l) return &list[i];
    return NULL;
}

static json_t *thread_json(const struct standing *v, const struct process *p, const struct fdr_location_info *l)
{
    const struct stuck *s = standing_at(v->stuck, v->count, l), *quiet = standing_at(v->quiet, v->quiet_count, l);
    const struct stuck *either = s ? s : quiet;
    bool idle = quiet && quiet->judgement == STANDS_IDLE;
    size_t stack = either ? stack_of(either) : SIZE_MAX;
    json_t *o = json_object(), *path = json_array();
    for (size_t i = 0; i < l->open_count; i++)
        json_array_append_new(path, json_text(region_name(p->file, l->open[i].region)));
    json_object_set_new(o, "tid", json_u64(l->tid));
    json_object_set_new(o, "name", json_text(l->name));
    json_object_set_new(o, "class", json_text(s ? kind_of(s) : idle ? "waiting" : "computing"));
    json_object_set_new(o, "path", path);
    json_object_set_new(o, "stack", stack != SIZE_MAX ? frames_json(p->file, stack) : json_array());
    json_object_set_new(o, "waits_for",
                        either && either->task && either->task->waits_for[0] ? json_text(either->task->waits_for)
                                                                             : json_null());
    return o;
}

static json_t *process_json(const struct standing *v, const struct process *p)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    json_t *o = identity_json(p), *threads = json_array();
    bool over = info->has_cause || info->has_end || killed_unseen(p);
    for (size_t i = 0; i < fdr_location_count(p->file); i++) {
        const struct fdr_location_info *l = fdr_location_info(p->file, i);
        if (l->live && l->open_count && l->parent == UINT32_MAX) json_array_append_new(threads, thread_json(v, p, l));
    }
    json_object_set_new(o, "state", json_text(over ? "ended" : "runs"));
    json_object_set_new(o, "threads", threads);
    return o;
}

static json_t *hang_json(const struct stuck *s)
{
    int rank = fdr_file_info(s->process->file)->rank;
    json_t *o = identity_json(s->process), *behind = json_array();
    if (rank >= 0) json_array_append_new(behind, json_pack("[i,i]", rank, rank));
    json_object_set_new(o, "judgement", json_text(standing_name[s->judgement]));
    json_object_set_new(o, "kind", json_text(kind_of(s)));
    json_object_set_new(o, "behind", behind);
    json_object_set_new(o, "waiting", json_array());
    json_object_set_new(o, "comm", json_null());
    json_object_set_new(o, "operation", json_null());
    json_object_set_new(o, "ordinal", json_null());
    json_object_set_new(o, "tid", json_u64(s->location->tid));
    json_object_set_new(o, "since_s", json_f64((double)s->stood_ns / 1e9));
    return o;
}

static bool any_computes(const struct standing *v)
{
    for (size_t i = 0; i < v->quiet_count; i++)
        if (v->quiet[i].judgement == STANDS_COMPUTES) return true;
    return false;
}

/* Also sets why it is judged so. */
static const char *judgement_of(const struct standing *v, const char **why, char text[160])
{
    *why = "no thread has stood for longer than --for";
    if (v->hanging) *why = "threads have stood for longer than --for, and are not idle";
    else if (v->count) *why = why_unknown(v->stuck, text);
    else if (any_computes(v)) *why = "threads without events use processor time";
    return v->hanging ? "hang" : v->count ? "undecided" : any_computes(v) ? "slow" : "none";
}

static void sentence(const struct standing *v, char *text, size_t bytes)
{
    const struct stuck *s = v->stuck;
    char stood[HUMAN_BYTES];
    if (!v->count) {
        snprintf(text, bytes, "nothing hangs");
        return;
    }
    snprintf(text, bytes, "thread %u of pid %u stands in %s for %s, and %zu more", s->location->tid,
             fdr_file_info(s->process->file)->pid, s->region, human_time(stood, s->stood_ns), v->count - 1);
}

static void set_verdict(json_t *o, const struct standing *v)
{
    json_t *hangs = json_array(), *processes = json_array();
    char text[512], reason[160];
    const char *why;
    sentence(v, text, sizeof text);
    for (size_t i = 0; i < v->count; i++) json_array_append_new(hangs, hang_json(&v->stuck[i]));
    for (size_t i = 0; i < v->processes; i++) json_array_append_new(processes, process_json(v, &v->process[i]));
    json_object_set_new(o, "judgement", json_text(judgement_of(v, &why, reason)));
    json_object_set_new(o, "why", json_text(why));
    json_object_set_new(o, "sentence", json_text(text));
    json_object_set_new(o, "hangs", hangs);
    json_object_set_new(o, "classes", json_array());
    json_object_set_new(o, "processes", processes);
    json_object_set_new(o, "evidence", json_array());
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

int print_standing_json(const struct standing *v)
{
    const char *region = most_common_region(v);
    enum { MISSING_LISTED = 4096 };
    uint64_t count = 0, unknown = 0;
    json_t *o = json_object(), *stuck = json_array(), *absent = json_array(), *missing = json_array(),
           *left_out = json_array(), *idle = json_array(), *computing = json_array(), *unseen = json_array(),
           *intervals = json_array();
    for (size_t i = 0; i < v->quiet_count; i++)
        json_array_append_new(v->quiet[i].judgement == STANDS_IDLE ? idle : computing, stuck_json(&v->quiet[i]));
    for (size_t i = 0; i < v->processes; i++)
        if (v->process[i].unseen[0]) json_array_append_new(unseen, json_text(v->process[i].unseen));
    json_object_set_new(o, "idle", idle);
    json_object_set_new(o, "computing", computing);
    json_object_set_new(o, "unseen", unseen);
    for (size_t i = 0; i < v->count; i++) json_array_append_new(stuck, stuck_json(&v->stuck[i]));
    for (size_t i = 0; region && i < v->processes; i++)
        if (!stands_in(v, &v->process[i], region)) json_array_append_new(absent, identity_json(&v->process[i]));
    for (size_t i = 0; i <= v->ranks.count; i++) {
        int64_t from, end;
        if (!missing_ranks(&v->ranks, i, &from, &end)) continue;
        count += (uint64_t)(end - from);
        json_array_append_new(intervals, json_pack("[I,I]", (json_int_t)from, (json_int_t)end - 1));
        for (; from < end && json_array_size(missing) < MISSING_LISTED; from++)
            json_array_append_new(missing, json_integer(from));
    }
    for (size_t i = 0; i < v->processes; i++) unknown += v->process[i].unknown_threads;
    for (size_t i = 0; i < v->left_out; i++)
        json_array_append_new(left_out, json_text(v->process[v->processes + i].path));
    json_object_set_new(o, "left_out", left_out);
    json_object_set_new(o, "given_times_threads", json_u64(unknown));
    set_verdict(o, v);
    json_object_set_new(o, "stuck", stuck);
    json_object_set_new(o, "region", region ? json_text(region) : json_null());
    json_object_set_new(o, "absent", absent);
    json_object_set_new(o, "missing", intervals);
    json_object_set_new(o, "missing_ranks", missing); /* the same one by one, as far as they are not too many */
    json_object_set_new(o, "missing_rank_count", json_u64(count));
    return print_json(o);
}
