/* SPDX-License-Identifier: MIT */
/* Properties of the file, and how far each location reaches. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"

#include <assert.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *state_name(uint32_t state)
{
    return state == FDRI_ARENA_STATE_FINALIZED ? "finalized"
           : state == FDRI_ARENA_STATE_CRASHED ? "crashed"
                                               : "recording";
}

static const char *strategy_name(uint32_t strategy)
{
    switch (strategy) {
    case FDRI_ARENA_STRATEGY_WHOLE: return "whole";
    case FDRI_ARENA_STRATEGY_LAST: return "last";
    case FDRI_ARENA_STRATEGY_FIRST: return "first";
    case FDRI_ARENA_STRATEGY_TELESCOPE: return "telescope";
    default: return "unknown";
    }
}

static const char *reason_kind_name(uint32_t kind)
{
    static const char *const names[] = {"", "api", "signal", "finalize", "trigger", "watchdog", "outside", "job"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : "";
}

static void open_calls(struct fdri_file_location *l)
{
    l->open = fdri_file_calloc(l->live_count ? l->live_count : 1, sizeof *l->open);
    l->info.samples = (l->raw.flags & FDRI_ARENA_LOCATION_SAMPLES) != 0;
    l->info.open = l->open;
    if (!l->open) return;
    uint32_t count = l->stopped || l->frame_count > l->live_count ? l->live_count : l->frame_count;
    for (uint32_t i = 0; i < count; i++)
        l->open[i] = (struct fdr_open_call){.region = l->live[i].region,
                                            .depth = i + 1,
                                            .enter_ns = fdri_file_ns(&l->clock, l->live[i].enter),
                                            .untimed = l->live[i].flags & FDRI_ARENA_LEVEL_UNTIMED};
    l->info.open_count = count;
}

static uint64_t clipped_ns(const struct fdri_file_location *l, uint64_t stored)
{
    return fdri_file_ns(&l->clock, stored < l->clock.stored_max ? stored : l->clock.stored_max);
}

static uint32_t epochs_held(const struct fdr_file *f, const struct fdri_file_location *l)
{
    const struct fdri_arena_epochs *e = NULL;
    if (l->raw.epochs_off)
        e = (const void *)fdri_file_meta_at(f, l->raw.epochs_off, FDRI_ARENA_META_EPOCHS, l->id, sizeof *e);
    if (e) return fdri_account_epochs_shown(e);
    /* the table is lost or never existed, so all time is one epoch */
    if (f->sb.strategy == FDRI_ARENA_STRATEGY_TELESCOPE) return 1;
    return l->raw.epoch >= l->raw.epoch_floor ? l->raw.epoch - l->raw.epoch_floor + 1 : 1;
}

static void describe_pinned(const struct fdr_file *f, struct fdri_file_location *l, const struct fdri_file_part *p)
{
    const struct fdri_arena_part *raw = (const void *)fdri_file_meta_at(f, p->off, FDRI_ARENA_META_PART, l->id,
                                                                        sizeof *raw);
    struct fdr_location_info *i = &l->info;
    if (!p->pinned || !raw) return;
    if (l->moving && raw->pin_tick > l->cut) return; /* pinned during the copy, so the copy may lack parts */
    i->pinned_given |= p->given_back || p->floor; /* a pinned partition without bins may be empty because of a rewind */
    i->pinned_to_ns = clipped_ns(l, raw->pin_tick);
    i->pinned_cut |= (raw->pin_flags & FDRI_ARENA_PINNED_EARLY) != 0;
    for (uint32_t b = 0; b < p->bin_count; b++) {
        i->pinned_events += (p->class_ == FDRI_ARENA_CLASS_REGION ? 2 : 1) * p->bin[b].records;
        i->pinned_bytes += 1u << p->bin[b].size_log2;
    }
}

/* After a part was given back, the remainder is not everything up to the pinning, so it is not reported. */
static void forget_pinned(struct fdr_location_info *i)
{
    i->pinned_to_ns = i->pinned_events = i->pinned_bytes = 0;
    i->pinned_cut = false;
}

