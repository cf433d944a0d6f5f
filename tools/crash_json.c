/* SPDX-License-Identifier: MIT */
/* fdr crash --json: an array with one object per file, the first death at the front. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/crash.h"
#include "tools/common/job_ranks.h"

static void set(json_t *o, const char *key, json_t *v) { json_object_set_new(o, key, v); }

static json_t *cause_json(const struct fdr_file *file, const struct fdr_crash_cause_info *c)
{
    char name[HUMAN_BYTES], text[160];
    json_t *o = json_object();
    set(o, "signal", json_integer(c->signal));
    set(o, "name", json_text(signal_name(c->signal, name)));
    set(o, "text", json_text(describe_cause(file, c, text, sizeof text)));
    set(o, "code", json_integer(c->code));
    set(o, "addr", json_u64(c->addr));
    set(o, "tid", json_u64(c->tid));
    set(o, "time_ns", json_u64(c->time_ns));
    set(o, "realtime_ns", json_u64(c->realtime_ns));
    set(o, "sender_pid", c->sent ? json_u64(c->sender_pid) : json_null());
    set(o, "relation", json_text(c->also ? "meanwhile" : c->before ? "before" : c->in_handler ? "handler" : "cause"));
    return o;
}

json_t *frames_json(struct fdr_file *file, size_t thread)
{
    const struct fdr_crash_frame *r;
    json_t *list = json_array();
    for (size_t i = 0, n = fdr_crash_frames(file, thread, &r); i < n; i++) {
        json_t *o = json_object();
        set(o, "address", json_u64(r[i].address));
        set(o, "function", json_text(r[i].function));
        set(o, "file", json_text(r[i].file));
        set(o, "line", json_u64(r[i].line));
        set(o, "module", json_text(r[i].module));
        set(o, "offset", json_u64(r[i].offset));
        set(o, "inline", json_boolean(r[i].is_inline));
        set(o, "guessed", json_boolean(r[i].guessed));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *open_json(const struct fdr_file *file, const struct fdr_location_info *l)
{
    json_t *open = json_array();
    for (size_t i = 0; l && i < l->open_count; i++)
        json_array_append_new(open, json_text(region_name(file, l->open[i].region)));
    return open;
}

/* As thread_json, for a thread of which only the arena is known. */
static json_t *stackless_json(const struct fdr_file *file, const struct fdr_location_info *l, uint32_t dead)
{
    json_t *o = json_object();
    set(o, "tid", json_u64(l->tid));
    set(o, "name", json_text(l->name));
    set(o, "faulting", json_boolean(l->tid == dead));
    set(o, "answered", json_false());
    set(o, "own", json_false());
    set(o, "location", json_u64(l->id));
    set(o, "open", open_json(file, l));
    set(o, "frames", json_array());
    set(o, "cut", json_false());
    set(o, "registers", json_object());
    return o;
}

static json_t *thread_json(struct fdr_file *file, size_t index, const struct fdr_crash_thread_info *t)
{
    const struct fdr_location_info *l = location_of_thread(file, t->tid);
    json_t *o = json_object(), *registers = json_object();
    set(o, "tid", json_u64(t->tid));
    set(o, "name", json_text(t->name));
    set(o, "faulting", json_boolean(t->faulting));
    set(o, "answered", json_boolean(t->answered));
    set(o, "own", json_boolean(t->own)); /* one of fdr's own threads */
    set(o, "location", l ? json_u64(l->id) : json_null());
    set(o, "open", open_json(file, l));
    set(o, "frames", frames_json(file, index));
    set(o, "cut", json_boolean(stack_is_cut(file, index))); /* callers of the last frame are missing */
    for (size_t i = 0; i < t->register_count && fdr_crash_register_name(t->machine, i); i++) {
        char value[24];
        snprintf(value, sizeof value, "0x%llx", (unsigned long long)t->registers[i]);
        set(registers, fdr_crash_register_name(t->machine, i), json_text(value));
    }
    set(o, "registers", registers);
    return o;
}

