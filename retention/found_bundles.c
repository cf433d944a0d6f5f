/* SPDX-License-Identifier: MIT */
/* Finds the crash bundles of a directory, by name and superblock. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "retention/retention.h"

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

uint64_t fdri_retention_identity(const struct fdri_arena_superblock *s)
{
    uint64_t hash = hash_bytes(0xcbf29ce484222325u, &s->pid, sizeof s->pid);
    hash = hash_bytes(hash, &s->process_start_time, sizeof s->process_start_time);
    hash = hash_bytes(hash, &s->created_realtime_ns, sizeof s->created_realtime_ns);
    return hash_bytes(hash, &s->cause_realtime_ns, sizeof s->cause_realtime_ns);
}

bool fdri_retention_read(int dir, const char *name, struct fdri_arena_superblock *s, struct fdri_retention_bundle *b,
                         int *fd)
{
    struct stat st;
    int file = fdri_fd_open(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    bool good = file >= 0 && fdri_system_fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
                fdri_system_pread(file, s, sizeof *s, 0) == sizeof *s && memcmp(s->magic, FDRI_ARENA_MAGIC, 8) == 0 &&
                s->format_version == FDRI_ARENA_FORMAT_VERSION;
    if (good) {
        *b = (struct fdri_retention_bundle){.device = st.st_dev,
                                            .inode = st.st_ino,
                                            .identity = fdri_retention_identity(s),
                                            .alike = s->alike,
                                            .alike_newest = s->alike_newest};
        snprintf(b->name, sizeof b->name, "%s", name);
    }
    if (file >= 0 && (!good || !fd)) fdri_system_close(file);
    else if (fd) *fd = file;
    return good;
}

/* NAME.HOST.PID[.rRANK].N.crash.fdr. A bundle that a user has renamed is his. */
static bool has_own_name(const char *name, const struct fdri_arena_superblock *s)
{
    char middle[sizeof s->host + 24];
    snprintf(middle, sizeof middle, ".%.*s.%u.", (int)sizeof s->host - 1, s->host, s->pid);
    const char *at = strstr(name, middle);
    if (!at) return false;
    at += strlen(middle);
    if (*at == 'r') at += 1 + strspn(at + 1, "0123456789");
    if (*at == '.') at++;
    size_t digits = strspn(at, "0123456789");
    return digits && strcmp(at + digits, ".crash.fdr") == 0;
}

static bool add(struct fdri_retention_list *list, const struct fdri_retention_bundle *b,
                const struct fdri_arena_superblock *s, uint64_t bytes)
{
    uint32_t n = list->count;
    if ((n & (n - 1)) == 0) { /* full at each power of two */
        size_t room = n ? 2 * (size_t)n : 1;
        struct fdri_retention_bundle *wider = realloc(list->bundle, room * sizeof *wider);
        if (wider) list->bundle = wider;
        struct fdri_policies_bundle *fates = realloc(list->fate, room * sizeof *fates);
        if (fates) list->fate = fates;
        if (!wider || !fates) return false;
    }
    list->bundle[n] = *b;
    uint64_t death = s->cause_realtime_ns, began = s->created_realtime_ns;
    list->fate[n] = (struct fdri_policies_bundle){
        .fingerprint = s->fingerprint, .death_ns = death, .run_ns = death > began ? death - began : 0, .bytes = bytes};
    list->count++;
    return true;
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

/* By time of death, then by identity: each process that looks sees the same order. */
static bool is_before(const struct fdri_retention_list *l, uint32_t a, uint32_t b)
{
    if (l->fate[a].death_ns != l->fate[b].death_ns) return l->fate[a].death_ns < l->fate[b].death_ns;
    return l->bundle[a].identity < l->bundle[b].identity;
}

static void swap(struct fdri_retention_list *l, uint32_t a, uint32_t b)
{
    struct fdri_retention_bundle one = l->bundle[a];
    struct fdri_policies_bundle other = l->fate[a];
    l->bundle[a] = l->bundle[b], l->fate[a] = l->fate[b];
    l->bundle[b] = one, l->fate[b] = other;
}

static void sink(struct fdri_retention_list *l, uint32_t i, uint32_t count)
{
    for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && is_before(l, child, child + 1)) child++;
        if (!is_before(l, i, child)) return;
        swap(l, i, child);
    }
}

static void sort(struct fdri_retention_list *l)
{
    for (uint32_t i = l->count / 2; i-- > 0;) sink(l, i, l->count);
    for (uint32_t n = l->count; n > 1; n--) {
        swap(l, 0, n - 1);
        sink(l, 0, n - 1);
    }
}

bool fdri_retention_find(int dir, uint32_t most, struct fdri_retention_list *list)
{
    struct fdri_arena_superblock s;
    struct fdri_retention_bundle b;
    struct stat st;
    bool good = true;
    *list = (struct fdri_retention_list){0};
    int own = fdri_fd_open(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *d = own >= 0 ? fdopendir(own) : NULL;
    if (!d && own >= 0) fdri_system_close(own);
    for (struct dirent *e; good && d && (e = readdir(d));) {
        if (!most--) {
            list->cut = true;
            break;
        }
        if (!ends_in(e->d_name, ".crash.fdr") || !fdri_retention_read(dir, e->d_name, &s, &b, NULL) ||
            s.state != FDRI_ARENA_STATE_CRASHED || !has_own_name(e->d_name, &s) ||
            fdri_system_lstat(dir, e->d_name, &st))
            continue;
        good = add(list, &b, &s, (uint64_t)st.st_blocks * 512);
    }
    if (d) closedir(d);
    sort(list);
    return good;
}

void fdri_retention_free(struct fdri_retention_list *list)
{
    free(list->bundle);
    free(list->fate);
    *list = (struct fdri_retention_list){0};
}
