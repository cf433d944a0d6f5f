/* SPDX-License-Identifier: MIT */
/* A profile of pprof: for each call path its calls and own time, and the samples taken there. The file is gzip, in
 * stored blocks: pprof expects that, and profiles are small. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert_text.h"
#include "convert/exporters.h"
#include "convert/interned.h"
#include "convert/paths.h"
#include "convert/protobuf.h"

enum profile {
    SAMPLE_TYPE = 1,
    SAMPLE = 2,
    LOCATION = 4,
    FUNCTION = 5,
    TEXT = 6,
    TIME = 9,
    DURATION = 10,
    PERIOD_TYPE = 11,
    PERIOD = 12,
    COMMENT = 13,
    DEFAULT_TYPE = 14
};

struct pprof {
    struct fdri_convert_message profile, part, inner;
    struct fdri_convert_interned texts; /* 0 is "" */
    bool no_memory;
};

static uint64_t text(struct pprof *p, const char *string)
{
    bool is_new;
    uint32_t number = fdri_convert_intern(&p->texts, string, strlen(string), &is_new);
    p->no_memory |= number == FDRI_CONVERT_NO_NUMBER;
    return number;
}

static void add(struct pprof *p, enum profile field)
{
    fdri_convert_message_message(&p->profile, field, &p->part);
    p->part.used = p->inner.used = 0;
}

static void value_type(struct pprof *p, enum profile field, const char *type, const char *unit)
{
    fdri_convert_message_u64(&p->part, 1, text(p, type));
    fdri_convert_message_u64(&p->part, 2, text(p, unit));
    add(p, field);
}

/* A function, and the only location in it. */
static void frame(struct pprof *p, uint32_t number, const struct fdri_convert_frame *f)
{
    uint64_t name = text(p, f->name[0] ? f->name : "[no name]");
    fdri_convert_message_u64(&p->part, 1, number + 1);
    fdri_convert_message_u64(&p->part, 2, name);
    fdri_convert_message_u64(&p->part, 3, name);
    fdri_convert_message_u64(&p->part, 4, text(p, f->file));
    fdri_convert_message_u64(&p->part, 5, f->line);
    add(p, FUNCTION);
    fdri_convert_message_u64(&p->inner, 1, number + 1);
    fdri_convert_message_u64(&p->inner, 2, f->line);
    fdri_convert_message_u64(&p->part, 1, number + 1);
    fdri_convert_message_message(&p->part, 4, &p->inner);
    add(p, LOCATION);
}

static void sample(struct pprof *p, const struct fdri_convert_paths *paths, uint32_t leaf)
{
    const struct fdri_convert_path *path = &paths->path[leaf];
    const uint64_t value[] = {path->calls, path->exclusive_ns, path->samples, path->sampled};
    if (!path->calls && !path->samples) return;
    for (uint32_t id = leaf; id != 0; id = paths->path[id].parent)
        fdri_convert_message_varint(&p->inner, (uint64_t)paths->path[id].frame + 1);
    fdri_convert_message_message(&p->part, 1, &p->inner);
    p->inner.used = 0;
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) fdri_convert_message_varint(&p->inner, value[i]);
    fdri_convert_message_message(&p->part, 2, &p->inner);
    add(p, SAMPLE);
}

static bool counts_events(struct fdr_file *const *files, size_t count)
{
    const struct fdr_sample_stream *s;
    return count && fdr_sample_streams(files[0], &s) && s[0].by == 2;
}

static void texts(struct pprof *p)
{
    for (uint32_t i = 0; i < p->texts.count; i++)
        fdri_convert_message_text(&p->profile, TEXT, fdri_convert_interned_key(&p->texts, i));
}

static void make(struct pprof *p, const struct fdri_convert_paths *paths, struct fdr_file *const *files, size_t count)
{
    text(p, "");
    value_type(p, SAMPLE_TYPE, "calls", "count");
    value_type(p, SAMPLE_TYPE, "time", "nanoseconds");
    value_type(p, SAMPLE_TYPE, "samples", "count");
    value_type(p, SAMPLE_TYPE, "sampled", counts_events(files, count) ? "count" : "nanoseconds");
    for (uint32_t i = 0; i < paths->frames; i++) frame(p, i, &paths->frame[i]);
    for (uint32_t i = 1; i < paths->paths; i++) sample(p, paths, i);
    if (count) {
        const struct fdr_file_info *info = fdr_file_info(files[0]);
        fdri_convert_message_u64(&p->profile, TIME, info->first_ns + (uint64_t)info->realtime_offset_ns);
        fdri_convert_message_u64(&p->profile, DURATION, info->last_ns - info->first_ns);
        fdri_convert_message_u64(&p->profile, COMMENT, text(p, info->exe));
    }
    value_type(p, PERIOD_TYPE, "time", "nanoseconds");
    fdri_convert_message_u64(&p->profile, PERIOD, 1);
    fdri_convert_message_u64(&p->profile, DEFAULT_TYPE, text(p, paths->any_calls ? "time" : "sampled"));
    texts(p);
}

/* ---- gzip without compression ---- */

static uint32_t checksum(const uint8_t *bytes, size_t count)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (unsigned bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void number(struct fdri_convert_text *out, uint32_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) fdri_convert_text_bytes(out, &(char){(char)(value >> 8 * i)}, 1);
}

static void gzip(struct fdri_convert_text *out, const uint8_t *bytes, size_t count)
{
    static const char head[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    fdri_convert_text_bytes(out, head, sizeof head);
    for (size_t at = 0, part; at == 0 || at < count; at += part) {
        part = count - at < UINT16_MAX ? count - at : UINT16_MAX;
        number(out, at + part == count, 1);
        number(out, (uint32_t)part, 2);
        number(out, ~(uint32_t)part, 2);
        fdri_convert_text_bytes(out, (const char *)bytes + at, part);
        if (!part) break;
    }
    number(out, checksum(bytes, count), 4);
    number(out, (uint32_t)count, 4);
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct fdri_convert_paths paths = {0};
    struct fdri_convert_text *out;
    struct pprof p = {0};
    (void)value;
    int status = fdri_convert_paths_calls(&paths, files, count, select);
    if (!status) status = fdri_convert_paths_samples(&paths, files, count, select);
    if (!status) make(&p, &paths, files, count);
    if (p.no_memory || p.profile.no_memory) status = -ENOMEM;
    int opened = status ? status : fdri_convert_text_open(&out, out_path);
    if (!opened) {
        gzip(out, p.profile.bytes, p.profile.used);
        opened = fdri_convert_text_close(out, 0);
    }
    free(p.profile.bytes);
    free(p.part.bytes);
    free(p.inner.bytes);
    fdri_convert_interned_free(&p.texts);
    fdri_convert_paths_free(&paths);
    return opened;
}

const struct fdr_exporter fdri_convert_pprof = {
    .name = "pprof",
    .help = "a profile for go tool pprof: calls, time, samples",
    .run = run,
};
