/* SPDX-License-Identifier: MIT */
/* Data of each recording for the scripts of the page, as JSON. Rows are arrays: short, as there may be many. */
#include "tools/html/page.h"

#include <string.h>

#include "tools/common/sample_table.h"
#include "tools/crash.h"
#include "tools/findings/run_facts.h"

enum { PLACES_MOST = 20000, NODES_MOST = 20000, POINTS_MOST = 40000, POINT_CELLS = 2048 };

double page_time(const struct page *page, size_t file, uint64_t ns)
{
    const struct fdr_file_info *i = fdr_file_info(page->death[file].file);
    return (double)(int64_t)(ns + (uint64_t)i->realtime_offset_ns - page->zero_ns);
}

uint64_t page_end(const struct page *page, size_t file) { return newest_moment(page->death[file].file); }

/* [numbers], for rows. */
static json_t *row(const double *value, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        bool whole = value[i] > -9e15 && value[i] < 9e15 && value[i] == (double)(int64_t)value[i];
        json_array_append_new(list, whole ? json_integer((int64_t)value[i]) : json_f64(value[i]));
    }
    return list;
}
#define ROW(...) row((const double[]){__VA_ARGS__}, sizeof(double[]){__VA_ARGS__} / sizeof(double))

static json_t *open_calls(const struct page *page, size_t file, const struct fdr_location_info *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->open_count; i++)
        json_array_append_new(list, ROW(l->open[i].region, page_time(page, file, l->open[i].enter_ns)));
    return list;
}

static json_t *locations(const struct page *page, size_t index)
{
    struct fdr_file *file = page->death[index].file;
    json_t *list = json_array();
    size_t busiest = page->line[index] ? busiest_location(file) : SIZE_MAX;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (busiest != SIZE_MAX && i != busiest) continue;
        json_t *o = json_pack("{s:I, s:o, s:I, s:b, s:b}", "id", (json_int_t)l->id, "name", json_text(l->name), "tid",
                              (json_int_t)l->tid, "live", l->live, "samples", l->samples);
        json_object_set_new(o, "parent", l->parent == UINT32_MAX ? json_null() : json_integer(l->parent));
        json_object_set_new(o, "start", l->start_ns ? json_f64(page_time(page, index, l->start_ns)) : json_null());
        json_object_set_new(o, "from", json_f64(page_time(page, index, l->from_ns)));
        json_object_set_new(o, "to", json_f64(page_time(page, index, l->to_ns)));
        json_object_set_new(o, "moved", json_f64(page_time(page, index, l->moved_ns)));
        json_object_set_new(o, "open", open_calls(page, index, l));
        json_array_append_new(list, o);
    }
    return list;
}

/* Names from id 0 on. */
static json_t *names(const struct fdr_file *file, enum fdr_definition_kind kind)
{
    json_t *list = json_array();
    size_t count = fdr_definition_count(file, kind);
    for (size_t i = 0; i <= count; i++)
        json_array_append_new(list, json_text(fdr_definition(file, kind, (uint32_t)i)->name));
    return list;
}

static json_t *sources(const struct fdr_file *file)
{
    json_t *list = json_array();
    size_t count = fdr_definition_count(file, FDR_REGION_DEFINITION);
    for (size_t i = 0; i <= count; i++) {
        const struct fdr_definition *d = fdr_definition(file, FDR_REGION_DEFINITION, (uint32_t)i);
        char text[1024] = "";
        if (d->file[0]) snprintf(text, sizeof text, "%s:%u", d->file, d->line);
        json_array_append_new(list, json_text(text));
    }
    return list;
}

static json_t *metrics(const struct fdr_file *file)
{
    json_t *list = json_array();
    for (size_t i = 0; i <= fdr_definition_count(file, FDR_METRIC_DEFINITION); i++) {
        const struct fdr_metric_info *m = fdr_metric_info(file, (uint32_t)i);
        json_array_append_new(list, json_pack("[o, o, b]", json_text(m->name), json_text(m->unit), m->counter));
    }
    return list;
}

/* [location, tier, from, to, exact, calls, kept events, depth complete by band of durations, ...] */
static json_t *epochs(const struct page *page, size_t index)
{
    const struct fdr_epoch_info *e;
    json_t *list = json_array();
    for (size_t i = 0, n = fdr_epochs(page->death[index].file, &e); i < n; i++)
        json_array_append_new(list, ROW(e[i].location, e[i].tier, page_time(page, index, e[i].from_ns),
                                        page_time(page, index, e[i].to_ns), e[i].exact, (double)e[i].calls,
                                        (double)e[i].kept_events, e[i].complete_depth[0], e[i].complete_depth[1],
                                        e[i].complete_depth[2], e[i].complete_depth[3], e[i].deepest, e[i].index));
    return list;
}

