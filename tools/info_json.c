/* SPDX-License-Identifier: MIT */
/* fdr info --json. The keys are a contract: new ones may come, none may change. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/info.h"
#include "tools/info_mpi.h"

/* ---- the cause of a crash --------------------------------------------------------------------------------------- */

const char *signal_name(int number, char *text)
{
    const char *name = sigabbrev_np(number);
    if (name) snprintf(text, HUMAN_BYTES, "SIG%s", name);
    else snprintf(text, HUMAN_BYTES, "signal %d", number);
    return text;
}

const char *thread_of(const struct fdr_file *file, uint32_t tid)
{
    const struct fdr_location_info *l = location_of_thread(file, tid);
    return l ? l->name : "";
}

static void set(json_t *object, const char *key, json_t *value) { json_object_set_new(object, key, value); }
static void set_u64(json_t *object, const char *key, uint64_t value) { set(object, key, json_u64(value)); }

static json_t *text_or_null(const char *text) { return text[0] ? json_text(text) : json_null(); }

static json_t *cause_json(const struct fdr_file *file)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    char name[HUMAN_BYTES];
    if (!info->has_cause) return json_null();
    json_t *o = json_object();
    set(o, "signal", json_integer(info->cause_signal));
    set(o, "name", json_text(info->cause_signal ? signal_name(info->cause_signal, name) : ended_by(file)));
    set(o, "code", json_integer(info->cause_code));
    set_u64(o, "addr", info->cause_addr);
    set_u64(o, "tid", info->cause_tid);
    set(o, "thread", json_text(thread_of(file, info->cause_tid)));
    set_u64(o, "time_ns", info->cause_time_ns);
    return o;
}

static json_t *open_json(const struct fdr_file *file, const struct fdr_location_info *l)
{
    json_t *names = json_array();
    for (size_t i = 0; i < l->open_count; i++)
        json_array_append_new(names, json_text(region_name(file, l->open[i].region)));
    return names;
}

static json_t *open_enter_json(const struct fdr_location_info *l)
{
    json_t *times = json_array();
    for (size_t i = 0; i < l->open_count; i++)
        json_array_append_new(times, l->open[i].untimed ? json_null() : json_u64(l->open[i].enter_ns));
    return times;
}

/* Adds the bounds of the presented events: before the bins were copied, and at the end. If they differ, the location
 * went on and its rows of the ledger need not balance. */
static void presented_json(json_t *o, const struct fdr_file *file, uint32_t location)
{
    uint64_t before, after;
    fdr_ledger_bounds(file, location, &before, &after);
    set_u64(o, "presented_before", before);
    set(o, "presented_after", after < UINT64_MAX ? json_u64(after) : json_null());
}

static void location_counters(json_t *o, const struct fdr_location_info *l)
{
    set_u64(o, "clamped", l->clamped);
    set_u64(o, "unbalanced", l->unbalanced);
    set_u64(o, "stray_leaves", l->stray_leaves);
    set_u64(o, "abandoned", l->abandoned);
    set_u64(o, "hists_dropped", l->hists_dropped);
    set_u64(o, "rows_folded", l->rows_folded);
    set_u64(o, "points_without_row", l->points_without_row);
    json_object_set_new(o, "traffic_lost", json_boolean(l->traffic_lost));
    set_u64(o, "levels_refused", l->levels_refused);
    set_u64(o, "levels_refused_from", l->levels_refused_from);
    set(o, "totals_lost", json_boolean(l->totals_lost));
}

static json_t *location_json(const struct fdr_file *file, const struct fdr_location_info *l)
{
    json_t *o = json_object();
    set_u64(o, "id", l->id);
    set(o, "name", json_text(l->name));
    set_u64(o, "tid", l->tid);
    set_u64(o, "ended_threads", l->ended_threads);
    set(o, "live", json_boolean(l->live));
    set(o, "given_times", json_boolean(l->given_times));
    set_u64(o, "from_ns", l->from_ns);
    set_u64(o, "to_ns", l->to_ns);
    set(o, "open", open_json(file, l));
    set(o, "open_enter_ns", open_enter_json(l));
    set_u64(o, "epochs", l->epochs);
    set(o, "pinned_to_ns", l->pinned_to_ns ? json_u64(l->pinned_to_ns) : json_null());
    set_u64(o, "pinned_events", l->pinned_events);
    set_u64(o, "pinned_bytes", l->pinned_bytes);
    set(o, "pinned_cut", json_boolean(l->pinned_cut));
    set(o, "pinned_given", json_boolean(l->pinned_given));
    set(o, "folding", json_boolean(l->folding));
    set(o, "parent", l->parent == UINT32_MAX ? json_null() : json_u64(l->parent));
    set(o, "samples", json_boolean(l->samples));
    set_u64(o, "start_ns", l->start_ns);
    set(o, "end_ns", l->end_ns ? json_u64(l->end_ns) : json_null());
    set_u64(o, "numa_node", l->numa_node);
    set_u64(o, "bins", l->bins);
    set_u64(o, "bytes_stored", l->bytes_stored);
    presented_json(o, file, l->id);
    location_counters(o, l);
    return o;
}

