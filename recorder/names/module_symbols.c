/* SPDX-License-Identifier: MIT */
/* Names of functions for rules, triggers and messages: from the symbol tables of the modules' files. They lie in memory
 * of their own, at most 64 MiB. They stay as long as the process, for a module that is loaded again. Of mangled names
 * those are demangled that a pattern may match.
 *
 * Small files are read when the recording begins, the others by the dumper thread when a function of the module was
 * called. Only one thread reads at a time: the dumper starts after the begin, and ends before the next one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/elf/elf_file.h"
#include "base/elf/elf_symbols.h"
#include "base/elf/shown_name.h"
#include "base/system/loader.h"
#include "base/text/glob.h"
#include "base/text/message.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/names/module_symbols.h"
#include "recorder/names/region_rules.h"
#include "recorder/names/names.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"

/* Reading takes some 2 ns for each byte of a table, a search in its names as long. Demangling takes up to 3 us for each
 * name. So the begin of a recording takes up to 20 ms longer. */
enum { MEMORY_MOST = 64 << 20, START_BYTES = 4 << 20, START_MANGLED = 3000, LARGE_BYTES = 16 << 20 };

enum state { UNREAD, ASKED, READ, IN_VAIN };

/* The symbols of a file; the list only grows. */
struct table {
    struct table *next;
    struct fdri_elf_symbols symbols;
    uint32_t patterns; /* the number of `patterns` when its names were demangled */
    bool stripped;     /* only the exported symbols are there */
    char key[160];     /* build id; without one: the path, of the executable */
};
static struct table *tables;
static struct fdri_elf_space space;

static struct module {
    uint32_t state;      /* atomic, enum state */
    struct table *table; /* READ */
    uint64_t bias;
    uint32_t patterns;        /* the number of `patterns` when functions were matched */
    uint32_t nameless;        /* atomic: a function was called whose name a full table would have */
    enum fdri_elf_result why; /* there is no full table */
    bool said;
} modules[FDRI_NAMES_MODULES_MAX];
static uint32_t asked;    /* atomic: there may be work for the dumper thread */
static uint32_t missing;  /* atomic */
static uint32_t in_use;   /* atomic: a function was called whose names were looked for */
static uint32_t patterns; /* atomic: rises with each trigger on regions */
static uint32_t watched;  /* atomic: there is such a trigger */

bool fdri_names_symbols_wanted(void) { return fdri_names_rules_named() || fdri_atomic_load_relaxed(&watched); }
uint32_t fdri_names_symbols_missing(void) { return fdri_atomic_load_relaxed(&missing); }

static uint32_t state_of(uint32_t module)
{
    return module - 1 < FDRI_NAMES_MODULES_MAX ? fdri_atomic_load_acquire(&modules[module - 1].state) /* A:symbols */
                                               : IN_VAIN;
}

static void wake(void)
{
    fdri_atomic_store_relaxed(&asked, 1u);
    fdri_trigger_dumper_wake();
}

bool fdri_names_symbols_ready(uint32_t module)
{
    uint32_t state = state_of(module), unread = UNREAD;
    if (state == UNREAD && fdri_atomic_cas_acq_rel_u32(&modules[module - 1].state, &unread, ASKED)) /* L:symbols */
        wake();
    return state == READ;
}

void fdri_names_symbols_watched(bool regions)
{
    fdri_atomic_store_relaxed(&watched, (uint32_t)regions);
    if (!regions) fdri_names_worth_reset();
}

void fdri_names_symbols_watch(const char *pattern)
{
    fdri_names_worth_add(pattern);
    fdri_atomic_add_relaxed(&patterns, 1u);
    wake();
}

static void add_name(struct fdri_names_called *called, uint32_t place)
{
    const char *name = space.base + place;
    if (called->count == FDRI_NAMES_CALLED_MOST) return;
    for (uint32_t i = 0; i < called->count; i++)
        if (called->name[i] == name) return;
    called->name[called->count++] = name;
}

static void names_of(const struct module *m, uint64_t address, struct fdri_names_called *called)
{
    const struct fdri_elf_symbols *s = &m->table->symbols;
    const struct fdri_elf_symbol *first = fdri_elf_symbols_find(s, address - m->bias);
    if (!first) return;
    called->count = 0;
    for (const struct fdri_elf_symbol *r = first; r < s->row + s->count && r->begin == first->begin; r++) {
        add_name(called, r->name);
        add_name(called, fdri_atomic_load_acquire(&r->shown)); /* A:shown */
        add_name(called, fdri_atomic_load_acquire(&r->brief)); /* A:shown */
    }
}