static void describe(const struct fdr_file *f, struct fdri_file_location *l)
{
    struct fdr_location_info *i = &l->info;
    i->id = l->id;
    i->name = l->raw.name;
    bool stands_for_ended = l->raw.flags & FDRI_ARENA_LOCATION_ENDED;
    *(stands_for_ended ? &i->ended_threads : &i->tid) = l->raw.tid;
    i->parent = l->raw.parent;
    i->numa_node = l->raw.numa_node;
    i->live = l->off && l->raw.flags & FDRI_ARENA_LOCATION_LIVE;
    i->start_ns = !l->off ? i->from_ns : l->raw.start_tick ? clipped_ns(l, l->raw.start_tick) : 0;
    i->end_ns = l->raw.end_tick ? clipped_ns(l, l->raw.end_tick) : 0;
    i->epochs = epochs_held(f, l);
    i->moved_ns = l->off ? fdri_file_full_ns(&l->clock, l->raw.last_tick) : 0;
    i->clamped = l->raw.clamped;
    i->unbalanced = l->raw.unbalanced;
    i->stray_leaves = l->raw.stray_leaves;
    i->abandoned = l->raw.abandoned;
    i->hists_dropped = l->raw.hists_dropped;
    i->rows_folded = l->raw.rows_folded;
    i->levels_refused = l->raw.presented_overflow;
    i->levels_refused_from = i->levels_refused ? fdri_account_without_level_from(l) : 0;
    i->totals_lost = fdri_account_rows_doubted(l);
    i->points_without_row = l->raw.points_without_row;
    i->traffic_lost = l->raw.flags & FDRI_ARENA_LOCATION_TRAFFIC_LOST;
    for (size_t p = 0; p < l->part_count; p++) {
        describe_pinned(f, l, &l->part[p]);
        i->bins += l->part[p].bin_count;
        for (uint32_t b = 0; b < l->part[p].bin_count; b++) i->bytes_stored += 1u << l->part[p].bin[b].size_log2;
    }
    /* its remaining accounts move as soon as the bins are gone */
    i->folding = l->raw.flags & FDRI_ARENA_LOCATION_FOLDING && !i->bins;
    if (i->pinned_given) forget_pinned(i);
    open_calls(l);
}

static bool any_kept(const struct fdri_file_location *l)
{
    for (size_t p = 0; p < l->part_count; p++)
        if (l->part[p].any) return true;
    return l->frame_count > 0;
}

static bool level_block_lost(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth)
{
    const struct fdri_arena_level *v = depth ? fdri_file_level(f, l, depth) : NULL;
    const struct fdri_arena_level_points *p = fdri_file_points(f, l, depth);
    if (v && (v->reduced_gate || v->lost)) return true;
    for (uint32_t c = 0; p && c < FDRI_ARENA_CLASS_COUNT; c++)
        if (p->by_class[c].reduced_gate || p->by_class[c].lost) return true;
    return false;
}

/* Is everything stored that was to be stored? Then the location reaches back to its begin, whenever that was. */
static bool is_whole(const struct fdr_file *f, const struct fdri_file_location *l)
{
    const struct fdri_arena_samples *samples = fdri_events_samples(f, l);
    if (!l->off || l->block_damaged || l->levels_lost || l->parts_missing || l->raw.lost_overflow || f->sb.dropped_bins)
        return false;
    for (size_t i = 0; i < l->part_count; i++) {
        const struct fdri_file_part *p = &l->part[i];
        if (p->given_back || p->floor || p->floor_unknown || (p->tail_gap && !p->tail_after_cut) ||
            fdri_file_bins_missing(p))
            return false;
    }
    for (uint32_t d = 0; d <= fdri_arena_levels_in(l->raw.level_blocks); d++)
        if (level_block_lost(f, l, d)) return false;
    for (uint32_t d = 0; samples && d < FDRI_ARENA_SAMPLE_LEVELS; d++)
        if (samples->level[d].reduced_gate || samples->level[d].lost) return false;
    return true;
}

static void window(struct fdr_file *f)
{
    struct fdr_file_info *i = &f->info;
    bool any = false;
    for (size_t n = 0; n < f->location_count; n++) {
        const struct fdri_file_location *l = &f->location[n];
        if (!any_kept(l)) continue;
        if (!any || l->info.from_ns < i->first_ns) i->first_ns = l->info.from_ns;
        if (l->info.to_ns > i->last_ns) i->last_ns = l->info.to_ns;
        if (l->info.from_ns > i->common_from_ns && !is_whole(f, l)) i->common_from_ns = l->info.from_ns;
        any = true;
    }
    i->common_from_ns = fdri_bits_max(i->common_from_ns, i->first_ns);
}

static void hex(const struct fdri_arena_superblock *sb, char *text)
{
    uint32_t n = sb->build_id_bytes <= sizeof sb->build_id ? sb->build_id_bytes : 0;
    for (uint32_t i = 0; i < n; i++) snprintf(text + 2 * i, 3, "%02x", sb->build_id[i]);
}