static json_t *locations_json(const struct fdr_file *file)
{
    json_t *list = json_array();
    for (size_t i = 0; i < fdr_location_count(file); i++)
        json_array_append_new(list, location_json(file, fdr_location_info(file, i)));
    return list;
}

static json_t *ledger_json(struct fdr_file *file)
{
    const struct fdr_ledger_row *rows;
    size_t count = fdr_ledger(file, &rows);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *o = json_object();
        set_u64(o, "location", rows[i].location);
        set(o, "class", json_text(fdr_class_name(rows[i].class_)));
        set_u64(o, "depth", rows[i].depth);
        set_u64(o, "presented", rows[i].presented);
        set_u64(o, "kept", rows[i].kept);
        set_u64(o, "filtered", rows[i].filtered);
        set_u64(o, "reduced", rows[i].reduced);
        set_u64(o, "lost", rows[i].lost);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *reductions_json(struct fdr_file *file)
{
    const struct fdr_reduction_info *rows;
    size_t count = fdr_reductions(file, &rows);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *o = json_object();
        set_u64(o, "location", rows[i].location);
        set_u64(o, "time_ns", rows[i].time_ns);
        set(o, "step", json_text(rows[i].step));
        set(o, "what", json_text(rows[i].what));
        set_u64(o, "events", rows[i].events);
        set_u64(o, "bytes", rows[i].bytes);
        set_u64(o, "from_ns", rows[i].from_ns);
        set_u64(o, "to_ns", rows[i].to_ns);
        set_u64(o, "steps", rows[i].steps);
        set(o, "gone", json_boolean(rows[i].gone));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *trigger_json(const struct fdr_file_info *info)
{
    double value;
    if (!info->has_trigger) return json_null();
    memcpy(&value, &info->trigger_value, sizeof value);
    json_t *o = json_object();
    set(o, "name", json_text(info->trigger_name));
    set_u64(o, "time_ns", info->trigger_time_ns);
    set(o, "value",
        info->trigger_value_type == 2   ? json_f64(value)
        : info->trigger_value_type == 1 ? json_integer((json_int_t)info->trigger_value)
                                        : json_u64(info->trigger_value));
    set(o, "location", info->trigger_location == UINT32_MAX ? json_null() : json_u64(info->trigger_location));
    return o;
}

static json_t *end_json(const struct fdr_file_info *info)
{
    bool known = info->has_end && info->end_status != INT_MIN, killed = known && WIFSIGNALED(info->end_status);
    if (!info->has_end) return json_null();
    json_t *o = json_object();
    set(o, "exit_status", known && !killed ? json_integer(WEXITSTATUS(info->end_status)) : json_null());
    set(o, "signal", killed ? json_integer(WTERMSIG(info->end_status)) : json_null());
    set_u64(o, "oom_kill", info->end_oom_kills);
    set_u64(o, "realtime_ns", info->end_realtime_ns);
    return o;
}

static json_t *steps_json(const struct fdr_file_info *info)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < info->clock_step_count; i++) {
        json_t *o = json_object();
        set_u64(o, "time_ns", info->clock_step[i].time_ns);
        set_u64(o, "back_ns", info->clock_step[i].back_ns);
        json_array_append_new(list, o);
    }
    return list;
}

static const char *note_of(const struct fdr_file *file, const char *key)
{
    const struct fdr_note_info *note;
    for (size_t i = 0, n = fdr_notes(file, &note); i < n; i++)
        if (!strcmp(note[i].key, key)) return note[i].value;
    return "";
}

enum { WORLD_IDENTITY = 1 }; /* fdr/reader.h, struct fdr_comm_info */

static json_t *identity_json(uint64_t identity)
{
    char hex[24];
    snprintf(hex, sizeof hex, "%llx", (unsigned long long)identity);
    return json_text(hex);
}

/* Of MPI itself, else of the launcher; null: not known. */
static void set_job(json_t *o, const struct fdr_file *file)
{
    int rank = rank_of_file(file, "");
    const char *size = note_of(file, "mpi.size");
    set(o, "job", text_or_null(note_of(file, "mpi.job")));
    set(o, "attempt", text_or_null(note_of(file, "mpi.attempt")));
    set(o, "rank", rank < 0 ? json_null() : json_integer(rank));
    set(o, "world", *size ? identity_json(WORLD_IDENTITY) : json_null());
    set(o, "world_size", *size ? json_integer(atoi(size)) : json_null());
    set(o, "node", json_text(fdr_file_info(file)->host));
}