static void note_nameless(uint32_t module, uint32_t state)
{
    if (!module || module > FDRI_NAMES_MODULES_MAX || (state == READ && !modules[module - 1].table->stripped) ||
        fdri_atomic_swap_relaxed(&modules[module - 1].nameless, 1u))
        return;
    wake();
}

void fdri_names_symbols_of(uint32_t module, uint64_t address, struct fdri_names_called *called)
{
    uint32_t state = state_of(module);
    if (!fdri_atomic_load_relaxed(&in_use) && !fdri_atomic_swap_relaxed(&in_use, 1u)) wake();
    if (state == UNREAD || state == ASKED) return;
    if (state == READ) names_of(&modules[module - 1], address, called);
    if (!called->count) *called = (struct fdri_names_called){.count = 1, .name = {""}};
    if (!*called->name[0]) note_nameless(module, state);
}

/* ---- reading ---- */

/* Limits for the begin of a recording; the dumper thread has none. */
struct allowance {
    uint64_t bytes;
    size_t mangled; /* names to demangle, for each module */
    bool start;
};

typedef char *demangler(const char *, char *, size_t *, int *);

/* A function of the executable, by its symbol; 0: none. */
static uint64_t find_symbol(const struct fdri_elf_symbols *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(space.base + s->row[i].name, name)) return s->row[i].begin;
    return 0;
}

/* A C++ library that is loaded; NULL: none. If the program loaded it by dlopen, it may be visible to its own code only.
 * It stays loaded. */
static void *find_cxx_library(void)
{
    for (uint32_t i = 1; i <= FDRI_NAMES_MODULES_MAX; i++) {
        const struct fdri_arena_def *d = fdri_names_module_loaded(i) ? fdri_names_definition(FDRI_ARENA_DEF_MODULE, i)
                                                                     : NULL;
        const char *path = d ? (const char *)(d + 1) : "", *slash = strrchr(path, '/');
        if (slash && (!strncmp(slash, "/libstdc++.so.", 14) || !strncmp(slash, "/libc++abi.so.", 14)))
            return dlopen(path, RTLD_LAZY | RTLD_NOLOAD); /* by the name that the loader knows: it opens no file */
    }
    return NULL;
}

/* The demangler of the C++ library, in any form that the program has. own: the executable's symbols, with its bias. */
static demangler *find_demangler(const struct fdri_elf_symbols *own, uint64_t bias)
{
    static const char name[] = "__cxa_demangle";
    static demangler *found;
    if (!found) *(void **)(void *)&found = dlsym(RTLD_DEFAULT, name);
    void *library = found ? NULL : find_cxx_library();
    if (library) *(void **)(void *)&found = dlsym(library, name);
    uint64_t linked = !found && own ? find_symbol(own, name) : 0;
    if (linked) found = (demangler *)(uintptr_t)(linked + bias);
    return found;
}

static bool is_executable(const struct fdri_arena_def *d)
{
    return !strcmp((const char *)(d + 1), fdri_life_recording.arena.super->exe);
}

static const char *build_id_of(const struct fdri_arena_def *d) { return (const char *)(d + 1) + d->name_bytes + 1; }

static struct table *known(const char *key)
{
    struct table *t = tables;
    while (t && strcmp(t->key, key) != 0) t = t->next;
    return t;
}

static bool stops(void) { return fdri_trigger_dumper_stops(); }

/* Demangles the names that patterns may match. False: more than `most`, or the recording ends. */
static bool show(struct table *t, const struct fdri_arena_def *d, size_t most, bool (*stop)(void))
{
    struct fdri_elf_showing how = {.demangle = find_demangler(is_executable(d) ? &t->symbols : NULL, d->value),
                                   .worth = fdri_names_worth,
                                   .stop = stop,
                                   .most = most};
    uint32_t now = fdri_atomic_load_relaxed(&patterns);
    fdri_names_worth_collect();
    bool shown = fdri_elf_symbols_show(&t->symbols, &space, &how);
    if (shown) t->patterns = now;
    if (shown && how.count && !how.demangle)
        fdri_text_message("%.300s: no C++ library is loaded that demangles; patterns match its C++ functions by their "
                          "symbols only",
                          (const char *)(d + 1));
    return shown;
}

