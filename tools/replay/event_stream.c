/* SPDX-License-Identifier: MIT */
/* Reads a stream's file, plain or compressed, and passes it to the loader of its kind. */
#include "tools/replay/event_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

struct bytes {
    unsigned char *data;
    size_t size, capacity;
};

static bool reserve(struct bytes *b, size_t more)
{
    if (b->capacity - b->size >= more) return true;
    size_t capacity = b->capacity ? b->capacity * 2 : (size_t)1 << 20;
    while (capacity - b->size < more) capacity *= 2;
    unsigned char *data = realloc(b->data, capacity);
    if (!data) return false;
    b->data = data;
    b->capacity = capacity;
    return true;
}

static bool begins_with(const struct bytes *b, const char *magic, size_t count)
{
    return b->size >= count && memcmp(b->data, magic, count) == 0;
}

static bool is_recording(const struct bytes *b) { return begins_with(b, "FDRAREN1", 8); }
static bool is_evt(const struct bytes *b) { return begins_with(b, "FDREVT1\n", 8); }
static bool is_zstd(const struct bytes *b) { return begins_with(b, "\x28\xb5\x2f\xfd", 4); }

/* Reads a possible event stream; of any other file, which may be endless, only the beginning. 0 or errno. */
static int read_stream(const char *path, struct bytes *b)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;
    if (fd < 0) return errno;
    for (;;) {
        if (!reserve(b, 1 << 20)) error = ENOMEM;
        ssize_t n = error ? -1 : read(fd, b->data + b->size, b->capacity - b->size);
        if (n < 0 && !error && errno == EINTR) continue;
        if (n < 0 && !error) error = errno;
        if (n <= 0) break;
        b->size += (size_t)n;
        if (b->size >= 8 && !is_evt(b) && !is_zstd(b)) break;
    }
    close(fd);
    return error;
}

/* Decompresses until the bytes prove to be no event stream. NULL, or the reason why it ended early. */
static const char *decompress(const struct bytes *from, struct bytes *to)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    ZSTD_inBuffer in = {from->data, from->size, 0};
    size_t left = 1;
    const char *why = z ? NULL : "out of memory";
    while (!why && (in.pos < in.size || left != 0)) {
        if (!reserve(to, 1 << 20)) return ZSTD_freeDStream(z), "out of memory";
        ZSTD_outBuffer out = {to->data + to->size, to->capacity - to->size, 0};
        size_t before = in.pos;
        left = ZSTD_decompressStream(z, &out, &in);
        to->size += out.pos;
        if (to->size >= 8 && !is_evt(to)) break;
        if (ZSTD_isError(left)) why = ZSTD_getErrorName(left);
        else if (in.pos == before && out.pos == 0 && left != 0) why = "the compressed data ends early";
    }
    ZSTD_freeDStream(z);
    return why;
}

/* Replaces compressed bytes by their contents. */
static bool unpack(const char *path, struct bytes *b, int *status)
{
    struct bytes plain = {0};
    if (!is_zstd(b)) return true;
    const char *why = decompress(b, &plain);
    free(b->data);
    *b = plain;
    if (why) complain("%s: %s, after %zu bytes of events; going on with those", path, why, b->size);
    if (why) *status = worse(*status, DIFFERENT);
    return b->data != NULL;
}

void streams_load(struct streams *streams, const char *path, int *status)
{
    struct bytes b = {0};
    int error = read_stream(path, &b);
    if (error) {
        complain("%s: %s", path, strerror(error));
        *status = COULD_NOT;
    } else if (is_recording(&b)) {
        load_recording(streams, path, status);
    } else if (unpack(path, &b, status)) {
        struct stream *s = streams_add(streams);
        if (s && load_evt(s, path, b.data, b.size, status)) {
            s->storage = b.data;
            return;
        }
        if (s) stream_clear(&streams->list[--streams->count]);
        *status = COULD_NOT;
    }
    free(b.data);
}

struct stream *streams_add(struct streams *streams)
{
    struct stream *list = realloc(streams->list, (streams->count + 1) * sizeof *list);
    if (!list) return NULL;
    streams->list = list;
    memset(&list[streams->count], 0, sizeof *list);
    return &list[streams->count++];
}

void stream_clear(struct stream *s)
{
    void *owned[] = {s->dt,    s->value,   s->op,    s->field, s->region, s->metric, s->marker,
                     s->event, s->io_file, s->began, s->comm,  s->open,   s->storage};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    if (s->file) fdr_file_close(s->file);
    memset(s, 0, sizeof *s);
}

void streams_free(struct streams *streams)
{
    for (size_t i = 0; i < streams->count; i++) stream_clear(&streams->list[i]);
    free(streams->list);
    *streams = (struct streams){0};
}

static bool cut_suffix(char *name, const char *end)
{
    size_t a = strlen(name), b = strlen(end);
    if (a <= b || strcmp(name + a - b, end) != 0) return false;
    name[a - b] = '\0';
    return true;
}

/* True if a part is a letter and digits only, as in ".r0" and ".t12". */
static bool is_number_part(const char *part, char letter)
{
    return part[1] == letter && part[2] && part[2 + strspn(part + 2, "0123456789")] == '\0';
}

void stream_base_name(char name[32], const char *path)
{
    char text[256];
    const char *base = strrchr(path, '/');
    snprintf(text, sizeof text, "%s", base ? base + 1 : path);
    cut_suffix(text, ".zst");
    if (!cut_suffix(text, ".evt")) cut_suffix(text, ".fdr");
    char *dot = strrchr(text, '.');
    if (dot && is_number_part(dot, 't')) *dot = '\0';
    dot = strrchr(text, '.');
    if (dot && is_number_part(dot, 'r')) *dot = '\0';
    snprintf(name, 32, "%.31s", text);
}
