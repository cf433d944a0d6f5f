/* SPDX-License-Identifier: MIT */
/* The profile format of callgrind, for callgrind_annotate and KCachegrind. A function has its own time. Below it stand
 * the functions that it calls, with the number and the time of these calls. Calls through different paths are summed
 * up by caller and callee. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/interned.h"
#include "convert/paths.h"

struct cost {
    uint64_t exclusive_ns;
    uint32_t first_call; /* number of an edge + 1; 0: none */
};
struct edge {
    uint32_t callee, next; /* next: of the same caller */
    uint64_t calls, inclusive_ns;
};
struct graph {
    const struct fdri_convert_paths *paths;
    struct cost *function;
    struct edge *edge;
    struct fdri_convert_interned edges; /* caller and callee */
    bool *named;                        /* functions and files: a name is written once */
    struct fdri_convert_interned files;
    bool *file_named;
};

static bool add_call(struct graph *g, uint32_t caller, const struct fdri_convert_path *path)
{
    const struct {
        uint32_t caller, callee;
    } key = {caller, path->frame};
    bool is_new;
    uint32_t number = fdri_convert_intern(&g->edges, &key, sizeof key, &is_new);
    if (number == FDRI_CONVERT_NO_NUMBER) return false;
    if (is_new) {
        g->edge[number] = (struct edge){path->frame, g->function[caller].first_call, 0, 0};
        g->function[caller].first_call = number + 1;
    }
    g->edge[number].calls += path->calls;
    g->edge[number].inclusive_ns += path->inclusive_ns;
    return true;
}

static bool make_graph(struct graph *g)
{
    const struct fdri_convert_paths *p = g->paths;
    g->function = calloc(p->frames + 1, sizeof *g->function);
    g->edge = calloc(p->paths, sizeof *g->edge);
    g->named = calloc(p->frames + 1, sizeof *g->named);
    g->file_named = calloc(p->frames + 1, sizeof *g->file_named);
    bool good = g->function && g->edge && g->named && g->file_named;
    for (uint32_t i = 1; good && i < p->paths; i++) {
        const struct fdri_convert_path *path = &p->path[i];
        g->function[path->frame].exclusive_ns += path->exclusive_ns;
        if (path->parent != 0) good = add_call(g, p->path[path->parent].frame, path);
    }
    return good;
}

/* ---- the text ---- */

static void plain(struct fdri_convert_text *out, const char *text, const char *otherwise)
{
    if (!*text) fdri_convert_text_string(out, otherwise);
    for (size_t n; *text; text += n ? n : 1) {
        n = fdri_convert_text_plain(text);
        fdri_convert_text_bytes(out, n ? text : " ", n ? n : 1);
    }
}

/* "fn=(3) name", and later "fn=(3)". */
static void name_line(struct fdri_convert_text *out, const char *key, uint32_t number, bool *named, const char *name,
                      const char *otherwise)
{
    fdri_convert_text_string(out, key);
    fdri_convert_text_string(out, "=(");
    fdri_convert_text_u64(out, number + 1);
    fdri_convert_text_string(out, ")");
    if (!*named) {
        fdri_convert_text_string(out, " ");
        plain(out, name, otherwise);
    }
    *named = true;
    fdri_convert_text_string(out, "\n");
}

static bool function_lines(struct graph *g, struct fdri_convert_text *out, uint32_t number, const char *file_key,
                           const char *function_key)
{
    const struct fdri_convert_frame *f = &g->paths->frame[number];
    bool is_new;
    uint32_t file = fdri_convert_intern(&g->files, f->file, strlen(f->file), &is_new);
    if (file == FDRI_CONVERT_NO_NUMBER) return false;
    name_line(out, file_key, file, &g->file_named[file], f->file, "???");
    name_line(out, function_key, number, &g->named[number], f->name, "[no name]");
    return true;
}

static void cost_line(struct fdri_convert_text *out, uint32_t line, uint64_t ns)
{
    fdri_convert_text_u64(out, line);
    fdri_convert_text_string(out, " ");
    fdri_convert_text_u64(out, ns);
    fdri_convert_text_string(out, "\n");
}

static bool write_function(struct graph *g, struct fdri_convert_text *out, uint32_t number)
{
    const struct fdri_convert_frame *frame = g->paths->frame;
    if (!function_lines(g, out, number, "fl", "fn")) return false;
    cost_line(out, frame[number].line, g->function[number].exclusive_ns);
    for (uint32_t i = g->function[number].first_call; i; i = g->edge[i - 1].next) {
        const struct edge *e = &g->edge[i - 1];
        if (!function_lines(g, out, e->callee, "cfl", "cfn")) return false;
        fdri_convert_text_string(out, "calls=");
        fdri_convert_text_u64(out, e->calls);
        fdri_convert_text_string(out, " ");
        fdri_convert_text_u64(out, frame[e->callee].line);
        fdri_convert_text_string(out, "\n");
        cost_line(out, frame[number].line, e->inclusive_ns);
    }
    fdri_convert_text_string(out, "\n");
    return true;
}

static int write_graph(struct graph *g, struct fdr_file *const *files, size_t count, const char *out_path)
{
    struct fdri_convert_text *out;
    uint64_t total = 0;
    int status = fdri_convert_text_open(&out, out_path);
    if (status) return status;
    fdri_convert_text_string(out, "# callgrind format\nversion: 1\ncreator: fdr ");
    fdri_convert_text_string(out, fdr_reader_version());
    fdri_convert_text_string(out, "\ncmd: ");
    plain(out, count ? fdr_file_info(files[0])->exe : "", "?");
    fdri_convert_text_string(out, "\npositions: line\nevent: ns : time in ns\nevents: ns\nsummary: ");
    for (uint32_t i = 0; i < g->paths->frames; i++) total += g->function[i].exclusive_ns;
    fdri_convert_text_u64(out, total);
    fdri_convert_text_string(out, "\n\n");
    bool good = true;
    for (uint32_t i = 0; good && i < g->paths->frames; i++) good = write_function(g, out, i);
    return fdri_convert_text_close(out, good ? 0 : -ENOMEM);
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct fdri_convert_paths p = {0};
    struct graph g = {.paths = &p};
    (void)value;
    int status = fdri_convert_paths_calls(&p, files, count, select);
    if (!status && !make_graph(&g)) status = -ENOMEM;
    if (!status) status = write_graph(&g, files, count, out_path);
    free(g.function);
    free(g.edge);
    free(g.named);
    free(g.file_named);
    fdri_convert_interned_free(&g.edges);
    fdri_convert_interned_free(&g.files);
    fdri_convert_paths_free(&p);
    return status;
}

const struct fdr_exporter fdri_convert_callgrind = {
    .name = "callgrind",
    .help = "a profile for KCachegrind and callgrind_annotate",
    .run = run,
};
