/* SPDX-License-Identifier: MIT */
/* The verdict as JSON. Times are seconds before the newest look. */
#include <stdio.h>
#include <string.h>

#include "tools/hang/print.h"
#include "tools/hang/rank_tree.h"

static double seconds(const struct verdict *v, uint64_t since_ns)
{
    return v->now_ns > since_ns ? (double)(v->now_ns - since_ns) / 1e9 : 0;
}

/* "[[0,3],[7,7]]" */
static json_t *ranks_json(const uint32_t *rank, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && rank[end] == rank[end - 1] + 1;) end++;
        json_array_append_new(list, json_pack("[I,I]", (json_int_t)rank[i], (json_int_t)rank[end - 1]));
    }
    return list;
}

static json_t *comm_json(const struct job *job, uint64_t identity)
{
    const struct job_comm *c = job_comm_of(job, identity);
    char id[20];
    if (!c) return json_null();
    snprintf(id, sizeof id, "%llx", (unsigned long long)identity);
    json_t *o = json_object();
    json_object_set_new(o, "id", json_text(id));
    json_object_set_new(o, "name", json_text(c->name));
    return o;
}

static json_t *ordinal_json(uint64_t ordinal) { return ordinal == UINT64_MAX ? json_null() : json_u64(ordinal); }

static json_t *waits_json(const struct job *job, const struct job_wait *w)
{
    if (!w->in_call) return json_null();
    bool message = (w->kind >= FDR_MPI_WAIT_SEND && w->kind <= FDR_MPI_WAIT_PROBE) ||
                   (w->pending && w->operation <= 1 && w->kind != FDR_MPI_WAIT_COLLECTIVE);
    json_t *o = json_object();
    json_object_set_new(o, "call", json_text(w->call));
    json_object_set_new(o, "comm", comm_json(job, w->comm));
    json_object_set_new(o, "operation", w->collective[0] ? json_text(w->collective) : json_null());
    json_object_set_new(o, "ordinal", ordinal_json(w->ordinal));
    json_object_set_new(o, "peer", w->peer < FDR_MPI_ANY ? json_u64(w->peer) : json_null());
    json_object_set_new(o, "tag", message && w->tag != INT32_MIN ? json_integer(w->tag) : json_null());
    json_object_set_new(o, "pending", json_u64(w->pending));
    return o;
}

static json_t *finding_json(const struct job *job, const struct verdict *v, const struct finding *f)
{
    char text[512], why[256];
    json_t *o = json_object();
    const struct job_wait *w = f->waits < job->ranks ? &job->rank[f->waits].wait : NULL;
    hang_say_finding(job, v, f, text, sizeof text);
    hang_say_why(job, f, why, sizeof why);
    json_object_set_new(o, "judgement", json_text(judgement_name[f->judgement]));
    json_object_set_new(o, "kind", json_text(hang_kind_name[f->kind]));
    json_object_set_new(o, "behind", ranks_json(f->behind, f->behinds));
    json_object_set_new(o, "waiting", ranks_json(f->waiting, f->waitings));
    json_object_set_new(o, "comm", comm_json(job, f->comm));
    json_object_set_new(o, "operation", w && w->collective[0] ? json_text(w->collective) : json_null());
    json_object_set_new(o, "ordinal", ordinal_json(f->ordinal));
    json_object_set_new(o, "since_s", json_f64(seconds(v, f->since_ns)));
    json_object_set_new(o, "sentence", json_text(text));
    json_object_set_new(o, "why", json_text(why));
    return o;
}

static json_t *classes_json(const struct job *job, const struct verdict *v)
{
    json_t *list = json_array();
    size_t count;
    struct alike *a = find_alike(job, v, &count);
    for (size_t i = 0; a && i < count; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "class", json_text(rank_class_name[a[i].class_]));
        json_object_set_new(o, "what", json_text(a[i].what));
        json_object_set_new(o, "ranks", ranks_json(a[i].rank, a[i].count));
        json_object_set_new(o, "representative", json_u64(a[i].rank[0]));
        json_object_set_new(o, "waits_for", waits_json(job, &job->rank[a[i].one].wait));
        json_array_append_new(list, o);
    }
    free_alike(a, a ? count : 0);
    return list;
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

/* Only functions that the unwinder is sure of. */
static json_t *stack_json(struct fdr_file *file, uint32_t tid)
{
    const struct fdr_crash_thread_info *t;
    const struct fdr_crash_frame *frame;
    json_t *list = json_array();
    for (size_t i = 0, n = fdr_crash_threads(file, &t); i < n; i++) {
        if (t[i].tid != tid || !t[i].answered) continue;
        size_t frames = fdr_crash_frames(file, i, &frame);
        for (size_t k = 0; k < frames && !frame[k].guessed; k++)
            json_array_append_new(list, json_text(frame[k].function[0] ? frame[k].function : "?"));
    }
    return list;
}

static json_t *thread_json(const struct job *job, const struct job_rank *r, struct fdr_file *file,
                           const struct fdr_location_info *l, const char *class_)
{
    json_t *o = json_object(), *path = json_array();
    const struct fdr_task_info *t = task_of(file, l->tid);
    bool told = l == told_location(file, 0);
    for (size_t i = 0; i < l->open_count; i++)
        json_array_append_new(path, json_text(region_name(file, l->open[i].region)));
    json_object_set_new(o, "tid", json_u64(l->tid));
    json_object_set_new(o, "name", json_text(t && t->name[0] ? t->name : l->name));
    json_object_set_new(o, "class", told ? json_text(class_) : json_null());
    json_object_set_new(o, "path", path);
    json_object_set_new(o, "stack", stack_json(file, l->tid));
    json_object_set_new(o, "kernel_state", t ? json_pack("s#", &t->state, 1) : json_null());
    json_object_set_new(o, "waits_for", told ? waits_json(job, &r->wait) : json_null());
    return o;
}

