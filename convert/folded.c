/* SPDX-License-Identifier: MIT */
/* Folded stacks, the input of flame graph tools: "main;solve;kernel 12345". A line is a call path, its number the
 * path's exclusive time in ns, summed over locations and files. A missing ancestor is a frame. It is "[reduced]" if
 * the ancestor was given back, "[filtered]" if a filter kept it out. It is "[open]" if the ancestor was open at the
 * snapshot and its name is unknown.
 *
 * If no calls are selected, or the recordings have none, the paths are those of samples: thread, open regions, native
 * stack with inlined functions. The number is then the time that they stand for, or the number of counted events. */
#include <errno.h>
#include <stdlib.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/paths.h"

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

/* `stack` has room for one number a path. */
static void write_line(const struct fdri_convert_paths *p, struct fdri_convert_text *out, uint32_t leaf, uint64_t value,
                       uint32_t *stack)
{
    size_t count = 0;
    for (uint32_t id = leaf; id != 0; id = p->path[id].parent) stack[count++] = id;
    while (count > 0) {
        frame_name(out, p->frame[p->path[stack[--count]].frame].name);
        if (count > 0) fdri_convert_text_bytes(out, ";", 1);
    }
    fdri_convert_text_bytes(out, " ", 1);
    fdri_convert_text_u64(out, value);
    fdri_convert_text_bytes(out, "\n", 1);
}

static int write_lines(const struct fdri_convert_paths *p, const char *out_path)
{
    struct fdri_convert_text *out;
    int status = fdri_convert_text_open(&out, out_path);
    if (status != 0) return status;
    uint32_t *stack = malloc(p->paths * sizeof *stack);
    for (uint32_t id = 1; stack && id < p->paths; id++) {
        uint64_t value = p->any_calls ? p->path[id].exclusive_ns : p->path[id].sampled;
        if (value > 0) write_line(p, out, id, value, stack);
    }
    status = stack ? 0 : -ENOMEM;
    free(stack);
    return fdri_convert_text_close(out, status);
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct fdri_convert_paths p = {0};
    (void)value;
    int status = fdri_convert_paths_calls(&p, files, count, select);
    if (!status && !p.any_calls) status = fdri_convert_paths_samples(&p, files, count, select);
    if (!status) status = write_lines(&p, out_path);
    fdri_convert_paths_free(&p);
    return status;
}

const struct fdr_exporter fdri_convert_folded = {
    .name = "folded",
    .help = "stacks for flame graphs, one line each",
    .run = run,
};
