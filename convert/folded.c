/* SPDX-License-Identifier: MIT */
/* Folded stacks, the input of flame graph tools: "main;solve;kernel 12345". A line is a call path, its number the
 * path's exclusive time in ns, summed over locations and files.
 *
 * Only the time in the selected window counts, less all kept calls inside, selected or not. Open calls count up to the
 * newest event of their location. A missing ancestor is a frame: "[reduced]" if it was given back, "[filtered]" if a
 * filter kept it out, "[open]" if it was open at the snapshot and its name is unknown.
 *
 * If no calls are selected, or the recordings have none, the paths are those of samples: thread, open regions, native
 * stack with inlined functions. The number is then the time that they stand for, or the number of counted events. */
#include <fdr/reader.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/titles.h"

#define NO_NODE UINT32_MAX

struct node {
    const char *name;
    uint32_t parent, last; /* last: the child found last; 0: none */
    uint64_t exclusive_ns;
};
struct fold {
    struct fdr_file *file;
    struct node *nodes; /* [0] is the root, above all outermost calls */
    size_t count, capacity;
    uint32_t *slot; /* hash table of the nodes by parent and name; 0: free */
    size_t slots;   /* a power of two */
    uint32_t node;  /* node of the current call */
};

/* Doubles an array. Returns NULL without memory; the old array then stays valid. */
static void *grow_array(void *array, size_t *capacity, size_t bytes)
{
    size_t more = *capacity ? *capacity * 2 : 256;
    void *bigger = realloc(array, more * bytes);
    if (bigger) *capacity = more;
    return bigger;
}

static size_t slot_of(const struct fold *f, uint32_t parent, const char *name)
{
    uint64_t h = 0xCBF29CE484222325u ^ parent * 0x9E3779B97F4A7C15u;
    for (const char *c = name; *c; c++) h = (h ^ (uint8_t)*c) * 0x100000001B3u;
    size_t i = (h ^ h >> 29) & (f->slots - 1);
    for (const struct node *n; f->slot[i]; i = (i + 1) & (f->slots - 1)) {
        n = &f->nodes[f->slot[i]];
        if (n->parent == parent && (n->name == name || strcmp(n->name, name) == 0)) break;
    }
    return i;
}

static bool room_for_node(struct fold *f)
{
    if (f->count < f->capacity) return true;
    struct node *nodes = grow_array(f->nodes, &f->capacity, sizeof *nodes);
    if (nodes) f->nodes = nodes;
    uint32_t *slot = nodes ? calloc(f->capacity * 2, sizeof *slot) : NULL;
    if (!slot) return false;
    free(f->slot);
    f->slot = slot;
    f->slots = f->capacity * 2;
    for (uint32_t id = 1; id < f->count; id++) slot[slot_of(f, f->nodes[id].parent, f->nodes[id].name)] = id;
    return true;
}

static uint32_t new_node(struct fold *f, uint32_t parent, const char *name)
{
    if (!room_for_node(f)) return NO_NODE;
    uint32_t id = (uint32_t)f->count++;
    f->nodes[id] = (struct node){name, parent, 0, 0};
    if (parent != NO_NODE) f->slot[slot_of(f, parent, name)] = id;
    return id;
}

/* Finds or makes the child of that name. Loops ask for the same child again and again, so `last` comes first. Within
 * one file, a region's name is one pointer; overloads and other files match by text. */
static uint32_t child_of(struct fold *f, uint32_t parent, const char *name)
{
    uint32_t id = f->nodes[parent].last;
    if (id && f->nodes[id].name == name) return id;
    id = f->slot[slot_of(f, parent, name)];
    if (!id) id = new_node(f, parent, name);
    if (id != NO_NODE) f->nodes[parent].last = id;
    return id;
}

/* ---- calls ---- */

static bool enter(void *context, const struct fdr_read_event *e)
{
    struct fold *f = context;
    f->node = child_of(f, f->node, fdri_convert_call(f->file, e));
    return f->node != NO_NODE;
}

static void leave(void *context, const struct fdr_call *c)
{
    struct fold *f = context;
    struct node *n = &f->nodes[f->node];
    n->exclusive_ns += c->exclusive_ns;
    f->node = n->parent;
}

static void new_location(void *context, uint32_t location)
{
    struct fold *f = context;
    (void)location;
    f->node = 0;
}

static int fold_calls(struct fold *f, const struct fdr_select *select)
{
    const struct fdr_call_visitor visitor = {.context = f, .location = new_location, .enter = enter, .leave = leave};
    return fdr_visit_calls(f->file, select, &visitor) ? -ENOMEM : 0;
}

/* ---- samples ---- */