static json_t *rank_json(const struct job *job, const struct verdict *v, size_t i)
{
    static const char *const end_name[] = {"runs", "ended", "died", "killed"};
    const struct job_rank *r = &job->rank[i];
    const struct process *p = r->process;
    const struct fdr_file_info *info = fdr_file_info(p->file);
    json_t *o = json_object(), *threads = json_array();
    for (size_t k = 0; k < fdr_location_count(p->file); k++) {
        const struct fdr_location_info *l = fdr_location_info(p->file, k);
        if (l->live && l->parent == UINT32_MAX && l->tid)
            json_array_append_new(threads, thread_json(job, r, p->file, l, rank_class_name[v->class_of[i]]));
    }
    json_object_set_new(o, "rank", json_u64(r->rank));
    json_object_set_new(o, "host", json_text(info->host));
    json_object_set_new(o, "pid", json_u64(info->pid));
    json_object_set_new(o, "state", json_text(r->stopped ? "stopped" : end_name[r->end]));
    json_object_set_new(o, "class", json_text(rank_class_name[v->class_of[i]]));
    json_object_set_new(o, "file", json_text(p->path));
    json_object_set_new(o, "seen_s", json_f64(seconds(v, r->seen_ns)));
    json_object_set_new(o, "moved_s", json_f64(seconds(v, r->moved_ns)));
    json_object_set_new(o, "moves", r->moves == UNKNOWN ? json_null() : json_boolean(r->moves == YES));
    json_object_set_new(o, "busy", r->busy == UNKNOWN ? json_null() : json_boolean(r->busy == YES));
    json_object_set_new(o, "cause", r->cause[0] ? json_text(r->cause) : json_null());
    json_object_set_new(o, "since_s", r->wait.in_call ? json_f64(seconds(v, r->wait.since_ns)) : json_null());
    json_object_set_new(o, "waits_for", waits_json(job, &r->wait));
    json_object_set_new(o, "threads", threads);
    return o;
}

/* ---- the tree --------------------------------------------------------------------------------------------------- */

static void set_tree(json_t *o, const struct job *job, const struct verdict *v, bool names_off)
{
    enum { NODES = 4096 };
    struct rank_tree t;
    json_t *nodes = json_array(), *gaps = json_array();
    bool good = rank_tree_make(&t, job, v, names_off, NODES);
    for (size_t i = 0; good && i < t.nodes; i++) {
        json_t *n = json_object();
        json_object_set_new(n, "depth", json_u64(t.node[i].depth));
        json_object_set_new(n, "name", json_text(t.node[i].name));
        json_object_set_new(n, "native", json_boolean(t.node[i].native));
        json_object_set_new(n, "count", json_u64(t.node[i].ranks));
        json_object_set_new(n, "ranks", ranks_json(t.node[i].rank, t.node[i].ranks));
        json_array_append_new(nodes, n);
    }
    for (size_t i = 0; good && i < t.gaps; i++) {
        json_t *g = json_object();
        json_object_set_new(g, "why", json_text(t.gap[i].why));
        json_object_set_new(g, "ranks", ranks_json(t.gap[i].rank, t.gap[i].ranks));
        json_array_append_new(gaps, g);
    }
    json_object_set_new(o, "tree", nodes);
    json_object_set_new(o, "tree_left_out", json_u64(t.left_out));
    json_object_set_new(o, "without_stack", gaps);
    rank_tree_free(&t);
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void append_interval(uint32_t from, uint32_t to, void *list)
{
    json_array_append_new(list, json_pack("[I,I]", (json_int_t)from, (json_int_t)to));
}

static void append_line(const char *line, void *list) { json_array_append_new(list, json_text(line)); }

int print_job_json(const struct job *job, const struct verdict *v, const struct standing *s)
{
    json_t *o = json_object(), *hangs = json_array(), *processes = json_array(), *missing = json_array(),
           *evidence = json_array(), *not_judged = json_array(), *left_out = json_array(), *unseen = json_array();
    set_tree(o, job, v, s->names_off); /* first, as a file's stacks are unwound once */
    for (size_t i = 0; i < v->findings; i++) json_array_append_new(hangs, finding_json(job, v, &v->finding[i]));
    for (size_t i = 0; i < job->ranks; i++) json_array_append_new(processes, rank_json(job, v, i));
    each_missing(job, append_interval, missing);
    each_evidence(job, v, append_line, evidence);
    each_not_judged(job, v, append_line, not_judged);
    for (size_t i = 0; i < s->left_out; i++)
        json_array_append_new(left_out, json_text(s->process[s->processes + i].path));
    for (size_t i = 0; i < s->processes; i++)
        if (s->process[i].unseen[0]) json_array_append_new(unseen, json_text(s->process[i].unseen));
    json_object_set_new(o, "judgement", json_text(judgement_name[v->judgement]));
    json_object_set_new(o, "why", json_text(v->why));
    json_object_set_new(o, "sentence", json_text(v->sentence));
    json_object_set_new(o, "hangs", hangs);
    json_object_set_new(o, "classes", classes_json(job, v));
    json_object_set_new(o, "processes", processes);
    json_object_set_new(o, "missing", missing);
    json_object_set_new(o, "evidence", evidence);
    json_object_set_new(o, "not_judged", not_judged);
    json_object_set_new(o, "left_out", left_out);
    json_object_set_new(o, "unseen", unseen);
    json_object_set_new(o, "stuck", json_array());
    return print_json(o);
}
