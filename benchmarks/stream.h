/* SPDX-License-Identifier: MIT */
/* Reads event streams (magic FDREVT1, uncompressed) for benchmarks and tests, one event after the other, as `fdr
 * replay` reads them. */
#ifndef FDR_BENCH_STREAM_H
#define FDR_BENCH_STREAM_H
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum stream_kind {
    STREAM_TICK,
    STREAM_ENTER,
    STREAM_LEAVE,
    STREAM_SEND,
    STREAM_RECV,
    STREAM_ISEND,
    STREAM_ISEND_DONE, /* this and the next: bookkeeping of requests, no event */
    STREAM_IRECV_REQ,
    STREAM_IRECV,
    STREAM_COLL_BEGIN,
    STREAM_COLL_END
};
struct stream_head {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t records;
    uint32_t regions, params, comms, string_bytes, rank, ranks, thread, prefix;
    uint64_t t0_ns, run_events, window_first;
    uint32_t repaired, reserved;
    uint64_t at_regions, at_strings, at_comms, at_params, at_steps, at_words;
};
struct stream_param {
    int32_t peer, tag;
    uint32_t comm, request;
    uint64_t bytes, bytes2;
};
struct stream_region {
    uint32_t name, file, line, reserved; /* name, file: offsets in the strings */
};
struct stream {
    const struct stream_head *head;
    const struct stream_region *region;
    const char *strings;
    const struct stream_param *param;
    const uint32_t *step, *word;
    size_t size;
};

static inline bool stream_fits(const struct stream *s, uint64_t at, uint64_t count, uint64_t bytes)
{
    return at % 4 == 0 && at <= s->size && count <= (s->size - at) / bytes;
}

/* Opens a stream of `size` bytes in memory, which the caller keeps. */
static inline bool stream_take(struct stream *s, const void *bytes, size_t size)
{
    if (size < sizeof *s->head) return false;
    *s = (struct stream){.head = bytes, .size = size};
    const struct stream_head *h = s->head;
    if (memcmp(h->magic, "FDREVT1\n", 8) != 0 || h->version != 1 || !stream_fits(s, h->at_steps, h->records, 4) ||
        !stream_fits(s, h->at_words, h->records, 4) || !stream_fits(s, h->at_params, h->params, sizeof *s->param) ||
        !stream_fits(s, h->at_regions, h->regions, sizeof *s->region) ||
        !stream_fits(s, h->at_strings, h->string_bytes, 1))
        return false;
    const char *base = bytes;
    s->region = (const void *)(base + h->at_regions);
    s->strings = base + h->at_strings;
    s->param = (const void *)(base + h->at_params);
    s->step = (const void *)(base + h->at_steps);
    s->word = (const void *)(base + h->at_words);
    return true;
}

static inline bool stream_open(struct stream *s, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *map = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof *s->head)
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (fd >= 0) close(fd);
    if (map == MAP_FAILED) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    if (stream_take(s, map, (size_t)st.st_size)) return true;
    fprintf(stderr, "%s: not a whole event stream\n", path);
    munmap(map, (size_t)st.st_size);
    return false;
}
static inline void stream_close(struct stream *s) { munmap((void *)(uintptr_t)s->head, s->size); }

struct stream_event {
    enum stream_kind kind;
    uint32_t value; /* region; operation */
    uint64_t time;
    const struct stream_param *param; /* of messages and ends of collectives */
};

/* Decodes record i and advances `time`. False: the record is no event; e->time and e->kind are set all the same. */
static inline bool stream_event(const struct stream *s, uint64_t i, uint64_t *time, struct stream_event *e)
{
    static const struct stream_param none;
    *time += s->step[i];
    e->kind = (enum stream_kind)(s->word[i] >> 24);
    e->value = s->word[i] & 0xffffffu;
    e->time = *time;
    e->param = e->value < s->head->params ? &s->param[e->value] : &none;
    return e->kind != STREAM_TICK && e->kind != STREAM_ISEND_DONE && e->kind != STREAM_IRECV_REQ &&
           e->kind <= STREAM_COLL_END;
}
#endif