/* [location, epoch, region or -1, calls, inclusive, exclusive] */
static json_t *epoch_totals(struct fdr_file *file)
{
    const struct fdr_epoch_total *t;
    json_t *list = json_array();
    for (size_t i = 0, n = fdr_epoch_totals(file, &t); i < n; i++)
        json_array_append_new(list, ROW(t[i].location, t[i].epoch, t[i].rest ? -1.0 : t[i].region, (double)t[i].calls,
                                        (double)t[i].inclusive_ns, (double)t[i].exclusive_ns));
    return list;
}

/* [location, class, id or -1, calls, inclusive, exclusive, least, greatest, untimed, at least, [histogram]] */
static json_t *totals(struct fdr_file *file)
{
    const struct fdr_total *t;
    json_t *list = json_array();
    for (size_t i = 0, n = fdr_totals(file, &t); i < n; i++) {
        json_t *r = ROW(t[i].location, t[i].class_, t[i].rest ? -1.0 : t[i].id, (double)t[i].calls,
                        (double)t[i].inclusive_ns, (double)t[i].exclusive_ns, (double)t[i].min_ns, (double)t[i].max_ns,
                        (double)t[i].untimed, t[i].at_least);
        json_t *h = json_array();
        for (int b = 0; t[i].has_histogram && b < 64; b++) json_array_append_new(h, json_u64(t[i].histogram[b]));
        json_array_append_new(r, h);
        json_array_append_new(list, r);
    }
    return list;
}

/* [location, class, depth, presented, kept, filtered, reduced, lost] */
static json_t *ledger(struct fdr_file *file)
{
    const struct fdr_ledger_row *l;
    json_t *list = json_array();
    for (size_t i = 0, n = fdr_ledger(file, &l); i < n; i++)
        json_array_append_new(list,
                              ROW(l[i].location, l[i].class_, l[i].depth, (double)l[i].presented, (double)l[i].kept,
                                  (double)l[i].filtered, (double)l[i].reduced, (double)l[i].lost));
    return list;
}

/* [location, from, to, gone, events, what] */
static json_t *reductions(const struct page *page, size_t index)
{
    const struct fdr_reduction_info *r;
    json_t *list = json_array();
    size_t n = fdr_reductions(page->death[index].file, &r);
    for (size_t i = 0; i < n && i < 4096; i++) {
        json_t *line = ROW(r[i].location, page_time(page, index, r[i].from_ns), page_time(page, index, r[i].to_ns),
                           r[i].gone, (double)r[i].events);
        json_array_append_new(line, json_text(r[i].what));
        json_array_append_new(list, line);
    }
    return list;
}

/* Paths of the whole run: [parent, region, flags, calls, inclusive, exclusive, longest, its start, its location]. Empty
 * if there are very many paths. */
static json_t *flame(const struct view_nodes *nodes)
{
    json_t *list = json_array();
    for (size_t k = 0; nodes->count <= NODES_MOST && k < nodes->count; k++) {
        const struct view_node *n = &nodes->node[k];
        json_array_append_new(list,
                              ROW(n->parent == UINT32_MAX ? -1.0 : n->parent, n->region, n->flags, n->calls,
                                  n->inclusive_ns, n->exclusive_ns, n->longest_ns, n->longest_start_ns, n->location));
    }
    return list;
}

/* Points of the whole run: [location, kind, id, time, last, count, value, least, greatest, peer, tag, comm, code]. */
static json_t *points(const struct page *page, size_t index)
{
    struct fdr_file *file = page->death[index].file;
    const struct fdr_file_info *info = fdr_file_info(file);
    json_t *list = json_array();
    for (size_t i = 0; i < fdr_location_count(file) && json_array_size(list) < POINTS_MOST; i++) {
        uint32_t id = fdr_location_info(file, i)->id;
        struct view_window w = {.location = id,
                                .cells = POINT_CELLS,
                                .base_ns = info->first_ns,
                                .from_ns = info->first_ns,
                                .to_ns = info->last_ns};
        struct view_points p = {0};
        view_points(file, &w, &p);
        for (size_t k = 0; k < p.count; k++) {
            const struct view_point *q = &p.point[k];
            json_array_append_new(list, ROW(id, q->kind, q->id, q->time_ns, q->last_ns, q->count, q->value, q->least,
                                            q->greatest, q->peer, q->tag, q->comm, q->pc));
        }
        view_points_free(&p);
    }
    return list;
}

