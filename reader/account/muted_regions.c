/* SPDX-License-Identifier: MIT */
/* Reads the governor's account: shares, muted regions, and the log of changes. */
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { REGIONS_MOST = 1 << 16, CHANGES_MOST = 1 << 16 };

/* The result and its arrays, in one block. */
struct whole {
    struct fdr_governor g;
    struct fdr_mute_change change[];
};

static double share(uint32_t ppm) { return ppm / 1e6; }

static uint64_t time_of(const struct fdr_file *f, uint64_t full_tick)
{
    return fdri_file_full_ns(&f->clock, full_tick);
}

/* The account with room for its tables; NULL: none, or damaged. */
static const struct fdri_arena_governor *account_of(struct fdr_file *f)
{
    uint64_t off = fdri_file_section(f, FDRI_ARENA_SECTION_GOVERNOR);
    const struct fdri_arena_governor *a = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_GOVERNOR, UINT32_MAX,
                                                                          sizeof *a);
    bool plausible = a && a->regions_room <= REGIONS_MOST && a->changes_room <= CHANGES_MOST &&
                     a->regions_used <= a->regions_room && (a->changes_room || !a->changes) &&
                     fdri_arena_governor_bytes(a->regions_room, a->changes_room) <= a->head.bytes &&
                     fdri_file_at(f, off, a->head.bytes) && !fdri_file_is_suspect(f, off, a->head.bytes);
    if (!plausible) fdri_file_damage(f, "the account of muted regions is damaged");
    return plausible ? a : NULL;
}

static void fill_shares(struct fdr_governor *g, const struct fdri_arena_governor *a)
{
    double cpu_ns = a->cpu_ns ? (double)a->cpu_ns : 1;
    g->target = share(a->target_ppm);
    g->period = a->period;
    g->recorded_call_ns = a->call_ns_1024 / 1024.0;
    g->muted_call_ns = a->muted_ns_1024 / 1024.0;
    g->share = share(a->share_ppm);
    g->muting_share = share(a->muting_ppm);
    g->run_share = (double)a->recorded * g->recorded_call_ns / cpu_ns;
    g->run_muting_share = ((double)a->recorded + (double)a->muted_calls) * g->muted_call_ns / cpu_ns;
    g->no_room = a->no_room != 0;
}

static void fill_regions(const struct fdr_file *f, struct fdr_governor *g, const struct fdri_arena_governor *a,
                         struct fdr_muted_region *to)
{
    const struct fdri_arena_muted_region *from = (const void *)(a + 1);
    g->region = to;
    for (uint32_t i = 0; i < a->regions_used; i++) {
        if (from[i].region >= f->sb.def_count[FDRI_ARENA_DEF_REGION] + 1) continue;
        to[g->regions++] = (struct fdr_muted_region){.region = from[i].region,
                                                     .muted = from[i].muted != 0,
                                                     .times = from[i].changes,
                                                     .time_ns = time_of(f, from[i].tick),
                                                     .share = share(from[i].share_ppm)};
        g->muted_now += from[i].muted != 0;
    }
}

static void fill_changes(const struct fdr_file *f, struct fdr_governor *g, const struct fdri_arena_governor *a,
                         struct fdr_mute_change *to)
{
    const struct fdri_arena_muted_region *regions = (const void *)(a + 1);
    const struct fdri_arena_governor_change *from = (const void *)(regions + a->regions_room);
    uint32_t first = a->changes > a->changes_room ? a->changes - a->changes_room : 0;
    g->change = to;
    g->changes_made = a->changes;
    for (uint32_t i = first; i < a->changes; i++) {
        const struct fdri_arena_governor_change *c = &from[i % a->changes_room];
        if (c->region >= f->sb.def_count[FDRI_ARENA_DEF_REGION] + 1) continue;
        to[g->changes++] = (struct fdr_mute_change){.time_ns = time_of(f, c->tick),
                                                    .region = c->region,
                                                    .muted = c->muted != 0,
                                                    .share = share(c->share_ppm),
                                                    .all_shares = share(c->all_shares_ppm)};
    }
}

static struct fdr_governor *read_account(struct fdr_file *f)
{
    const struct fdri_arena_governor *a = fdri_file_section(f, FDRI_ARENA_SECTION_GOVERNOR) ? account_of(f) : NULL;
    if (!a) return NULL;
    size_t changes = a->changes < a->changes_room ? a->changes : a->changes_room;
    struct whole *w = calloc(1, sizeof *w + changes * sizeof w->change[0] +
                                    a->regions_used * sizeof(struct fdr_muted_region));
    if (!w) return NULL;
    fill_shares(&w->g, a);
    fill_changes(f, &w->g, a, w->change);
    fill_regions(f, &w->g, a, (void *)(w->change + changes));
    return &w->g;
}

const struct fdr_governor *fdr_governor(const struct fdr_file *file)
{
    struct fdr_file *f = (struct fdr_file *)(uintptr_t)file; /* computed on first use */
    pthread_mutex_lock(&f->lock);
    if (!f->has_governor) f->governor = read_account(f);
    f->has_governor = true;
    pthread_mutex_unlock(&f->lock);
    return f->governor;
}

bool fdr_region_was_muted(const struct fdr_file *file, uint32_t region)
{
    if (file->job) return fdri_account_job_muted(file, region);
    const struct fdr_governor *g = fdr_governor(file);
    for (size_t i = 0; g && i < g->regions; i++)
        if (g->region[i].region == region) return true;
    return false;
}
