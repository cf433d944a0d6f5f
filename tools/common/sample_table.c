/* SPDX-License-Identifier: MIT */
/* Adds up samples in rows and computes their confidence intervals (sample_table.h has the method). */
#include "tools/common/sample_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/progress.h"

/* ---- rows by name ---- */

static uint64_t hash_text(const char *text)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *text; text++) h = (h ^ (uint8_t)*text) * 0x100000001B3u;
    return h ^ h >> 29;
}

static size_t slot_of(const struct sample_table *t, const char *name)
{
    size_t i = hash_text(name) & (t->slots - 1);
    while (t->slot[i] && strcmp(t->row[t->slot[i] - 1].name, name)) i = (i + 1) & (t->slots - 1);
    return i;
}

static bool grow(struct sample_table *t)
{
    if (t->count < t->room) return true;
    size_t room = t->room ? t->room * 2 : 256;
    struct sample_row *row = realloc(t->row, room * sizeof *row);
    if (row) t->row = row;
    uint32_t *slot = row ? calloc(room * 2, sizeof *slot) : NULL;
    if (!slot) return false;
    free(t->slot);
    t->slot = slot;
    t->room = room;
    t->slots = room * 2;
    for (size_t i = 0; i < t->count; i++) t->slot[slot_of(t, t->row[i].name)] = (uint32_t)i + 1;
    return true;
}

static struct sample_row *row_of(struct sample_table *t, const char *name)
{
    if (!grow(t)) return NULL;
    size_t i = slot_of(t, name);
    if (!t->slot[i]) {
        char *copy = strdup(name);
        if (!copy) return NULL;
        t->row[t->count++] = (struct sample_row){.name = copy};
        t->slot[i] = (uint32_t)t->count;
    }
    return &t->row[t->slot[i] - 1];
}

/* ---- one sample ---- */

struct builder {
    struct sample_table *table;
    struct fdr_file *file;
    enum samples_by by;
    const struct fdr_sample_stream *stream; /* of the sample being counted */
    uint64_t done, time_ns;                 /* of the sample being counted */
    double weight;                          /* of the sample before */
    char *text;
    size_t text_room, text_used;
};

/* Counts sample number `done` for a row. Adds the turn from "no" before it, and the earlier turn to "no", which is
 * known by now. */
static void add_to(struct sample_table *t, struct sample_sum *s, uint64_t done, double weight)
{
    s->samples++;
    s->weight += weight;
    if (s->newest + 1 != done) s->variance += (t->turn[done] + (s->newest ? t->turn[s->newest + 1] : 0)) / 2;
    s->newest = done;
}

static bool count(struct builder *b, const char *name, double weight, bool self)
{
    struct sample_row *r = row_of(b->table, name);
    if (!r) return false;
    if (self) add_to(b->table, &r->self, b->done, weight);
    if (r->all.newest != b->done) add_to(b->table, &r->all, b->done, weight); /* a recursive function counts once */
    return true;
}

static bool append(struct builder *b, const char *text)
{
    size_t bytes = strlen(text), need = b->text_used + bytes + 2;
    if (need > b->text_room) {
        char *wider = realloc(b->text, need * 2);
        if (!wider) return false;
        b->text = wider;
        b->text_room = need * 2;
    }
    if (b->text_used) b->text[b->text_used++] = ';';
    for (; *text; text++) b->text[b->text_used++] = *text == ';' ? ':' : *text == '\n' ? ' ' : *text;
    b->text[b->text_used] = 0;
    return true;
}

const char *sample_function(const struct fdr_file *file, const struct fdr_sample_path *p, uint64_t time_ns)
{
    return p->pc ? fdr_place_at(file, p->pc, false, time_ns)->function : "[unknown]";
}

const char *sample_state(const struct fdr_file *file, const struct fdr_sample_path *p)
{
    return p->state == UINT32_MAX ? NULL : region_name(file, p->state);
}

const char *sample_thread(const struct fdr_file *file, const struct fdr_sample_stream *stream)
{
    const char *name = stream->parent == UINT32_MAX ? "" : location_name(file, stream->parent);
    return name[0] ? name : stream->name;
}

/* Counts functions inlined at the sample or at a call on its path. They get no `self`: the time is in the containing
 * function. */
static bool count_inlined(struct builder *b, const struct fdr_place *at, double w)
{
    for (uint32_t i = 0; i < at->inlined_count; i++)
        if (!count(b, at->inlined[i].function, w, false)) return false;
    return true;
}

/* A state is innermost: the function that called the kernel has it below. */
static bool by_function(struct builder *b, const struct fdr_sample_path *p, double w)
{
    const char *state = sample_state(b->file, p);
    if (state && !count(b, state, w, true)) return false;
    if ((!state || p->pc) && !count(b, sample_function(b->file, p, b->time_ns), w, !state)) return false;
    if (p->pc && !count_inlined(b, fdr_place_at(b->file, p->pc, false, b->time_ns), w)) return false;
    for (uint32_t i = 0; i < p->frame_count; i++) {
        const struct fdr_place *at = fdr_place_at(b->file, p->frame[i], true, b->time_ns);
        if (!count(b, at->function, w, false) || !count_inlined(b, at, w)) return false;
    }
    return true;
}