static json_t *events_json(struct fdr_file *file, uint32_t location, uint64_t end_ns)
{
    struct past_event *e = calloc(CRASH_EVENTS, sizeof *e);
    json_t *list = json_array();
    for (size_t i = 0, n = e ? newest_events(file, location, end_ns, e, CRASH_EVENTS) : 0; i < n; i++) {
        json_t *o = json_object();
        set(o, "time_ns", json_u64(e[i].e.time_ns));
        set(o, "kind", json_text(kind_name(e[i].e.kind)));
        set(o, "depth", json_u64(e[i].e.depth));
        set(o, "name", json_text(event_name(file, &e[i].e)));
        json_array_append_new(list, o);
    }
    free(e);
    return list;
}

static json_t *replaced_json(const struct fdr_file_info *i)
{
    char name[HUMAN_BYTES];
    json_t *list = json_array();
    for (int s = 1; s <= 64; s++)
        if (i->handlers_lost >> (s - 1) & 1) json_array_append_new(list, json_text(signal_name(s, name)));
    return list;
}

static json_t *texts_json(const struct fdr_file *file)
{
    json_t *o = json_object();
    const char *name;
    for (size_t i = 0; (name = fdr_crash_text_name(file, i)); i++) {
        size_t bytes;
        const char *text = fdr_crash_text_at(file, i, &bytes);
        if (strcmp(name, "cmdline")) {
            set(o, name, json_text(text));
            continue;
        }
        json_t *list = json_array();
        for (const char *p = text; p < text + bytes; p += strlen(p) + 1) json_array_append_new(list, json_text(p));
        set(o, name, list);
    }
    return o;
}

json_t *crash_json(const struct death *d)
{
    static const char *const how[] = {"fault", "request", "killed", "alive", "none", "over"};
    const struct fdr_file_info *i = fdr_file_info(d->file);
    const struct fdr_crash_thread_info *t;
    const struct fdr_crash_cause_info *c;
    struct fdr_crash_cause_info mine = main_cause(d->file);
    const struct fdr_location_info *l = location_of_thread(d->file, mine.tid);
    char job[128], fingerprint[20];
    json_t *o = json_object(), *threads = json_array(), *causes = json_array();
    set(o, "file", json_text(d->path));
    set(o, "how", json_text(how[d->kind]));
    set(o, "first", json_boolean(d->first));
    set(o, "realtime_ns", json_u64(d->realtime_ns));
    set(o, "pid", json_u64(i->pid));
    set(o, "rank", i->rank < 0 ? json_null() : json_integer(i->rank));
    set(o, "job", *job_of(d->file, job, sizeof job) ? json_text(job) : json_null());
    set(o, "attempt", *attempt_of(d->file) ? json_text(attempt_of(d->file)) : json_null());
    set(o, "created_realtime_ns", json_u64(i->created_realtime_ns));
    set(o, "host", json_text(i->host));
    set(o, "exe", json_text(i->exe));
    set(o, "cause", i->has_cause ? cause_json(d->file, &mine) : json_null());
    for (size_t n = 1, count = fdr_crash_causes(d->file, &c); n < count; n++)
        json_array_append_new(causes, cause_json(d->file, &c[n]));
    set(o, "other_causes", causes);
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)i->fingerprint);
    set(o, "fingerprint", i->fingerprint ? json_text(fingerprint) : json_null());
    set(o, "alike", json_u64(i->alike)); /* further deaths of this fingerprint, whose bundles are gone */
    set(o, "notes", json_notes(d->file));
    for (size_t n = 0, count = fdr_crash_threads(d->file, &t); n < count; n++)
        json_array_append_new(threads, thread_json(d->file, n, &t[n]));
    for (size_t n = 0; n < fdr_location_count(d->file); n++)
        if (is_without_stack(d->file, fdr_location_info(d->file, n)))
            json_array_append_new(threads, stackless_json(d->file, fdr_location_info(d->file, n), mine.tid));
    set(o, "threads", threads);
    set(o, "events", l ? events_json(d->file, l->id, i->has_cause ? mine.time_ns : i->last_ns) : json_array());
    set(o, "killed_in_handler", json_boolean(i->killed_in_handler && d->kind != UNNEEDED_LIVE_FILE));
    set(o, "over", json_boolean(d->kind == UNNEEDED_LIVE_FILE));
    set(o, "handlers_replaced", replaced_json(i)); /* a death by one of these leaves no cause in the file */
    set(o, "faults_survived", json_u64(i->faults_survived));
    set(o, "exception_caught", json_boolean(exception_was_caught(d->file)));
    set(o, "texts", texts_json(d->file));
    return o;
}
