/* SPDX-License-Identifier: MIT */
/* Loaded modules (executable and libraries): which address belongs to which, so that readers find symbols offline. Each
 * is a definition. This file also knows which are loaded, by asking the loader: a "look". */
#define _GNU_SOURCE
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/loader.h"
#include "format/arena/arena.h"
#include "recorder/life/settings.h"
#include "recorder/names/names.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_clock.h"

enum { MODULES_MAX = FDRI_NAMES_MODULES_MAX, RETURNS_MAX = 256 };

static struct {
    uint64_t from, to;         /* 0: not loaded */
    uint64_t was_from, was_to; /* its last place */
    uint32_t seen;             /* number of the newest look begun when the loader last listed it */
} modules[MODULES_MAX];
static uint32_t module_count, looks;
static uint32_t returns; /* how often a module came back to a place that another one had had */
/* Guards all of the above. Order: loader's lock or the lock of addresses, then this, then that of definitions. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void hex_build_id(const struct dl_phdr_info *info, char *text, size_t bytes)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_NOTE) continue;
        const char *p = (const char *)(info->dlpi_addr + ph->p_vaddr), *end = p + ph->p_memsz;
        while (p + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *n = (const void *)p;
            const uint8_t *id = (const uint8_t *)p + sizeof *n + ((n->n_namesz + 3u) & ~3u);
            if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4) {
                for (uint32_t k = 0; k < n->n_descsz && 2 * k + 2 < bytes; k++)
                    snprintf(text + 2 * k, 3, "%02x", id[k]);
                return;
            }
            p = (const char *)id + ((n->n_descsz + 3u) & ~3u);
        }
    }
}

/* Did another module than def lie in [from, to) before? */
static bool replaces_other_module(uint64_t from, uint64_t to, uint32_t def)
{
    for (uint32_t i = 0; i < module_count; i++)
        if (i + 1 != def && modules[i].was_to > from && modules[i].was_from < to) return true;
    return false;
}

/* Defines a module and returns its id. If several are loaded at one place in turn, each states since when it is there.
 * The first time its own definition does, later a further definition, which only symbolizing readers use. The number of
 * these is bounded, for programs that do little else. */
static uint32_t define_module(const char *name, const char *id, uint64_t bias, uint64_t from, uint64_t to)
{
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    uint32_t before = fdri_atomic_load_relaxed(&fdri_life_recording.running) ? s->def_count[FDRI_ARENA_DEF_MODULE] : 0;
    uint64_t tick = replaces_other_module(from, to, UINT32_MAX) ? fdri_thread_tick_now() : 0,
             bytes = tick ? sizeof tick : 0;
    uint32_t def = fdri_names_define(FDRI_ARENA_DEF_MODULE, name, id, 0, bias, to - from, &tick, (uint32_t)bytes);
    if (!def || def > before || def > MODULES_MAX || modules[def - 1].to || !replaces_other_module(from, to, def))
        return def;
    if (returns >= RETURNS_MAX || returns >= s->arena_bytes >> 12) return def;
    tick = fdri_thread_tick_now();
    fdri_names_define(FDRI_ARENA_DEF_MODULE, name, id, ++returns, bias, to - from, &tick, sizeof tick);
    return def;
}

/* Path and build id of the executable into the superblock, once. Under the lock. */
static void note_executable(const char *path, const char *id)
{
    struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    if (s->exe[0]) return;
    for (uint32_t k = 0; id[2 * k] && k < sizeof s->build_id; k++) {
        unsigned byte;
        sscanf(id + 2 * k, "%2x", &byte);
        s->build_id[k] = (uint8_t)byte;
        s->build_id_bytes = k + 1;
    }
    snprintf(s->exe, sizeof s->exe, "%s", path);
}

static int add_module(struct dl_phdr_info *info, size_t size, void *first)
{
    (void)size;
    char id[80] = "", path[512], real[PATH_MAX];
    uint64_t from = UINT64_MAX, to = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD) continue;
        from = fdri_bits_min(from, info->dlpi_addr + ph->p_vaddr);
        to = fdri_bits_max(to, info->dlpi_addr + ph->p_vaddr + ph->p_memsz);
    }
    if (from >= to) return 0;
    hex_build_id(info, id, sizeof id);
    const char *name = info->dlpi_name;
    bool executable = *(bool *)first; /* the loader lists it first, without a name */
    if (executable) {
        fdri_life_program_path(path, sizeof path);
        name = path;
        *(bool *)first = false;
    }
    /* opened by a relative name: a reader may run in another directory */
    if (*name != '/' && strchr(name, '/') && realpath(name, real)) name = real;
    pthread_mutex_lock(&lock);
    if (executable) note_executable(path, id);
    uint32_t def = define_module(name, id, info->dlpi_addr, from, to);
    if (def && def - 1 < MODULES_MAX) {
        modules[def - 1].from = modules[def - 1].was_from = from;
        modules[def - 1].to = modules[def - 1].was_to = to;
        modules[def - 1].seen = looks;
        if (def > module_count) module_count = def;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Keeps the last places, as definitions state displacements; the present places come from the next look. */
void fdri_names_modules_reset(void)
{
    pthread_mutex_lock(&lock);
    module_count = returns = 0;
    for (uint32_t i = 0; i < MODULES_MAX; i++) modules[i].from = modules[i].to = 0;
    pthread_mutex_unlock(&lock);
}

void fdri_names_define_modules(void)
{
    bool first = true;
    fdri_system_each_module(add_module, &first);
}

uint32_t fdri_names_modules_look(void)
{
    pthread_mutex_lock(&lock);
    uint32_t look = ++looks;
    pthread_mutex_unlock(&lock);
    fdri_names_define_modules();
    return look;
}

/* A module listed by a later look is loaded, too. */
void fdri_names_modules_forget(uint32_t look, void (*forget)(uint64_t from, uint64_t to))
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < module_count; i++) {
        if ((int32_t)(modules[i].seen - look) >= 0 || !modules[i].to) continue;
        forget(modules[i].from, modules[i].to);
        modules[i].from = modules[i].to = 0;
    }
    pthread_mutex_unlock(&lock);
}

static uint32_t find_module(uint64_t address)
{
    uint32_t found = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < module_count && !found; i++)
        if (address >= modules[i].from && address < modules[i].to) found = i + 1;
    pthread_mutex_unlock(&lock);
    return found;
}

uint32_t fdri_names_module_of(uint64_t address)
{
    uint32_t found = find_module(address);
    if (found) return found;
    fdri_names_define_modules(); /* loaded since the last look */
    return find_module(address);
}

bool fdri_names_module_loaded(uint32_t module)
{
    pthread_mutex_lock(&lock);
    bool loaded = module && module <= module_count && modules[module - 1].to;
    pthread_mutex_unlock(&lock);
    return loaded;
}

void fdri_names_modules_fork(int phase)
{
    if (phase == 3) pthread_mutex_init(&lock, NULL);
    else if (phase == 0) pthread_mutex_lock(&lock);
    else pthread_mutex_unlock(&lock);
}
