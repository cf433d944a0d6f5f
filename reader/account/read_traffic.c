/* SPDX-License-Identifier: MIT */
/* Messages and collectives by region, and by epoch. */
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static void add(struct fdr_traffic *to, uint32_t what, uint64_t count, uint64_t bytes, uint64_t received)
{
    switch (what) {
    case FDRI_ARENA_TRAFFIC_SENDS: to->sends += count, to->bytes_sent += bytes; break;
    case FDRI_ARENA_TRAFFIC_RECEIVES: to->receives += count, to->bytes_received += bytes; break;
    default: to->collectives += count, to->collectives_sent += bytes, to->collectives_received += received;
    }
}

/* Takes `part` away. False: there is more of it than there is in all. */
static bool take_away(struct fdr_traffic *all, const struct fdr_traffic *part)
{
    uint64_t *const a[] = {&all->sends,
                           &all->bytes_sent,
                           &all->receives,
                           &all->bytes_received,
                           &all->collectives,
                           &all->collectives_sent,
                           &all->collectives_received};
    const uint64_t p[] = {part->sends,
                          part->bytes_sent,
                          part->receives,
                          part->bytes_received,
                          part->collectives,
                          part->collectives_sent,
                          part->collectives_received};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        if (*a[i] < p[i]) return false;
        *a[i] -= p[i];
    }
    return true;
}

/* ---- regions ---- */

void fdri_account_traffic_row(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_row *r)
{
    uint32_t region = fdri_arena_traffic_region(r->key), what = fdri_arena_traffic_what(r->key);
    /* more rows than the file has room for: slots name some of them repeatedly */
    if (!r->calls || what >= FDRI_ARENA_TRAFFICS || f->traffic_count > f->end / sizeof *r ||
        !fdri_file_grow(&f->traffic, f->traffic_count, &f->traffic_room, sizeof *f->traffic))
        return;
    struct fdr_traffic_total *t = &f->traffic[f->traffic_count++];
    *t = (struct fdr_traffic_total){.location = l->id,
                                    .region = region == FDRI_ARENA_TRAFFIC_NO_REGION ? UINT32_MAX : region,
                                    .caller = r->key >> 24 == FDRI_ARENA_DEF_FILE,
                                    .saturated = r->flags & FDRI_ARENA_ROW_SATURATED};
    add(&t->sum, what, r->calls, r->sum, r->exclusive);
}

static int by_place(const void *x, const void *y)
{
    const struct fdr_traffic_total *a = x, *b = y;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    if (a->caller != b->caller) return a->caller ? 1 : -1;
    return a->region < b->region ? -1 : a->region > b->region;
}

/* What both have is one row of the file: slots may name a row twice. */
static void join(struct fdr_traffic_total *to, const struct fdr_traffic_total *from)
{
    const struct fdr_traffic *s = &from->sum;
    if (!to->sum.sends) add(&to->sum, FDRI_ARENA_TRAFFIC_SENDS, s->sends, s->bytes_sent, 0);
    if (!to->sum.receives) add(&to->sum, FDRI_ARENA_TRAFFIC_RECEIVES, s->receives, s->bytes_received, 0);
    if (!to->sum.collectives)
        add(&to->sum, FDRI_ARENA_TRAFFIC_COLLECTIVES, s->collectives, s->collectives_sent, s->collectives_received);
    to->saturated |= from->saturated;
}

void fdri_account_traffic_done(struct fdr_file *f)
{
    size_t kept = 0;
    if (f->traffic_count) qsort(f->traffic, f->traffic_count, sizeof *f->traffic, by_place);
    for (size_t i = 0; i < f->traffic_count; i++)
        if (kept && !by_place(&f->traffic[kept - 1], &f->traffic[i])) join(&f->traffic[kept - 1], &f->traffic[i]);
        else f->traffic[kept++] = f->traffic[i];
    f->traffic_count = kept;
}

size_t fdr_traffic(const struct fdr_file *file, const struct fdr_traffic_total **rows)
{
    const struct fdr_total *totals;
    fdr_totals(file, &totals); /* reads these, too */
    *rows = file->traffic;
    return file->traffic_count;
}

/* ---- epochs ---- */

bool fdri_account_epoch_traffic(const struct fdr_file *f, const struct fdri_file_location *l,
                                const struct fdri_arena_epoch *e, struct fdr_traffic *sum)
{
    const struct fdri_arena_epoch_rows *b = NULL;
    if (e->rows_off && !fdri_account_epoch_rows_lost(f, e))
        b = (const void *)fdri_file_meta_at(f, e->rows_off, FDRI_ARENA_META_EPOCHROWS, l->id, sizeof *b);
    if (b && b->traffic == FDRI_ARENA_EPOCH_TRAFFIC_NONE) return true;
    if (!b || b->traffic != FDRI_ARENA_EPOCH_TRAFFIC_TOLD || b->head.bytes > FDRI_ARENA_EPOCH_ROWS_MOST ||
        b->head.bytes < sizeof *b + FDRI_ARENA_TRAFFICS * sizeof b->row[0] ||
        !fdri_file_at(f, e->rows_off, b->head.bytes))
        return false;
    size_t places = (b->head.bytes - sizeof *b) / sizeof b->row[0];
    const struct fdri_arena_epoch_row *r = &b->row[places - FDRI_ARENA_TRAFFICS];
    for (uint32_t what = 0; what < FDRI_ARENA_TRAFFICS; what++)
        add(sum, what, r[what].calls, r[what].inclusive, r[what].exclusive);
    return true;
}

bool fdri_account_traffic_since(const struct fdr_file *f, const struct fdri_file_location *l,
                                const struct fdr_traffic *before, struct fdr_traffic *sum)
{
    const struct fdr_location_info *i = &l->info;
    if (!l->settled || i->totals_lost || i->traffic_lost || i->abandoned) return false;
    *sum = (struct fdr_traffic){0};
    for (size_t k = 0; k < f->traffic_count; k++) {
        const struct fdr_traffic_total *t = &f->traffic[k];
        const struct fdr_traffic *s = &t->sum;
        if (t->location != l->id || t->caller) continue;
        if (t->saturated) return false;
        add(sum, FDRI_ARENA_TRAFFIC_SENDS, s->sends, s->bytes_sent, 0);
        add(sum, FDRI_ARENA_TRAFFIC_RECEIVES, s->receives, s->bytes_received, 0);
        add(sum, FDRI_ARENA_TRAFFIC_COLLECTIVES, s->collectives, s->collectives_sent, s->collectives_received);
    }
    return take_away(sum, before);
}
