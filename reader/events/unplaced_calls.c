/* SPDX-License-Identifier: MIT */
/* Finds calls that lie in bins but are not shown. Where calls were lost, by damage or for want of memory, a
 * zero-length call may have no place. It then counts as lost, like its parent. */
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "reader/events/events.h"
#include "reader/events/location_stream.h"
#include "reader/file/file.h"

/* Were records missing at an earlier recovery? */
static bool has_accounted_gaps(const struct fdri_file_part *p)
{
    bool told = p->tail_gap_accounted || p->unaccounted;
    for (uint32_t i = 0; i < p->bin_count && !told; i++) told = p->bin[i].gap_accounted;
    return told;
}

static bool any_lost(const struct fdr_file *f, const struct fdri_file_location *l)
{
    for (size_t i = 0; i < l->part_count && l->part[i].class_ == FDRI_ARENA_CLASS_REGION; i++)
        if (has_accounted_gaps(&l->part[i])) return true;
    if (l->parts_missing) return true;
    for (uint32_t d = 1; d <= fdri_arena_levels_in(l->raw.level_blocks); d++) {
        const struct fdri_arena_level *v = fdri_file_level(f, l, d);
        if (v && v->lost) return true;
    }
    return false;
}

void fdri_events_find_unplaced(struct fdr_file *f, struct fdri_file_location *l)
{
    const struct fdr_select calls = {.classes = 1u << FDR_IN_REGION};
    struct fdr_read_event e;
    if (l->unplaced_known || f->headers_only || l->moving || !l->careful || !any_lost(f, l)) return;
    l->unplaced_known = true;
    struct fdri_events_stream *s = fdri_events_stream_open(f, l, &calls);
    if (!s) return;
    s->unplaced = l;
    while (fdri_events_stream_next(s, &e)) continue;
    fdri_events_stream_close(s);
}

void fdri_events_unplaced_add(struct fdri_file_location *l, uint32_t depth, uint64_t leave)
{
    if (!fdri_file_grow(&l->unplaced, l->unplaced_count, &l->unplaced_room, sizeof *l->unplaced)) return;
    l->unplaced[l->unplaced_count++] = (struct fdri_file_unplaced){depth, leave};
}