static bool by_region(struct builder *b, const struct fdr_sample_path *p, double w)
{
    bool moved = p->state != UINT32_MAX && p->flags & 1; /* which region was innermost is not known */
    if (moved && !count(b, "[unknown]", w, true)) return false;
    if (!p->region_count) return moved || count(b, "[outside]", w, true);
    for (uint32_t i = p->region_count; i-- > 0;)
        if (!count(b, region_name(b->file, p->region[i]), w, !moved && i + 1 == p->region_count)) return false;
    return true;
}

static bool by_line(struct builder *b, const struct fdr_sample_path *p, double w)
{
    const char *state = sample_state(b->file, p);
    if (state && !p->pc) return count(b, state, w, true);
    const struct fdr_place *at = fdr_place_at(b->file, p->pc, false, b->time_ns);
    char text[1200];
    if (at->line) snprintf(text, sizeof text, "%s:%u", at->file, at->line);
    else snprintf(text, sizeof text, "%s (no line)", at->function);
    return count(b, text, w, true);
}

static bool append_place(struct builder *b, const struct fdr_place *at)
{
    if (!append(b, at->function)) return false;
    for (uint32_t i = at->inlined_count; i-- > 0;)
        if (!append(b, at->inlined[i].function)) return false;
    return true;
}

/* Path of regions, then the whole native stack with inlined functions. */
static bool by_stack(struct builder *b, const struct fdr_sample_path *p, double w)
{
    b->text_used = 0;
    if (!append(b, sample_thread(b->file, b->stream))) return false;
    for (uint32_t i = 0; i < p->region_count; i++)
        if (!append(b, region_name(b->file, p->region[i]))) return false;
    for (uint32_t i = 0; i < p->frame_count; i++)
        if (!append_place(b, fdr_place_at(b->file, p->frame[i], true, b->time_ns))) return false;
    const char *state = sample_state(b->file, p);
    if ((!state || p->pc) && !append_place(b, fdr_place_at(b->file, p->pc, false, b->time_ns))) return false;
    if (state && !append(b, state)) return false;
    return count(b, b->text, w, true);
}

/* Path of regions, then the function of the sample, unless that is the innermost region itself, then its state. */
static bool by_path_function(struct builder *b, const struct fdr_sample_path *p, double w)
{
    const char *state = sample_state(b->file, p), *inner = "",
               *function = state && !p->pc ? NULL : sample_function(b->file, p, b->time_ns);
    b->text_used = 0;
    for (uint32_t i = 0; i < p->region_count; i++)
        if (!append(b, inner = region_name(b->file, p->region[i]))) return false;
    if (function && strcmp(inner, function) && !append(b, function)) return false;
    if (state && !append(b, state)) return false;
    return count(b, b->text, w, true);
}

static bool by_thread(struct builder *b, double w)
{
    char text[120], also[40] = "";
    const char *name = sample_thread(b->file, b->stream);
    if (strcmp(name, b->stream->name)) snprintf(also, sizeof also, " (%s)", b->stream->name);
    snprintf(text, sizeof text, "%s%s, tid %u", name, also, b->stream->tid);
    return count(b, text, w, true);
}

/* Makes room for the sample after this one. */
static bool reserve_turns(struct sample_table *t, uint64_t done)
{
    if (done + 2 < t->turns) return true;
    size_t turns = t->turns ? t->turns * 2 : 1024;
    double *turn = realloc(t->turn, turns * sizeof *turn);
    if (!turn) return false;
    t->turn = turn;
    t->turns = turns;
    return true;
}

/* The square of the periods that may lie between the sample before and this one. */
static double turn_variance(const struct builder *b, const struct fdr_sample_path *p, double weight)
{
    if (b->weight <= 0) return 0;
    double least = weight < b->weight ? weight : b->weight;
    bool stood = b->stream->by == 1 && p->state == UINT32_MAX;
    return stood ? least * least : (weight * weight + b->weight * b->weight) / 2;
}

/* True if the sample's stack ends before it reaches the start of the thread. */
static bool is_cut(const struct builder *b, const struct fdr_sample_path *p)
{
    static const char *const begin[] = {
        "__libc_start_call_main", "__libc_start_main", "_start", "start_thread", "clone", "__clone3"};
    if (!(p->flags & 2) || p->state != UINT32_MAX) return false;
    const char *outermost = p->frame_count ? fdr_place_at(b->file, p->frame[0], true, b->time_ns)->function : "";
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (!strcmp(outermost, begin[i])) return false;
    return true;
}

