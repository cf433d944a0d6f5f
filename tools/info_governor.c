/* SPDX-License-Identifier: MIT */
/* fdr info: what recording cost, and which regions the governor (FDR_OVERHEAD) muted. */
#include <stdio.h>

#include "tools/common/short_names.h"
#include "tools/info.h"

enum { LINES_MOST = 12 };

static double percent(double share) { return 100 * share; }

void print_overhead(const struct fdr_file *file)
{
    const struct fdr_governor *g = fdr_governor(file);
    if (!g) return;
    printf(
        "overhead   about %.2f %% of the program's processor time of late: %.2f %% to record calls (target %.4g %%), "
        "%.2f %% that muting everything would still cost\n",
        percent(g->share + g->muting_share), percent(g->share), percent(g->target), percent(g->muting_share));
    printf("           %.2f %% and %.2f %% over the whole run; calls times the calibrated cost of a costly call "
           "(recorded %.0f ns, muted %.0f ns)\n",
           percent(g->run_share), percent(g->run_muting_share), g->recorded_call_ns + g->muted_call_ns,
           g->muted_call_ns);
    if (g->muted_now)
        printf("           %u region%s muted: of their calls one of %u has a time\n", g->muted_now,
               g->muted_now == 1 ? " is" : "s are", g->period);
}

static void print_change(const struct fdr_file *file, const struct fdr_mute_change *c)
{
    char at[HUMAN_BYTES];
    printf("  at %s %-8s %s: its calls cost %.2f %%", human_since(at, c->time_ns, fdr_file_info(file)->first_ns),
           c->muted ? "muted" : "let back", plain_shown(file, c->region), percent(c->share));
    printf(", all that was recorded %.2f %%\n", percent(c->all_shares));
}

static void print_muted_now(const struct fdr_file *file, const struct fdr_governor *g, size_t most)
{
    size_t shown = 0;
    for (size_t i = 0; i < g->regions && shown < most; i++) {
        if (!g->region[i].muted) continue;
        shown++;
        printf("  muted now   %s: its calls would cost %.2f %%\n", plain_shown(file, g->region[i].region),
               percent(g->region[i].share));
    }
    if (shown < g->muted_now) printf("  and %u more: fdr info --ledger\n", g->muted_now - (uint32_t)shown);
}

void print_mutes(const struct fdr_file *file, bool full)
{
    const struct fdr_governor *g = fdr_governor(file);
    if (!g) return;
    size_t most = full ? SIZE_MAX : LINES_MOST, first = g->changes > most ? g->changes - most : 0;
    if (!g->changes_made) {
        printf("\nno region was muted\n");
        return;
    }
    printf("\n%llu change%s of muted regions (FDR_OVERHEAD): their calls are filtered, and counted exactly\n",
           (unsigned long long)g->changes_made, g->changes_made == 1 ? "" : "s");
    print_muted_now(file, g, most);
    if (g->changes_made > g->changes - first)
        printf("  %llu earlier changes are not shown%s\n", (unsigned long long)(g->changes_made - (g->changes - first)),
               first ? ": fdr info --ledger" : "");
    for (size_t i = first; i < g->changes; i++) print_change(file, &g->change[i]);
    if (g->no_room) printf("  more regions would have been muted; a larger FDR_BUFFER has room for them\n");
}

static json_t *regions_json(const struct fdr_file *file, const struct fdr_governor *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->regions; i++) {
        const struct fdr_muted_region *r = &g->region[i];
        json_t *o = json_object();
        json_object_set_new(o, "region", json_text(region_name(file, r->region)));
        json_object_set_new(o, "id", json_u64(r->region));
        json_object_set_new(o, "muted", json_boolean(r->muted));
        json_object_set_new(o, "times", json_u64(r->times));
        json_object_set_new(o, "time_ns", json_u64(r->time_ns));
        json_object_set_new(o, "share", json_f64(r->share));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *changes_json(const struct fdr_file *file, const struct fdr_governor *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->changes; i++) {
        const struct fdr_mute_change *c = &g->change[i];
        json_t *o = json_object();
        json_object_set_new(o, "time_ns", json_u64(c->time_ns));
        json_object_set_new(o, "region", json_text(region_name(file, c->region)));
        json_object_set_new(o, "id", json_u64(c->region));
        json_object_set_new(o, "muted", json_boolean(c->muted));
        json_object_set_new(o, "share", json_f64(c->share));
        json_object_set_new(o, "all_shares", json_f64(c->all_shares));
        json_array_append_new(list, o);
    }
    return list;
}

json_t *overhead_json(const struct fdr_file *file)
{
    const struct fdr_governor *g = fdr_governor(file);
    if (!g) return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "target", json_f64(g->target));
    json_object_set_new(o, "share", json_f64(g->share));
    json_object_set_new(o, "muting_share", json_f64(g->muting_share));
    json_object_set_new(o, "run_share", json_f64(g->run_share));
    json_object_set_new(o, "run_muting_share", json_f64(g->run_muting_share));
    json_object_set_new(o, "recorded_call_ns", json_f64(g->recorded_call_ns));
    json_object_set_new(o, "muted_call_ns", json_f64(g->muted_call_ns));
    json_object_set_new(o, "period", json_u64(g->period));
    json_object_set_new(o, "muted_now", json_u64(g->muted_now));
    json_object_set_new(o, "no_room", json_boolean(g->no_room));
    json_object_set_new(o, "regions", regions_json(file, g));
    json_object_set_new(o, "changes_made", json_u64(g->changes_made));
    json_object_set_new(o, "changes", changes_json(file, g));
    return o;
}