/* Bytes of this location's meta blocks that lie in pieces of bins. */
static uint64_t meta_in_bins(const struct fdr_file *f, const struct fdri_file_location *l)
{
    uint64_t sum = 0, most = f->meta_first / FDRI_ARENA_BIN_MIN_BYTES; /* a cyclic chain ends here */
    for (uint64_t off = l->off ? l->raw.slabs : 0; off && most--;) {
        const struct fdri_arena_slab *s = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_SLAB, l->id,
                                                                          sizeof *s);
        if (!s || s->head.bytes > FDRI_ARENA_BIN_MAX_BYTES) break;
        if (off < f->meta_first) sum += s->head.bytes;
        off = s->next;
    }
    return sum;
}

static void memory(struct fdr_file *f)
{
    struct fdr_file_info *i = &f->info;
    const struct fdri_arena_superblock *sb = &f->sb;
    uint64_t unused = f->meta_first > f->bins_end ? (f->meta_first - f->bins_end) / sb->bin_bytes : 0;
    i->buffer_bytes = sb->arena_bytes;
    i->bin_bytes = sb->bin_bytes;
    i->bins = sb->bins_total;
    i->bins_free = unused + sb->free_bins;
    if (i->bins_free > i->bins) i->bins_free = i->bins;
    i->meta_bytes = f->meta_first > f->bins_end || f->meta_first == f->bins_end ? sb->arena_bytes - f->meta_first : 0;
    for (size_t n = 0; n < f->location_count; n++) {
        i->bytes_stored += f->location[n].info.bytes_stored;
        i->meta_bytes += meta_in_bins(f, &f->location[n]);
    }
    for (size_t n = 0; n < f->found_count; n++) i->unlisted_bins += !f->found[n].listed;
    fdri_account_balance(f);
}

static void why_and_end(struct fdr_file *f)
{
    struct fdr_file_info *i = &f->info;
    const struct fdri_arena_superblock *sb = &f->sb;
    i->taken_ns = sb->snapshot_number ? fdri_file_full_ns(&f->clock, sb->clock_last.tick) : 0;
    i->reason_kind = reason_kind_name(sb->reason_kind);
    i->has_trigger = sb->trigger_tick != 0;
    i->trigger_name = sb->trigger_name;
    i->trigger_time_ns = i->has_trigger ? fdri_file_full_ns(&f->clock, sb->trigger_tick) : 0;
    i->trigger_value = sb->trigger_value;
    i->trigger_value_type = sb->trigger_value_type;
    i->trigger_location = sb->trigger_location;
    i->alive_ns = sb->alive_tick ? fdri_file_full_ns(&f->clock, sb->alive_tick) : 0;
    i->longest_still_ns = fdri_file_duration_ns(&f->clock, sb->longest_still);
    i->still_cpu_ns = sb->still_cpu_ns;
    i->fingerprint = sb->state == FDRI_ARENA_STATE_CRASHED ? sb->fingerprint : 0;
    i->alike = sb->state == FDRI_ARENA_STATE_CRASHED ? sb->alike : 0;
    i->has_end = sb->end_known == 1;
    i->end_status = sb->end_status;
    i->end_oom_kills = sb->end_oom_kills;
    i->end_realtime_ns = sb->end_realtime_ns;
}

static void clock_steps(struct fdr_file *f)
{
    struct fdr_file_info *i = &f->info;
    uint32_t n = i->clock_steps = f->sb.clock_steps,
             first = n > FDRI_ARENA_CLOCK_STEPS ? n - FDRI_ARENA_CLOCK_STEPS : 0;
    static_assert(FDRI_ARENA_CLOCK_STEPS == sizeof i->clock_step / sizeof *i->clock_step, "room for all that are told");
    for (uint32_t k = first; k != n; k++) {
        const struct fdri_arena_clock_step *s = &f->sb.clock_step[k % FDRI_ARENA_CLOCK_STEPS];
        if (s->tick)
            i->clock_step[i->clock_step_count++] = (struct fdr_clock_step_info){
                fdri_file_full_ns(&f->clock, s->tick), fdri_file_duration_ns(&f->clock, s->step_ticks)};
    }
}

/* Reports a signal whose handler may still run. A handler may also leave by longjmp, which nothing records. So if
 * the thread recorded an event since, it has left its handler. Samples tell nothing: fdr takes them in handlers, too.
 * */