/* Functions at the sampled addresses: the reader in the page has no symbols. */
static json_t *places(struct fdr_file *file)
{
    struct fdr_select select = {.classes = 1u << FDR_IN_SAMPLE};
    struct fdr_iter *iter = fdr_iter_open(file, &select);
    struct fdr_read_event e;
    json_t *map = json_object();
    char key[24];
    while (iter && json_object_size(map) < PLACES_MOST && fdr_iter_next(iter, &e)) {
        if (!e.sample || !e.sample->pc) continue;
        snprintf(key, sizeof key, "%llx", (unsigned long long)e.sample->pc);
        if (!json_object_get(map, key)) json_object_set_new(map, key, json_text(event_name(file, &e)));
    }
    fdr_iter_close(iter);
    return map;
}

/* Data of a recording in full. One that is only a line of the page lacks them. */
static void details(const struct page *page, size_t index, json_t *o)
{
    struct fdr_file *file = page->death[index].file;
    json_object_set_new(o, "sources", page->redact ? json_array() : sources(file));
    json_object_set_new(o, "markers", names(file, FDR_MARKER_DEFINITION));
    json_object_set_new(o, "events", names(file, FDR_EVENT_DEFINITION));
    json_object_set_new(o, "metrics", metrics(file));
    json_object_set_new(o, "epochs", epochs(page, index));
    json_object_set_new(o, "epochTotals", epoch_totals(file));
    json_object_set_new(o, "totals", totals(file));
    json_object_set_new(o, "ledger", ledger(file));
    json_object_set_new(o, "reductions", reductions(page, index));
    json_object_set_new(o, "flame", flame(&page->prepared[index].flame));
    json_object_set_new(o, "points", points(page, index));
    json_object_set_new(o, "places", places(file));
}

static void add_instant(json_t *list, double time, const char *what, const char *name)
{
    char text[200];
    snprintf(text, sizeof text, "%s%s", what, name);
    json_array_append_new(list, json_pack("[f, o]", time, json_text(text)));
}

/* The moments marked by a line through all threads: the signal, the trigger. */
static json_t *instants(const struct page *page, size_t index)
{
    const struct fdr_file_info *i = fdr_file_info(page->death[index].file);
    json_t *list = json_array();
    char name[HUMAN_BYTES];
    if (i->has_cause)
        add_instant(list, page_time(page, index, i->cause_time_ns), "", signal_name(i->cause_signal, name));
    if (i->has_trigger) add_instant(list, page_time(page, index, i->trigger_time_ns), "trigger ", i->trigger_name);
    return list;
}

static json_t *file_data(const struct page *page, size_t index)
{
    const struct death *d = &page->death[index];
    const struct fdr_file_info *i = fdr_file_info(d->file);
    char who[128], base[32];
    story_who(page->death[index].file, who, sizeof who);
    snprintf(base, sizeof base, "%llu", (unsigned long long)i->first_ns);
    json_t *o = json_pack("{s:o, s:i, s:I, s:s, s:b}", "who", json_text(who), "rank", i->rank, "pid",
                          (json_int_t)i->pid, "base", base, "embedded", page->embedded[index]);
    const char *slash = strrchr(d->path, '/');
    json_object_set_new(o, "file", json_text(page->redact ? "" : slash ? slash + 1 : d->path));
    json_object_set_new(o, "first", json_f64(page_time(page, index, i->first_ns)));
    json_object_set_new(o, "last", json_f64(page_time(page, index, i->last_ns)));
    json_object_set_new(o, "end", json_f64(page_time(page, index, page_end(page, index))));
    json_object_set_new(o, "instants", instants(page, index));
    json_object_set_new(o, "bands",
                        ROW((double)i->band_edge_ns[0], (double)i->band_edge_ns[1], (double)i->band_edge_ns[2]));
    json_object_set_new(o, "locations", locations(page, index));
    json_object_set_new(o, "regions", names(d->file, FDR_REGION_DEFINITION));
    json_object_set_new(o, "line", json_boolean(page->line[index]));
    if (!page->line[index]) details(page, index, o);
    return o;
}

json_t *page_data(const struct page *page)
{
    json_t *files = json_array();
    for (size_t i = 0; i < page->files; i++) json_array_append_new(files, file_data(page, i));
    return json_pack("{s:i, s:I, s:o, s:o}", "version", 1, "culprit", (json_int_t)page->culprit, "files", files,
                     "comms", page_comms(page));
}