/* Reads the symbols of an open file. NULL: no. *why: the reason, FDRI_ELF_READ if the allowance is used up. */
static struct table *read_table(const struct fdri_elf_file *f, const struct fdri_arena_def *d, const char *key,
                                struct allowance *left, enum fdri_elf_result *why)
{
    struct table *t = space.base || fdri_elf_space_make(&space, MEMORY_MOST) ? calloc(1, sizeof *t) : NULL;
    size_t before = space.used;
    *why = t ? fdri_elf_symbols_read(f, &space, &t->symbols) : FDRI_ELF_TOO_LARGE;
    if (*why) return free(t), NULL;
    bool all = show(t, d, left->mangled, left->start ? NULL : stops);
    if (!all && (left->start || stops())) {
        fdri_elf_space_cut(&space, before);
        return free(t), NULL;
    }
    t->stripped = f->dynamic;
    snprintf(t->key, sizeof t->key, "%s", key);
    t->next = tables;
    tables = t;
    return t;
}

static struct table *table_of(const struct fdri_arena_def *d, struct allowance *left, enum fdri_elf_result *why)
{
    const char *path = (const char *)(d + 1), *build_id = build_id_of(d), *key = *build_id ? build_id : path;
    struct fdri_elf_file f;
    struct table *t = known(key);
    *why = (enum fdri_elf_result) - 1;
    if (t) return t;
    /* without a build id only /proc/self/exe is surely the file that was loaded */
    bool open = is_executable(d) && fdri_elf_open(&f, "/proc/self/exe", build_id);
    if (!open && *build_id) open = fdri_elf_open(&f, path, build_id);
    if (!open) return NULL;
    uint64_t bytes = f.symbols.bytes + f.text.bytes;
    bool may = left->start ? !f.dynamic && bytes <= left->bytes : true;
    if (!left->start && bytes > LARGE_BYTES)
        fdri_text_message("%.300s: reading %llu MiB of symbols; until then calls of its functions are recorded, and "
                          "fire no trigger",
                          path, (unsigned long long)(bytes >> 20));
    if (may && left->start) left->bytes -= bytes;
    *why = FDRI_ELF_READ;
    if (may) t = read_table(&f, d, key, left, why);
    fdri_elf_close(&f);
    return t;
}

/* From here on functions of the module get their names at once. */
static void publish(uint32_t module, const struct fdri_arena_def *d, struct table *t)
{
    sigset_t old;
    struct module *m = &modules[module - 1];
    m->table = t;
    m->bias = d->value;
    m->patterns = t ? t->patterns : 0;
    fdri_names_address_hold(&old);
    fdri_atomic_store_release(&m->state, (uint32_t)(t ? READ : IN_VAIN)); /* R:symbols */
    fdri_names_address_release(&old);
}

/* Shows functions that were called before to rules and triggers. */
static void apply(uint32_t module, const char *path)
{
    uint32_t ruled = fdri_names_define_late(module);
    if (ruled)
        fdri_text_message("%.300s: its symbols are read; functions recorded until now that have a rule from now on: %u",
                          path, ruled);
}

static void read_module(uint32_t module, const struct fdri_arena_def *d)
{
    struct allowance any = {UINT64_MAX, SIZE_MAX, false};
    enum fdri_elf_result why;
    const char *path = (const char *)(d + 1);
    struct table *t = table_of(d, &any, &why);
    if (!t && stops()) {
        fdri_atomic_add_relaxed(&missing, 1u);
        return;
    }
    modules[module - 1].why = t ? FDRI_ELF_NO_SYMBOLS : why;
    publish(module, d, t);
    apply(module, path);
}

/* Patterns came after the names were demangled. The lock lets definitions under way end, as these used the old
 * names. */
static void show_more(uint32_t module, const struct fdri_arena_def *d)
{
    sigset_t old;
    struct module *m = &modules[module - 1];
    if (m->table->patterns == fdri_atomic_load_relaxed(&patterns) || show(m->table, d, SIZE_MAX, stops))
        m->patterns = m->table->patterns;
    fdri_names_address_hold(&old);
    fdri_names_address_release(&old);
    apply(module, (const char *)(d + 1));
}