static void report_signal_under_way(struct fdr_file *f)
{
    const struct fdri_arena_superblock *sb = &f->sb;
    if (sb->state != FDRI_ARENA_STATE_RECORDING || !sb->cause_signal) return;
    uint64_t when = fdri_file_full_ns(&f->clock, sb->cause_tick);
    for (size_t n = 0; n < f->location_count; n++) {
        const struct fdr_location_info *l = &f->location[n].info;
        bool own = l->tid == sb->cause_tid && l->parent == UINT32_MAX && l->live && !l->samples;
        if (own && l->moved_ns > when) return;
    }
    f->info.handled_signal = (int)sb->cause_signal;
    f->info.handled_tid = sb->cause_tid;
    f->info.handled_time_ns = when;
}

/* Removes control characters, so that foreign text cannot steer a terminal. */
static void make_plain(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes && text[i]; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) text[i] = ' ';
}

/* The lower edge of the band above: a call of this length is in that band on every location. So the edge is rounded
 * up, and is at least the edge of locations with times in ns. */
static uint64_t edge_ns(const struct fdr_file *f, uint32_t b)
{
    const struct fdri_file_clock *c = &f->clock;
    uint64_t stored = f->sb.band_edge[b] <= c->stored_max ? f->sb.band_edge[b] : 0;
    uint64_t edge = fdri_file_duration_ns(c, stored << c->shift) + (c->num != c->den);
    return fdri_bits_max(edge, fdri_bits_max(fdri_arena_band_edge_ns(b) >> c->shift, 1) << c->shift);
}

void fdri_account_info(struct fdr_file *f)
{
    struct fdr_file_info *i = &f->info;
    struct fdri_arena_superblock *sb = &f->sb;
    make_plain(sb->reason, sizeof sb->reason);
    make_plain(sb->exe, sizeof sb->exe);
    make_plain(sb->host, sizeof sb->host);
    make_plain(sb->trigger_name, sizeof sb->trigger_name);
    for (size_t n = 0; n < f->location_count; n++) describe(f, &f->location[n]);
    snprintf(f->strategy, sizeof f->strategy, "%s", strategy_name(sb->strategy));
    hex(sb, f->build_id);
    i->format = f->format;
    i->state = state_name(sb->state);
    i->reason = sb->reason;
    i->has_cause = sb->state == FDRI_ARENA_STATE_CRASHED && (sb->cause_signal || sb->cause_realtime_ns);
    i->killed_in_handler = f->without_section && !sb->section_off && !sb->over;
    for (size_t n = 0; n < f->location_count; n++)
        i->accounts_anew += (f->location[n].raw.flags & FDRI_ARENA_LOCATION_ANEW) != 0;
    for (size_t n = 0; n < f->location_count; n++) i->totals_lost += f->location[n].info.totals_lost;
    i->over = sb->over;
    i->over_error = (int)sb->over_error;
    i->cause_signal = (int)sb->cause_signal;
    i->cause_code = sb->cause_code;
    i->cause_addr = sb->cause_addr;
    i->cause_time_ns = i->has_cause ? fdri_file_full_ns(&f->clock, sb->cause_tick) : 0;
    i->cause_tid = sb->cause_tid;
    i->pid = sb->pid;
    i->rank = sb->rank;
    i->host = sb->host;
    i->exe = sb->exe;
    i->build_id = f->build_id;
    i->config = sb->config;
    i->strategy = f->strategy;
    i->created_realtime_ns = sb->created_realtime_ns;
    i->time_unit_ns = (double)((uint64_t)1 << f->clock.shift) * (double)f->clock.num / (double)f->clock.den;
    for (uint32_t b = 0; b < FDRI_ARENA_BANDS - 1; b++) i->band_edge_ns[b] = edge_ns(f, b);
    i->lost_locations = sb->lost_locations;
    i->lost_unattached = sb->lost_unattached;
    i->lost_definitions = sb->lost_definitions;
    i->dropped_bins = sb->dropped_bins;
    i->realtime_offset_ns = (int64_t)(sb->clock_start.realtime_ns - sb->clock_start.monotonic_ns);
    why_and_end(f);
    i->cause_realtime_ns = i->has_cause ? sb->cause_realtime_ns : 0;
    report_signal_under_way(f);
    clock_steps(f);
    i->faults_survived = sb->faults_survived;
    i->handlers = sb->handlers;
    i->handlers_lost = sb->handlers_lost & sb->handlers;
    memory(f);
    window(f);
}

const struct fdr_file_info *fdr_file_info(const struct fdr_file *f) { return &f->info; }
size_t fdr_location_count(const struct fdr_file *f) { return f->location_count; }
const struct fdr_location_info *fdr_location_info(const struct fdr_file *f, size_t index)
{
    return index < f->location_count ? &f->location[index].info : NULL;
}