static uint32_t place_below(struct fold *f, uint32_t node, uint64_t address, bool returns, uint64_t time_ns)
{
    const struct fdr_place *at = fdr_place_at(f->file, address, returns, time_ns);
    node = child_of(f, node, at->function);
    for (uint32_t i = at->inlined_count; i-- > 0 && node != NO_NODE;) node = child_of(f, node, at->inlined[i].function);
    return node;
}

static bool add_sample(struct fold *f, const char *thread, uint64_t period, const struct fdr_read_event *e)
{
    const struct fdr_sample_path *p = e->sample;
    uint32_t node = child_of(f, 0, thread);
    for (uint32_t i = 0; i < p->region_count && node != NO_NODE; i++)
        node = child_of(f, node, fdr_definition(f->file, FDR_REGION_DEFINITION, p->region[i])->name);
    for (uint32_t i = 0; i < p->frame_count && node != NO_NODE; i++)
        node = place_below(f, node, p->frame[i], true, e->time_ns);
    if (node != NO_NODE && p->pc) node = place_below(f, node, p->pc, false, e->time_ns);
    if (node != NO_NODE && p->state != UINT32_MAX)
        node = child_of(f, node, fdr_definition(f->file, FDR_REGION_DEFINITION, p->state)->name);
    if (node == NO_NODE) return false;
    f->nodes[node].exclusive_ns += p->weight * period;
    return true;
}

static int fold_samples(struct fold *f, const struct fdr_select *select)
{
    struct fdr_select samples = select ? *select : (struct fdr_select){0};
    const struct fdr_sample_stream *stream = NULL;
    const char *thread = NULL;
    struct fdr_read_event e;
    samples.classes = 1u << FDR_IN_SAMPLE;
    samples.one_location_after_another = true;
    struct fdr_iter *iter = fdr_iter_open(f->file, &samples);
    bool good = iter != NULL;
    while (good && fdr_iter_next(iter, &e)) {
        if (!e.sample) continue;
        if (!stream || stream->location != e.location) {
            stream = fdri_convert_stream(f->file, e.location);
            thread = fdri_convert_sampled(f->file, stream);
        }
        good = add_sample(f, thread, stream->period, &e);
    }
    if (iter) fdr_iter_close(iter);
    return good ? 0 : -ENOMEM;
}

/* ---- the lines ---- */

/* Writes a frame's name. ';' separates frames and a newline ends a stack, so neither may stand in it. Characters
 * that are not plain become spaces; an empty name becomes "[no name]". */
static void frame_name(struct fdri_convert_text *out, const char *name)
{
    if (!*name) fdri_convert_text_string(out, "[no name]");
    for (size_t n; *name; name += n ? n : 1) {
        n = fdri_convert_text_plain(name);
        fdri_convert_text_bytes(out, *name == ';' ? ":" : n ? name : " ", n ? n : 1);
    }
}

/* `path` has room for one number a node. */
static void write_line(struct fold *f, struct fdri_convert_text *out, uint32_t leaf, uint32_t *path)
{
    size_t count = 0;
    for (uint32_t id = leaf; id != 0; id = f->nodes[id].parent) path[count++] = id;
    while (count > 0) {
        frame_name(out, f->nodes[path[--count]].name);
        if (count > 0) fdri_convert_text_bytes(out, ";", 1);
    }
    fdri_convert_text_bytes(out, " ", 1);
    fdri_convert_text_u64(out, f->nodes[leaf].exclusive_ns);
    fdri_convert_text_bytes(out, "\n", 1);
}

static int write_lines(struct fold *f, const char *out_path)
{
    struct fdri_convert_text *out;
    int status = fdri_convert_text_open(&out, out_path);
    if (status != 0) return status;
    uint32_t *path = malloc(f->count * sizeof *path);
    for (uint32_t id = 1; path && id < f->count; id++)
        if (f->nodes[id].exclusive_ns > 0) write_line(f, out, id, path);
    status = path ? 0 : -ENOMEM;
    free(path);
    return fdri_convert_text_close(out, status);
}

static bool chosen(const struct fdr_select *select, size_t file, enum fdr_event_class class_)
{
    return !select || !select[file].classes || select[file].classes & 1u << class_;
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct fold f = {0};
    (void)value;
    int status = new_node(&f, NO_NODE, "") == 0 ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && status == 0; i++) {
        f.file = files[i];
        if (chosen(select, i, FDR_IN_REGION)) status = fold_calls(&f, select ? &select[i] : NULL);
    }
    bool no_calls = f.count == 1;
    for (size_t i = 0; no_calls && i < count && status == 0; i++) {
        f.file = files[i];
        if (chosen(select, i, FDR_IN_SAMPLE)) status = fold_samples(&f, select ? &select[i] : NULL);
    }
    if (status == 0) status = write_lines(&f, out_path);
    free(f.nodes);
    free(f.slot);
    return status;
}

const struct fdr_exporter fdri_convert_folded = {
    .name = "folded",
    .help = "stacks for flame graphs, one line each",
    .run = run,
};
