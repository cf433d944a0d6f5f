/* SPDX-License-Identifier: MIT */
/* Which deaths are alike: a hash of the cause, of the place and of the build. The place of a fault in the executable is
 * the instruction. The fingerprint of a fault in a library is made of addresses, each relative to its own code. They
 * are the instruction, and the first return address on the stack in other code (the caller of the C library's abort).
 * Then follow the first two in the executable. A request to end has no place. Fatal path: see crash_path.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "export/crash/bundle_room.h"
#include "export/crash/crash_path.h"
#include "export/snapshot/snapshot.h"

enum { CALLERS = 2 }; /* addresses in the executable */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static bool in_program(uint64_t address)
{
    return address >= fdri_crash_room.program_from && address < fdri_crash_room.program_to;
}

/* Equal in every run, wherever the code was loaded. */
static uint64_t relative(uint64_t address)
{
    if (in_program(address)) return address - fdri_crash_room.program_from;
    const struct fdri_crash_map *m = fdri_crash_words_map(&fdri_crash_maps, address);
    return m ? address - m->from : 0;
}

/* Only words behind a call instruction count: others are data. A return address may be left over from an earlier call.
 * So one of the executable does not suffice to tell two callers of abort apart. */
static uint64_t hash_of_place(void)
{
    uint64_t pc, hash = 1;
    const uint64_t *word;
    const uint32_t *place;
    uint32_t n = fdri_crash_threads_place(&pc, &word, &place), callers = 0;
    const struct fdri_crash_map *here = fdri_crash_words_map(&fdri_crash_maps, pc), *m = NULL;
    hash = mix(hash, relative(pc));
    if (in_program(pc)) return hash;
    for (uint32_t i = 0; i < n && callers < CALLERS; i++) {
        const struct fdri_crash_map *there = fdri_crash_words_map(&fdri_crash_maps, word[i]);
        bool in = in_program(word[i]);
        if (!(place[i] & 1) || !there || !there->code || (there == here && !in)) continue;
        if (in || !m) hash = mix(hash, relative(word[i]));
        callers += in;
        m = there;
    }
    return hash;
}

void fdri_crash_fingerprint(void)
{
    const struct fdri_arena_crash_cause *c = &fdri_crash_death.cause[0];
    struct fdri_arena_superblock *s = (void *)fdri_snapshot_view.base;
    if (s->state != FDRI_ARENA_STATE_CRASHED) return; /* nothing can be stored there */
    uint64_t hash = mix(mix(fdri_crash_room.build, (uint64_t)(uint32_t)c->signal), (uint64_t)(uint32_t)c->code);
    if (fdri_crash_death.signal->fault) hash = mix(hash, hash_of_place());
    s->fingerprint = hash ? hash : 1;
}

static bool is_known(uint64_t fingerprint)
{
    uint32_t n = fdri_atomic_load_relaxed(&fdri_crash_room.known_count);
    for (uint32_t i = 0; i < n && i < FDRI_RETENTION_KNOWN; i++)
        if (fdri_atomic_load_relaxed(&fdri_crash_room.known[i]) == fingerprint) return true;
    return false;
}

static bool beyond; /* this process made the file that says so */

bool fdri_crash_fingerprint_may_copy(int dir)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    if (fdri_atomic_load_relaxed(&fdri_crash_room.promised)) return true;
    if (is_known(s->fingerprint)) return false;
    int fd = fdri_fd_open_in_crash(dir, FDRI_RETENTION_BEYOND, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd >= 0) fdri_system_close(fd);
    beyond = fd >= 0;
    return fd != -EEXIST; /* a directory that cannot be written to does not keep the first bundle away */
}

void fdri_crash_fingerprint_not_copied(int dir)
{
    if (beyond) fdri_system_unlinkat(dir, FDRI_RETENTION_BEYOND);
    beyond = false;
}
