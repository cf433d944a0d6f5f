/* SPDX-License-Identifier: MIT */
/* The parts that all builds of the symbol lookup share. */
#include "format/arena/arena.h"
#include "reader/file/file.h"
#include "reader/symbol/symbols.h"

#include <fcntl.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool fdri_symbol_symbols_allowed(void)
{
    const char *said = getenv("FDR_SYMBOLS");
    return !said || strcmp(said, "0") != 0;
}

bool fdri_symbol_wanted(const struct fdr_file *f, const struct fdri_file_definition *region,
                        const struct fdri_file_definition **module)
{
    *module = NULL;
    if (region->d.name[0] || !region->d.address) return false;
    const struct fdri_file_definition *m = fdri_file_definition(f, FDRI_ARENA_DEF_MODULE, region->module);
    if (region->module && m && m->d.address <= region->d.address) *module = m;
    return true;
}

int fdri_symbol_symbols_fd(const char *path)
{
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode)) return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))) return fd;
    close(fd); /* another file took the path meanwhile */
    return -1;
}

/* ---- the newest of the modules in one place ---- */

static int ascending(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static uint64_t end_of(const struct fdri_file_definition *m)
{
    return m->bytes > UINT64_MAX - m->d.address ? UINT64_MAX : m->d.address + m->bytes;
}

static size_t edge_at(const uint64_t *edge, size_t edges, uint64_t address)
{
    return (size_t)((uint64_t *)bsearch(&address, edge, edges, sizeof *edge, ascending) - edge);
}

/* The first free stretch from `i` on. Shortens the path to it, as union-find does. */
static size_t free_from(size_t *next, size_t i)
{
    size_t end = i;
    while (next[end] != end) end = next[end];
    while (next[i] != end) {
        size_t after = next[i];
        next[i] = end;
        i = after;
    }
    return end;
}

bool *fdri_symbol_modules_taken(const struct fdr_file *f)
{
    const struct fdri_file_definitions *all = &f->definitions[FDRI_ARENA_DEF_MODULE];
    size_t edges = 2 * all->count, kept = 0;
    bool *taken = fdri_file_calloc(all->count, sizeof *taken);
    uint64_t *edge = fdri_file_calloc(edges, sizeof *edge);
    /* for the stretch after each edge: itself if free, else a later one to look at */
    size_t *next = fdri_file_calloc(edges, sizeof *next);
    if (!taken || !edge || !next) return free(taken), free(edge), free(next), NULL;
    for (size_t i = 0; i < all->count; i++) {
        edge[2 * i] = all->row[i].d.address;
        edge[2 * i + 1] = end_of(&all->row[i]);
    }
    if (edges) qsort(edge, edges, sizeof *edge, ascending);
    for (size_t i = 0; i < edges; i++)
        if (!kept || edge[kept - 1] != edge[i]) edge[kept++] = edge[i];
    for (size_t i = 0; i < kept; i++) next[i] = i;
    for (size_t m = all->count; m-- > 0;) { /* newest first: each takes the stretches that are still free */
        size_t i = edge_at(edge, kept, all->row[m].d.address), end = edge_at(edge, kept, end_of(&all->row[m]));
        while (i < end) {
            size_t first = free_from(next, i);
            taken[m] |= first != i;
            if (first < end) next[first] = first + 1;
            i = first + 1;
        }
    }
    free(edge);
    free(next);
    return taken;
}

/* ---- without a file ---- */

static void name_one(struct fdr_file *f, struct fdri_file_definition *region, const struct fdri_file_definition *module)
{
    const char *path = module ? module->d.name : "", *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t bytes = strlen(base) + 24;
    char *name = fdri_file_alloc(f, bytes);
    if (!name) return;
    if (*base) snprintf(name, bytes, "%s+0x%llx", base, (unsigned long long)(region->d.address - module->d.address));
    else snprintf(name, bytes, "0x%llx", (unsigned long long)region->d.address);
    region->d.name = name;
}

void fdri_symbol_symbols_fallback(struct fdr_file *f)
{
    struct fdri_file_definitions *regions = &f->definitions[FDRI_ARENA_DEF_REGION];
    const struct fdri_file_definition *module;
    for (size_t i = 0; i < regions->count; i++)
        if (fdri_symbol_wanted(f, &regions->row[i], &module)) name_one(f, &regions->row[i], module);
}