static void say_nameless(uint32_t module, const struct fdri_arena_def *d)
{
    struct module *m = &modules[module - 1];
    m->said = true;
    fdri_atomic_add_relaxed(&missing, 1u);
    fdri_text_message("%.300s: %s; rules and triggers see only the names that it exports", (const char *)(d + 1),
                      m->why == FDRI_ELF_TOO_LARGE ? "the symbols of all files take more than 64 MiB"
                      : m->why == FDRI_ELF_NO_SYMBOLS
                          ? "it is stripped, and no debug file with its build id is in place"
                          : "no file with the build id of the loaded code is readable");
}

/* For the dumper thread. The program's allocator may be instrumented: its calls are not recorded. */
static void work_on(uint32_t module, void (*work)(uint32_t, const struct fdri_arena_def *))
{
    const struct fdri_arena_def *d = fdri_names_definition(FDRI_ARENA_DEF_MODULE, module);
    fdri_thread_inside++;
    if (d) work(module, d);
    fdri_thread_inside--;
}

void fdri_names_symbols_begin(void)
{
    struct allowance left = {START_BYTES, START_MANGLED, true};
    enum fdri_elf_result why;
    for (uint32_t i = 0; i < FDRI_NAMES_MODULES_MAX; i++) modules[i] = (struct module){.state = UNREAD};
    fdri_atomic_store_relaxed(&asked, 0u);
    fdri_atomic_store_relaxed(&missing, 0u);
    fdri_atomic_store_relaxed(&in_use, 0u);
    if (!fdri_names_symbols_wanted()) return;
    left.bytes /= 1 + fdri_names_worth_collect() / 4; /* each name is searched for each of these */
    for (uint32_t i = 1; i <= FDRI_NAMES_MODULES_MAX; i++) {
        const struct fdri_arena_def *d = fdri_names_module_loaded(i) ? fdri_names_definition(FDRI_ARENA_DEF_MODULE, i)
                                                                     : NULL;
        struct table *t = d ? table_of(d, &left, &why) : NULL;
        if (t) publish(i, d, t);
    }
}

uint64_t fdri_names_symbols_poll(uint64_t now)
{
    if (!fdri_atomic_swap_relaxed(&asked, 0u)) return UINT64_MAX;
    uint32_t newest = fdri_atomic_load_relaxed(&patterns);
    for (uint32_t i = 1; i <= FDRI_NAMES_MODULES_MAX && !stops(); i++) {
        if (state_of(i) == ASKED) work_on(i, read_module);
        bool nameless = fdri_names_symbols_wanted() && fdri_atomic_load_relaxed(&modules[i - 1].nameless);
        if (nameless && !modules[i - 1].said) work_on(i, say_nameless);
        if (state_of(i) == READ && modules[i - 1].patterns != newest) work_on(i, show_more);
    }
    return now;
}

void fdri_names_symbols_name(uint32_t module, uint64_t address, char *name, size_t bytes)
{
    name[0] = 0;
    if (state_of(module) == UNREAD || state_of(module) == ASKED) work_on(module, read_module);
    if (state_of(module) != READ) return;
    const struct module *m = &modules[module - 1];
    const struct fdri_elf_symbols *s = &m->table->symbols;
    const struct fdri_elf_symbol *first = fdri_elf_symbols_find(s, address - m->bias), *best = first;
    for (const struct fdri_elf_symbol *r = first; r && r < s->row + s->count && r->begin == first->begin; r++)
        if (r->rank < best->rank) best = r;
    fdri_thread_inside++;
    char *shown = best ? fdri_elf_shown_name(space.base + best->name, find_demangler(NULL, 0)) : NULL;
    fdri_thread_inside--;
    snprintf(name, bytes, "%s", shown ? shown : "");
    free(shown);
}

static bool any_matches(const struct fdri_elf_symbols *s, const char *pattern)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct fdri_elf_symbol *r = &s->row[i];
        if (fdri_text_glob(pattern, space.base + r->name)) return true;
        if (r->shown != r->name &&
            (fdri_text_glob(pattern, space.base + r->shown) || fdri_text_glob(pattern, space.base + r->brief)))
            return true;
    }
    return false;
}

enum fdri_names_match fdri_names_symbols_match(const char *pattern)
{
    if (!fdri_atomic_load_relaxed(&in_use) || fdri_atomic_load_relaxed(&asked)) return FDRI_NAMES_MATCH_UNKNOWN;
    for (uint32_t i = 1; i <= FDRI_NAMES_MODULES_MAX; i++)
        if (state_of(i) == READ && any_matches(&modules[i - 1].table->symbols, pattern)) return FDRI_NAMES_MATCH_SOME;
    return FDRI_NAMES_MATCH_NONE;
}
