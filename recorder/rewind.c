/* SPDX-License-Identifier: MIT */
/* Rewind: forget what this thread stored since its mark. Partitions are cut back to where they stood; the bins behind
 * that go back. What is forgotten counts as filtered; totals stay. */

#include "recorder/recorder.h"

struct fdri_mark {
    uint32_t count, room;
    struct { uint32_t part, bin, seq; uint64_t commit; } at[];
};

static uint32_t count_parts(const struct fdri_thread *t)
{
    uint32_t n = 0;
    for (uint32_t off = t->loc->parts_first; off; off = ((struct fdr_part *)fdri_off(t, off))->next) n++;
    return n;
}

void fdr_rewind_mark(void)
{
    struct fdri_thread *t = fdri_begin(FDRI_NO_EVENT);
    if (!t) return;
    uint32_t n = count_parts(t);
    struct fdri_mark *m = t->mark;
    if (!m || m->room < n) {
        uint32_t room = n * 2 + 16;
        uint32_t off = fdri_meta_take(&fdri_rec.arena, FDR_META_FREE,
                                      (uint32_t)(64 + sizeof *m + room * sizeof m->at[0]), t->loc->id);
        if (!off) {
            static unsigned said;
            if (fdri_once(&said)) fdri_say("no room for a rewind mark of %u partitions; rewinds of this thread do nothing", n);
            t->mark = NULL;
            fdri_end(t);
            return;
        }
        m = fdri_off(t, off + 64);
        m->room = room;
        t->mark = m;
    }
    m->count = 0;
    for (uint32_t off = t->loc->parts_first; off; off = ((struct fdr_part *)fdri_off(t, off))->next) {
        const struct fdr_part *p = fdri_off(t, off);
        m->at[m->count].part = off;
        m->at[m->count].bin = p->open_off;
        m->at[m->count].seq = p->open_seq;
        m->at[m->count++].commit = p->open_off ? fdri_bin(&fdri_rec.arena, p->open_off)->commit : 0;
    }
    fdri_end(t);
}

/* Gives back the bins from `off` on; returns how many records they held. */
static uint64_t give_from(struct fdri_thread *t, struct fdr_part *p, uint32_t off)
{
    uint64_t records = 0;
    while (off) {
        struct fdr_bin *b = fdri_bin(&fdri_rec.arena, off);
        uint32_t next = b->next;
        records += FDR_COMMIT_RECORDS(b->commit);
        p->bins--;
        p->bytes -= 1u << (b->size_log2 - 9);
        fdri_piece_give(&fdri_rec.arena, t->loc, off, b->size_log2);
        off = next;
    }
    return records;
}

/* Back to nothing: the partition was made, or all its marked bins were given back, since the mark. */
static uint64_t cut_all(struct fdri_thread *t, struct fdr_part *p)
{
    uint32_t head = (uint32_t)p->list_head, seq = (uint32_t)(p->list_head >> 32);
    if (!head) return 0;
    uint64_t first = fdri_bin(&fdri_rec.arena, head)->first_index;
    fdr_store_release(&p->list_head, (uint64_t)seq << 32); /* R:link */
    p->open_off = 0;
    p->open_seq = seq - 1;
    p->total = first;
    p->bit = 1;
    p->limit = 0;
    return give_from(t, p, head);
}

static uint64_t cut_to(struct fdri_thread *t, struct fdr_part *p, uint32_t bin, uint64_t commit)
{
    struct fdr_bin *b = fdri_bin(&fdri_rec.arena, bin);
    uint32_t behind = b->next;
    uint64_t forgotten = FDR_COMMIT_RECORDS(b->commit) - FDR_COMMIT_RECORDS(commit);
    fdr_store_release(&b->commit, commit); /* R:commit */
    fdr_store_release(&b->next, 0);  /* R:link */
    p->open_off = bin;
    p->open_seq = b->seq;
    fdri_part_seal(&fdri_rec.arena, p); /* the encoder's tables have moved on: the next record needs a new bin */
    return forgotten + give_from(t, p, behind);
}

static void account(struct fdri_thread *t, const struct fdr_part *p, uint64_t forgotten)
{
    struct fdr_level *v = fdri_level(t, p->depth);
    if (p->class_ == FDR_CLASS_REGION) {
        fdr_bump_relaxed(&v->filtered, forgotten);
    } else {
        struct fdr_level_points *points = fdri_off(t, v->points_off);
        fdr_bump_relaxed(&points->by_class[p->class_].filtered, forgotten);
    }
}

void fdr_rewind(void)
{
    struct fdri_thread *t = fdri_begin(FDRI_NO_EVENT);
    if (!t) return;
    struct fdri_mark *m = t->mark;
    uint32_t fresh = m && m->count ? m->at[0].part : 0; /* newer partitions stand in front of this one */
    bool after = !fresh;
    for (uint32_t off = m ? t->loc->parts_first : 0, i = 0; off; off = ((struct fdr_part *)fdri_off(t, off))->next) {
        struct fdr_part *p = fdri_off(t, off);
        if (off == fresh) after = true;
        bool marked = after && i < m->count && m->at[i].part == off;
        uint32_t bin = marked ? m->at[i].bin : 0, seq = marked ? m->at[i].seq : 0;
        uint64_t commit = marked ? m->at[i].commit : 0, forgotten;
        if (marked) i++;
        if (marked && p->open_seq == seq && p->open_off == bin && !bin) continue;       /* untouched, empty */
        bool held = bin && seq >= (uint32_t)(p->list_head >> 32) && (uint32_t)p->list_head;
        if (held && fdri_bin(&fdri_rec.arena, bin)->commit == commit && p->open_off == bin) continue; /* untouched */
        forgotten = held ? cut_to(t, p, bin, commit) : cut_all(t, p);
        account(t, p, forgotten);
    }
    if (m) m->count = 0;
    t->mark = NULL;
    fdri_end(t);
}

/* The mark's memory belongs to the location and goes with it. */
void fdri_rewind_release(struct fdri_thread *t) { t->mark = NULL; }