static bool count_sample(struct builder *b, const struct fdr_sample_path *p)
{
    double w = (double)p->weight * (double)b->stream->period;
    if (!reserve_turns(b->table, ++b->done)) return false;
    b->table->turn[b->done] = turn_variance(b, p, w);
    b->table->turn[b->done + 1] = 0; /* until a sample follows */
    b->weight = w;
    if (!b->table->total.samples || b->time_ns < b->table->first_ns) b->table->first_ns = b->time_ns;
    if (b->time_ns > b->table->last_ns) b->table->last_ns = b->time_ns;
    b->table->total.samples++;
    b->table->cut += is_cut(b, p);
    b->table->total.weight += w;
    b->table->total.variance += b->table->turn[b->done];
    switch (b->by) {
    case BY_FUNCTION: return by_function(b, p, w);
    case BY_SAMPLE_REGION: return by_region(b, p, w);
    case BY_LINE: return by_line(b, p, w);
    case BY_STACK: return by_stack(b, p, w);
    case BY_PATH_FUNCTION: return by_path_function(b, p, w);
    default: return by_thread(b, w);
    }
}

/* ---- all of them ---- */

static const struct fdr_sample_stream *stream_of(struct fdr_file *file, uint32_t location)
{
    static const struct fdr_sample_stream none = {.name = "", .period = 1};
    const struct fdr_sample_stream *s;
    size_t n = fdr_sample_streams(file, &s);
    for (size_t i = 0; i < n; i++)
        if (s[i].location == location) return &s[i];
    return &none;
}

/* The clock of most samples. */
static uint32_t usual_clock(struct fdr_file *file)
{
    const struct fdr_sample_stream *s;
    size_t n = fdr_sample_streams(file, &s);
    uint64_t kept[3] = {0};
    for (size_t i = 0; i < n; i++) kept[s[i].by] += s[i].kept;
    return kept[1] > kept[0] ? (kept[2] > kept[1] ? 2 : 1) : kept[2] > kept[0] ? 2 : 0;
}

static int by_weight(const void *x, const void *y)
{
    const struct sample_row *a = x, *b = y;
    if (a->self.weight != b->self.weight) return a->self.weight < b->self.weight ? 1 : -1;
    if (a->all.weight != b->all.weight) return a->all.weight < b->all.weight ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* Adds the last turn from yes to no of each row. */
static void add_last_turns(struct sample_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct sample_row *r = &t->row[i];
        if (r->self.newest) r->self.variance += t->turn[r->self.newest + 1] / 2;
        if (r->all.newest) r->all.variance += t->turn[r->all.newest + 1] / 2;
    }
}

bool sample_table_build(struct sample_table *t, struct fdr_file *file, const struct fdr_select *select,
                        enum samples_by by, int by_clock)
{
    struct builder b = {.table = t, .file = file, .by = by};
    struct fdr_select only = *select;
    struct fdr_read_event e;
    struct progress progress = {.what = "samples"};
    *t = (struct sample_table){.by = by_clock < 0 ? usual_clock(file) : (uint32_t)by_clock};
    only.classes = 1u << FDR_IN_SAMPLE;
    only.one_location_after_another = true;
    struct fdr_iter *iter = fdr_iter_open(file, &only);
    bool good = iter && grow(t);
    while (good && fdr_iter_next(iter, &e)) {
        if (!e.sample) continue;
        if (!b.stream || b.stream->location != e.location) {
            b.stream = stream_of(file, e.location);
            b.weight = 0;
        }
        b.time_ns = e.time_ns;
        if (b.stream->by == t->by) good = count_sample(&b, e.sample);
        else t->others++;
        progress_at(&progress, b.done);
    }
    progress_end(&progress);
    fdr_iter_close(iter);
    free(b.text);
    if (good) add_last_turns(t);
    if (good) qsort(t->row, t->count, sizeof *t->row, by_weight); /* the hash table is invalid from here on */
    else sample_table_free(t);
    return good;
}

void sample_table_free(struct sample_table *t)
{
    for (size_t i = 0; i < t->count; i++) free(t->row[i].name);
    free(t->row);
    free(t->slot);
    free(t->turn);
    *t = (struct sample_table){0};
}

/* The number of independent samples that would give the share with the same precision. */
static double independent_samples(const struct sample_sum *part, const struct sample_sum *total)
{
    double p = part->weight / total->weight,
           each = total->variance > 0 ? total->variance / (double)total->samples : total->weight * total->weight;
    if (part->samples == 0 || part->samples == total->samples)
        return total->weight * total->weight / each / (double)total->samples;
    return total->weight * total->weight * p * (1 - p) / (part->variance > each / 2 ? part->variance : each / 2);
}

struct sample_interval sample_interval(const struct sample_sum *part, const struct sample_sum *total)
{
    const double z = 1.959964;
    struct sample_interval i = {0, 0, 0};
    if (total->weight <= 0) return i;
    double p = part->weight / total->weight, n = independent_samples(part, total);
    double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    i.share = p;
    i.low = middle - half > 0 ? fmin(middle - half, p) : 0; /* for p = 0 or 1 rounding would exclude p */
    i.high = middle + half < 1 ? fmax(middle + half, p) : 1;
    return i;
}

const char *sample_clock_name(uint32_t by)
{
    static const char *const names[] = {"cpu", "wall", "events"};
    return by < 3 ? names[by] : "events";
}
