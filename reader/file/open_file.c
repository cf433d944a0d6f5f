/* SPDX-License-Identifier: MIT */
/* Opens a recording: from a path or memory to a file that answers queries. */
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/bundle/crash_bundle.h"
#include "reader/file/file.h"
#include "reader/symbol/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <fdr/reader.h>
#include <fdr/version.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void *fdri_file_alloc(struct fdr_file *f, size_t bytes)
{
    if (!fdri_file_grow(&f->kept_memory, f->kept_count, &f->kept_room, sizeof *f->kept_memory)) return NULL;
    void *p = fdri_file_calloc(1, bytes ? bytes : 1);
    if (p) f->kept_memory[f->kept_count++] = p;
    return p;
}

static void first_line(const struct fdr_file *f, char *message, size_t message_bytes)
{
    if (message_bytes) snprintf(message, message_bytes, "%s", f->damage_count ? f->damage[0] : "");
}

/* Reads everything that follows from the bytes. It takes f over and closes it after a failure. */
static enum fdr_verdict assemble(struct fdr_file *f, struct fdr_file **out, char *message, size_t message_bytes)
{
    f->sound = true;
    fdri_file_memory_begin(f);
    pthread_mutex_init(&f->lock, NULL);
    if (!fdri_file_superblock(f, message, message_bytes)) {
        fdr_file_close(f);
        return FDR_UNREADABLE;
    }
    fdri_file_sections(f);
    fdri_file_undo_fold(f);
    fdri_file_scan(f);
    fdri_file_definitions(f);
    fdri_file_locations(f);
    fdri_account_info(f);
    fdri_bundle_notes(f);
    fdri_bundle_read(f);
    fdri_bundle_bytes_behind(f);
    fdr_file_symbolise(f);
    if (fdri_file_memory_short(f)) {
        snprintf(message, message_bytes, "%s", FDRI_FILE_NO_MEMORY);
        fdr_file_close(f);
        return FDR_UNREADABLE;
    }
    first_line(f, message, message_bytes);
    *out = f;
    return f->sound ? FDR_WHOLE : FDR_DAMAGED;
}

enum fdr_verdict fdr_file_open_memory(const void *bytes, size_t count, struct fdr_file **out, char *message,
                                      size_t message_bytes)
{
    *out = NULL;
    struct fdr_file *f = fdri_file_calloc(1, sizeof *f);
    if (f && (uintptr_t)bytes % 64) { /* structures are read in place, so they must be aligned */
        f->owned = fdri_file_aligned(64, (count + 64) & ~(size_t)63);
        if (f->owned) memcpy(f->owned, bytes, count);
    }
    if (!f || ((uintptr_t)bytes % 64 && !f->owned)) {
        free(f);
        if (message_bytes) snprintf(message, message_bytes, "out of memory");
        return FDR_UNREADABLE;
    }
    f->bytes = f->owned ? f->owned : bytes;
    f->size = count;
    return assemble(f, out, message, message_bytes);
}

/* Copies a file that a process may still write to, so that the checked bytes are the used bytes. */
static bool copy_in(struct fdr_file *f, int fd)
{
    void *p = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    uint64_t done = 0;
    while (done < f->size) {
        size_t want = f->size - done < (64u << 20) ? (size_t)(f->size - done) : 64u << 20;
        ssize_t got = pread(fd, (char *)p + done, want, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            munmap(p, f->size);
            return false;
        }
        if (got == 0) break; /* the file was shortened meanwhile; the missing bytes stay 0 */
        done += (uint64_t)got;
    }
    f->owned = p;
    f->mapped = true;
    f->bytes = p;
    return true;
}

static bool map_in(struct fdr_file *f, int fd)
{
    void *p = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return false;
    f->owned = p;
    f->mapped = true;
    f->bytes = p;
    return true;
}

static bool still_written(int fd)
{
    struct fdri_arena_superblock sb;
    ssize_t got = pread(fd, &sb, sizeof sb, 0);
    return got == (ssize_t)sizeof sb && sb.state != FDRI_ARENA_STATE_FINALIZED && sb.snapshot_number == 0;
}

static bool bring_in(struct fdr_file *f, int fd, char *message, size_t message_bytes)
{
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < 8) {
        snprintf(message, message_bytes, "not an fdr recording");
        return false;
    }
    f->size = (uint64_t)st.st_size;
    if (still_written(fd) ? copy_in(f, fd) : map_in(f, fd)) return true;
    snprintf(message, message_bytes, "cannot read or map the file: %s", strerror(errno));
    return false;
}

enum fdr_verdict fdri_file_open_fd(int fd, bool headers_only, struct fdr_file **out, char *message,
                                   size_t message_bytes)
{
    struct fdr_file *f = fdri_file_calloc(1, sizeof *f);
    if (!f) snprintf(message, message_bytes, "out of memory");
    if (!f || !bring_in(f, fd, message, message_bytes)) {
        free(f);
        return FDR_UNREADABLE;
    }
    f->headers_only = headers_only;
    return assemble(f, out, message, message_bytes);
}

enum fdr_verdict fdr_file_open(const char *path, struct fdr_file **out, char *message, size_t message_bytes)
{
    char none[1];
    *out = NULL;
    if (!message || !message_bytes) message = none, message_bytes = sizeof none;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        snprintf(message, message_bytes, "cannot open: %s", strerror(errno));
        return FDR_UNREADABLE;
    }
    enum fdr_verdict verdict = fdri_file_open_fd(fd, false, out, message, message_bytes);
    close(fd);
    return verdict;
}

static void free_locations(struct fdr_file *f)
{
    for (size_t i = 0; i < f->location_count; i++) {
        struct fdri_file_location *l = &f->location[i];
        for (size_t j = 0; j < l->part_count; j++) free(l->part[j].bin);
        free(l->part);
        free(l->live);
        free(l->frozen);
        free(l->open);
        free(l->lost_open_until);
        free(l->unplaced);
    }
    free(f->location);
}

void fdr_file_close(struct fdr_file *f)
{
    if (!f) return;
    fdri_bundle_free(f);
    free(f->task);
    if (f->job) free(f->location); /* their arrays belong to the joined files */
    else free_locations(f);
    for (int i = 0; i < FDRI_FILE_KINDS; i++) free(f->definitions[i].row);
    for (size_t i = 0; i < f->unknown_slots; i++) free(f->unknown[i]);
    for (size_t i = 0; i < f->kept_count; i++) free(f->kept_memory[i]);
    for (size_t i = 0; i < f->damage_count; i++) free(f->damage[i]);
    free(f->note);
    free(f->unknown);
    free(f->kept_memory);
    free(f->damage);
    free(f->found);
    free(f->bad);
    free(f->by_identity);
    free(f->meta);
    free(f->defs);
    free(f->ledger);
    free(f->epoch);
    free(f->epoch_total);
    free(f->total);
    free(f->traffic);
    free(f->reduction);
    free(f->governor);
    free(f->section);
    free(f->tally);
    free(f->stream);
    fdri_symbol_places_close(f);
    pthread_mutex_destroy(&f->lock);
    if (f->mapped) munmap(f->owned, f->size);
    else free(f->owned);
    free(f);
}

const char *fdr_reader_version(void) { return FDR_VERSION_STRING; }
