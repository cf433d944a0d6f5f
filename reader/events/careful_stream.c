/* SPDX-License-Identifier: MIT */
/* Decides what comes next if calls may be missing. They may after damage, in a snapshot of a moving location, or
 * because a rule kept a parent out.
 *
 * Let C be the innermost call on the stack that is not made up. Of all heads deeper than C, this looks at the first
 * by time. If it lies in C, it enters; [reduced] ancestors are made up for the depths in between. Otherwise C
 * leaves. Made-up calls last until something comes that does not lie in them.
 *
 * A record without a certain place is left out: its parent is missing and several neighbours could contain it, or it
 * contradicts what was shown. */
#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "reader/events/events.h"
#include "reader/events/location_stream.h"
#include "reader/file/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define NEVER UINT64_MAX

/* Sorts by enter. A zero-length call whose parent began earlier comes before everything that begins in its tick. */
static uint64_t key_of(const struct fdri_codec_record *r)
{
    if (r->enter >= FDRI_EVENTS_OPEN >> 1) return NEVER;
    return r->enter << 1 | !(r->enter == r->leave && !r->tie.parent_in_tick);
}

void fdri_events_careful_update(struct fdri_events_stream *s, uint32_t d)
{
    uint32_t i = s->tree_size + (d - s->base);
    s->tree[i] = key_of(s->level[d].head);
    for (i /= 2; i; i /= 2) s->tree[i] = s->tree[2 * i] < s->tree[2 * i + 1] ? s->tree[2 * i] : s->tree[2 * i + 1];
}

/* Builds the tree over all heads; leaf d - base is depth d. */
bool fdri_events_careful_start(struct fdri_events_stream *s)
{
    uint32_t depths = s->depth_max - s->base + 1, size = 1;
    while (size < depths + 1) size *= 2;
    if (!s->tree) s->tree = fdri_file_malloc(2 * size * sizeof *s->tree);
    if (!s->tree) return false;
    s->tree_size = size;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t d = s->base + i;
        s->tree[size + i] = i > 0 && d <= s->depth_max ? key_of(s->level[d].head) : NEVER;
    }
    for (uint32_t i = size - 1; i; i--)
        s->tree[i] = s->tree[2 * i] < s->tree[2 * i + 1] ? s->tree[2 * i] : s->tree[2 * i + 1];
    return true;
}

/* Of two heads with this key, does the deeper one come first? It does if it is a zero-length call whose parent began
 * earlier. Its ancestor at the other head's depth began earlier, too, and is over when the other head begins. */
static bool deeper_first(uint64_t key) { return !(key & 1); }

/* The depth of the first head by key, from depth `from` on; 0: none. */
static uint32_t first_head(const struct fdri_events_stream *s, uint32_t from)
{
    if (from > s->depth_max) return 0;
    uint32_t best = s->tree_size + (from - s->base);
    for (uint32_t i = best; i > 1; i /= 2)
        if (!(i & 1) && s->tree[i + 1] < s->tree[best] + deeper_first(s->tree[best])) best = i + 1;
    if (s->tree[best] == NEVER) return 0;
    while (best < s->tree_size) {
        uint64_t shallow = s->tree[2 * best], deep = s->tree[2 * best + 1];
        best = 2 * best + (deep < shallow || (deep == shallow && deeper_first(deep)));
    }
    return best - s->tree_size + s->base;
}

enum place { INSIDE, AFTER, NOWHERE };

/* Places a zero-length call whose parent must be c itself. */
static enum place place_child(const struct fdri_events_call *c, const struct fdri_codec_record *r)
{
    if (!r->tie.parent_in_tick) {
        if (c->enter < r->enter && r->enter <= c->leave) return INSIDE;
    } else if (c->enter == r->enter && c->ordinal_known && c->ordinal == r->tie.parent) {
        return INSIDE;
    }
    return r->enter >= c->leave ? AFTER : NOWHERE;
}

bool fdri_events_careful_gaps(struct fdri_events_stream *s, uint32_t d)
{
    struct fdri_events_depth *v = &s->level[d];
    if (!v->gaps_known) v->gaps = fdri_events_gaps(s->file, s->location, d);
    v->gaps_known = true;
    return v->gaps;
}

/* The head of depth d is a zero-length call without its parent. If it is pinned and kept, only a parent that was
 * open at the pinning can be missing, and this returns that tick. (No filter keeps out a parent that a record
 * names.) 0: other parents may be missing. *lost: calls of the parent's depth were lost. */