static void set_identity(json_t *o, const struct fdr_file *file)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    set_u64(o, "format", info->format);
    set(o, "state", text_or_null(info->state));
    set(o, "reason", text_or_null(info->reason));
    set(o, "reason_kind", text_or_null(info->reason_kind));
    set(o, "trigger", trigger_json(info));
    set(o, "end", end_json(info));
    if (info->alive_ns) set_u64(o, "alive_ns", info->alive_ns);
    set(o, "cause", cause_json(file));
    if (info->fingerprint) {
        char hex[20];
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)info->fingerprint);
        set(o, "fingerprint", json_text(hex));
        set_u64(o, "alike", info->alike);
    }
    set_u64(o, "pid", info->pid);
    set_job(o, file);
    set(o, "host", json_text(info->host));
    set(o, "exe", json_text(info->exe));
    set(o, "build_id", json_text(info->build_id));
    set(o, "config", json_text(info->config));
    set(o, "notes", json_notes(file));
    set_u64(o, "created_realtime_ns", info->created_realtime_ns);
    set(o, "realtime_offset_ns", json_integer(info->realtime_offset_ns));
    set_u64(o, "clock_steps", info->clock_steps);
    set(o, "clock_step", steps_json(info));
}

static void set_sizes(json_t *o, const struct fdr_file_info *info)
{
    set(o, "time_unit_ns", json_f64(info->time_unit_ns));
    set_u64(o, "buffer_bytes", info->buffer_bytes);
    set_u64(o, "bin_bytes", info->bin_bytes);
    set_u64(o, "bins", info->bins);
    set_u64(o, "bins_free", info->bins_free);
    set_u64(o, "meta_bytes", info->meta_bytes);
    set_u64(o, "bytes_stored", info->bytes_stored);
    json_t *edges = json_array();
    for (int b = 0; b < 3; b++) json_array_append_new(edges, json_u64(info->band_edge_ns[b]));
    /* the columns of complete_depth in epochs: any length, and from each of these edges on */
    set(o, "band_edge_ns", edges);
    set_u64(o, "record_bytes", info->record_bytes);
    set(o, "memory_balance", json_f64(info->memory_balance));
    set(o, "strategy", json_text(info->strategy));
    set_u64(o, "first_ns", info->first_ns);
    set_u64(o, "last_ns", info->last_ns);
    set_u64(o, "common_from_ns", info->common_from_ns);
    set_u64(o, "lost_locations", info->lost_locations);
    set_u64(o, "lost_unattached", info->lost_unattached);
    set_u64(o, "lost_definitions", info->lost_definitions);
    set_u64(o, "dropped_bins", info->dropped_bins);
    set_u64(o, "threads_gone", info->threads_gone);
    set_u64(o, "accounts_anew", info->accounts_anew);
    set_u64(o, "totals_lost", info->totals_lost);
    set(o, "killed_in_handler", json_boolean(info->killed_in_handler));
    set(o, "over", json_boolean(info->over));
    set(o, "over_error", json_integer(info->over_error));
    set_u64(o, "unlisted_bins", info->unlisted_bins);
}

static json_t *metrics_json(const struct fdr_file *file)
{
    static const char *const types[] = {"u64", "i64", "f64"};
    size_t count = fdr_definition_count(file, FDR_METRIC_DEFINITION);
    json_t *all = json_array();
    for (uint32_t id = 1; id <= count; id++) {
        const struct fdr_metric_info *m = fdr_metric_info(file, id);
        json_t *o = json_object();
        set(o, "name", json_text(m->name));
        set(o, "unit", json_text(m->unit));
        set(o, "kind", json_text(m->counter ? "counter" : "gauge"));
        set(o, "type", json_text(types[m->type]));
        json_array_append_new(all, o);
    }
    return all;
}

/* World ranks, as ranges in the order of the members; null: not known. */
static json_t *members_json(const struct fdr_comm_info *c)
{
    if (!c->size || !c->world_rank) return json_null();
    json_t *ranges = json_array();
    for (uint32_t i = 0, first = 0; i < c->size; i++) {
        if (i + 1 < c->size && c->world_rank[i + 1] == c->world_rank[i] + 1) continue;
        json_array_append_new(ranges,
                              json_pack("[I, I]", (json_int_t)c->world_rank[first], (json_int_t)c->world_rank[i]));
        first = i + 1;
    }
    return ranges;
}

static json_t *communicators_json(const struct fdr_file *file)
{
    size_t count = fdr_definition_count(file, FDR_COMM_DEFINITION);
    json_t *all = json_array();
    for (uint32_t id = 1; id <= count; id++) {
        const struct fdr_comm_info *c = fdr_comm_info(file, id);
        json_t *o = json_object();
        set_u64(o, "id", id);
        set(o, "name", json_text(c->name));
        set_u64(o, "size", c->size);
        set(o, "identity", identity_json(c->identity));
        set(o, "members", members_json(c));
        json_array_append_new(all, o);
    }
    return all;
}

json_t *info_json(struct fdr_file *file)
{
    json_t *o = json_object();
    set_identity(o, file);
    set_sizes(o, fdr_file_info(file));
    set(o, "locations", locations_json(file));
    set(o, "epochs", epochs_json(file));
    set(o, "ledger", ledger_json(file));
    set(o, "reductions", reductions_json(file));
    set(o, "overhead", overhead_json(file));
    set(o, "metrics", metrics_json(file));
    set(o, "communicators", communicators_json(file));
    set(o, "process", process_json(file));
    set(o, "tallies", tallies_json(file));
    set(o, "mpi", mpi_state_json(file));
    set(o, "sections", sections_json(file));
    return o;
}