static uint64_t parents_open_at(struct fdri_events_stream *s, uint32_t d, bool *lost)
{
    const struct fdri_events_depth *v = &s->level[d];
    const struct fdri_file_part *p = v->cursors ? v->cursor[v->head_cursor]->part : NULL;
    const struct fdri_arena_level *missing = fdri_file_level(s->file, s->location, d - 1);
    bool gaps = fdri_events_careful_gaps(s, d - 1);
    *lost = gaps || (missing && missing->lost);
    if (!p || !p->pinned || v->head->enter > p->pin_tick || !missing) return 0;
    return !gaps && (p->pin_kept_parents || !*lost) ? p->pin_tick : 0;
}

/* Places a zero-length call that is deeper than a child of c. It lies in c only if c certainly spans its tick. */
static enum place place_orphan(struct fdri_events_stream *s, const struct fdri_events_call *c, uint32_t d)
{
    const struct fdri_codec_record *r = s->level[d].head;
    bool lost;
    uint64_t open_at = parents_open_at(s, d, &lost);
    /* c was open at the pinning, too, so it contains the missing parent */
    if (open_at && c->leave > open_at && r->tie.parent_in_tick && c->enter == r->enter) return INSIDE;
    /* it lies in c, or in a later call */
    if (!open_at && lost && r->tie.parent_in_tick && r->enter == c->leave) return NOWHERE;
    if (c->enter < r->enter && (r->enter < c->leave || (!r->tie.parent_in_tick && r->enter == c->leave))) return INSIDE;
    return r->enter >= c->leave ? AFTER : NOWHERE;
}

/* Is the call at depth k the frame of that depth on the copied stack? For zero-length calls, the ordinal decides. */
static bool was_on_stack(const struct fdri_events_stream *s, uint32_t k)
{
    const struct fdri_file_location *l = s->location;
    const struct fdri_events_call *c = &s->stack[k];
    if (k > l->frame_count || l->frame[k - 1].enter != c->enter) return false;
    return c->enter < c->leave || l->frame[k - 1].ordinal == c->ordinal;
}

/* Places the head of depth d relative to the call at depth k, which is not made up. */
static enum place place_head(struct fdri_events_stream *s, uint32_t k, uint32_t d)
{
    const struct fdri_events_call *c = &s->stack[k];
    const struct fdri_codec_record *r = s->level[d].head;
    if (r->enter < s->now) return NOWHERE;
    if (k == s->base) return INSIDE;
    if (r->enter == r->leave) return d == k + 1 ? place_child(c, r) : place_orphan(s, c, d);
    if (r->leave <= c->leave) return INSIDE;
    if (s->location->moving && r->leave == FDRI_EVENTS_OPEN && c->leave >= s->location->cut &&
        (r->enter < c->leave || (r->enter == c->leave && was_on_stack(s, k))))
        return INSIDE; /* it was open at the cut, and so was c, whose record was stored later */
    return r->enter >= c->leave ? AFTER : NOWHERE;
}

/* Did the head of depth d leave after the cut? Then the snapshot may lack its ancestors. */
static bool beyond_cut(const struct fdri_events_stream *s, uint32_t k, uint32_t d)
{
    const struct fdri_file_location *l = s->location;
    const struct fdri_codec_record *r = s->level[d].head;
    return l->moving && d > k + 1 && r->leave > l->cut && r->leave < FDRI_EVENTS_OPEN;
}

enum fdri_events_step fdri_events_careful_step(struct fdri_events_stream *s, uint32_t *d)
{
    uint32_t k = s->stack[s->depth].real_depth;
    for (;;) {
        *d = first_head(s, k + 1);
        enum place where = *d ? place_head(s, k, *d) : AFTER;
        if (where == AFTER) return s->depth == s->base ? FDRI_EVENTS_END : FDRI_EVENTS_LEAVE;
        if (where == NOWHERE || beyond_cut(s, k, *d)) {
            if (s->unplaced) fdri_events_unplaced_add(s->unplaced, *d, s->level[*d].head->leave);
            fdri_events_stream_advance(s, *d);
            continue;
        }
        if (*d <= s->depth) return FDRI_EVENTS_LEAVE; /* a made-up call of this depth ends first */
        return *d == s->depth + 1 ? FDRI_EVENTS_CALL : FDRI_EVENTS_MAKE_UP;
    }
}
