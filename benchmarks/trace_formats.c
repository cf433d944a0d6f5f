/* SPDX-License-Identifier: MIT */
/* The same events through fdr, OTF2, and OTF2 whose buffers are compressed by zlib as they fill (Wagner 2015, 5.2). Not
 * part of the build: trace_formats.py compiles it where OTF2 and zlib are installed.
 *   trace_formats STREAM.evt ROUNDS    prints "WAY <tab> ROUND <tab> events <tab> bytes <tab> ns of processor time
 *                                      <tab> stalls <tab> longest stall in ns"; a stall is a buffer being compressed
 * The streams give the times, so no way reads a clock. Ways take turns. */
#include <fdr/fdr.h>
#include <otf2/otf2.h>
#include <zlib.h>

#include "measure.h"
#include "stream.h"

enum { CHUNK = 1 << 20, CHUNKS = 4096 };
static struct pool {
    unsigned char *chunk[CHUNKS], packed[CHUNK + CHUNK / 100 + 1000];
    int count;
    bool pack;
    uint64_t packed_bytes, stalls, longest;
} pool;

static uint64_t now(void) { return (uint64_t)(clock_seconds(CLOCK_THREAD_CPUTIME_ID) * 1e9); }

static void pack(const unsigned char *chunk, size_t bytes)
{
    uLongf size = sizeof pool.packed;
    uint64_t begin = now();
    if (compress2(pool.packed, &size, chunk, bytes, Z_DEFAULT_COMPRESSION) != Z_OK) exit(1);
    uint64_t took = now() - begin;
    pool.packed_bytes += size;
    pool.stalls++;
    if (took > pool.longest) pool.longest = took;
}

/* A new chunk is asked for when the one before is full. Chunks are used again by later rounds: their pages exist. */
static void *allocate(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, uint64_t size)
{
    (void)data, (void)location, (void)buffer;
    if (type != OTF2_FILETYPE_EVENTS) return malloc(size);
    if (size != CHUNK || pool.count == CHUNKS) return NULL;
    if (pool.pack && pool.count) pack(pool.chunk[pool.count - 1], CHUNK);
    if (!pool.chunk[pool.count]) pool.chunk[pool.count] = malloc(CHUNK);
    return pool.chunk[pool.count++];
}
static void release(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, bool final)
{
    (void)data, (void)type, (void)location, (void)buffer, (void) final;
}

static OTF2_FlushType before_flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void)data, (void)type, (void)location, (void)caller, (void) final;
    return OTF2_NO_FLUSH;
}

static OTF2_EvtWriter *writer;

static void write_point(const struct stream_event *e)
{
    const struct stream_param *p = e->param;
    if (e->kind == STREAM_SEND || e->kind == STREAM_ISEND)
        OTF2_EvtWriter_MpiSend(writer, NULL, e->time, (uint32_t)p->peer, p->comm, (uint32_t)p->tag, p->bytes);
    else if (e->kind == STREAM_RECV || e->kind == STREAM_IRECV)
        OTF2_EvtWriter_MpiRecv(writer, NULL, e->time, (uint32_t)p->peer, p->comm, (uint32_t)p->tag, p->bytes);
    else if (e->kind == STREAM_COLL_BEGIN) OTF2_EvtWriter_MpiCollectiveBegin(writer, NULL, e->time);
    else
        OTF2_EvtWriter_MpiCollectiveEnd(writer, NULL, e->time, OTF2_COLLECTIVE_OP_BARRIER, p->comm, (uint32_t)p->peer,
                                        p->bytes, p->bytes2);
}

static uint64_t with_otf2(const struct stream_event *e, uint64_t count)
{
    uint64_t begin = now();
    for (uint64_t i = 0; i < count; i++) {
        if (e[i].kind == STREAM_ENTER) OTF2_EvtWriter_Enter(writer, NULL, e[i].time, e[i].value);
        else if (e[i].kind == STREAM_LEAVE) OTF2_EvtWriter_Leave(writer, NULL, e[i].time, e[i].value);
        else write_point(&e[i]);
    }
    return now() - begin;
}

static fdr_region *region;

static void record_point(const struct stream_event *e)
{
    const struct stream_param *p = e->param;
    if (e->kind == STREAM_SEND || e->kind == STREAM_ISEND)
        fdr_message_send_at((uint32_t)p->peer, p->tag, 0, p->bytes, e->time);
    else if (e->kind == STREAM_RECV || e->kind == STREAM_IRECV)
        fdr_message_recv_at((uint32_t)p->peer, p->tag, 0, p->bytes, e->time);
    else if (e->kind == STREAM_COLL_BEGIN) fdr_collective_begin_at(e->value, e->time);
    else fdr_collective_end_at((uint32_t)p->tag, 0, p->peer, p->bytes, p->bytes2, e->time);
}

static uint64_t with_fdr(const struct stream_event *e, uint64_t count)
{
    uint64_t begin = now();
    for (uint64_t i = 0; i < count; i++) {
        if (e[i].kind == STREAM_ENTER) fdr_enter_at(region[e[i].value], e[i].time);
        else if (e[i].kind == STREAM_LEAVE) fdr_leave_at(region[e[i].value], e[i].time);
        else record_point(&e[i]);
    }
    return now() - begin;
}

/* ---- one round of a way ---- */

static void show(const char *way, int round, uint64_t count, uint64_t bytes, uint64_t ns)
{
    printf("%s\t%d\t%llu\t%llu\t%llu\t%llu\t%llu\n", way, round, (unsigned long long)count, (unsigned long long)bytes,
           (unsigned long long)ns, (unsigned long long)pool.stalls, (unsigned long long)pool.longest);
}

/* OTF2 keeps no count of bytes: the last chunk counts whole. */
static void round_of_otf2(int round, bool packed, const struct stream_event *e, uint64_t count)
{
    static const OTF2_MemoryCallbacks memory = {allocate, release};
    static const OTF2_FlushCallbacks flush = {before_flush, NULL};
    OTF2_Archive *a = OTF2_Archive_Open("none", "t", OTF2_FILEMODE_WRITE, CHUNK, OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT,
                                        OTF2_SUBSTRATE_NONE, OTF2_COMPRESSION_NONE);
    pool.count = 0;
    pool.packed_bytes = pool.stalls = pool.longest = 0;
    pool.pack = packed;
    OTF2_Archive_SetFlushCallbacks(a, &flush, NULL);
    OTF2_Archive_SetMemoryCallbacks(a, &memory, NULL);
    OTF2_Archive_SetSerialCollectiveCallbacks(a);
    OTF2_Archive_OpenEvtFiles(a);
    writer = OTF2_Archive_GetEvtWriter(a, 0);
    if (!writer) exit(1);
    uint64_t ns = with_otf2(e, count), written = 0;
    OTF2_EvtWriter_GetNumberOfEvents(writer, &written);
    if (written != count) exit(1);
    if (packed) pack(pool.chunk[pool.count - 1], CHUNK);
    show(packed ? "OTF2 + zlib" : "OTF2", round, count, packed ? pool.packed_bytes : (uint64_t)pool.count * CHUNK, ns);
    /* the archive stays: closing it would write it out */
}

static void define_regions(const struct stream *s)
{
    region = calloc(s->head->regions + 1, sizeof *region);
    for (uint32_t i = 0; i < s->head->regions; i++)
        region[i] = fdr_region_define(s->strings + s->region[i].name, s->strings + s->region[i].file, i);
}

static void round_with_fdr(int round, const struct stream *s, const struct stream_event *e, uint64_t count)
{
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .buffer = "128M",
                                 .arena = "anonymous",
                                 .signal = "none",
                                 .crash = "0"};
    if (fdr_init(&c) != 0) exit(1);
    define_regions(s);
    uint64_t ns = with_fdr(e, count);
    struct fdr_usage u = fdr_usage();
    pool.stalls = u.reductions;
    pool.longest = u.reduction_worst_ns;
    show("fdr", round, count, u.bytes_stored, ns);
    fdr_finalize();
    free(region);
}

int main(int argc, char **argv)
{
    struct stream s;
    if (argc != 3 || !stream_open(&s, argv[1])) return 64;
    struct stream_event *e = calloc(s.head->records, sizeof *e);
    uint64_t count = 0, time = s.head->t0_ns;
    for (uint64_t i = 0; e && i < s.head->records; i++) count += stream_event(&s, i, &time, &e[count]);
    pin_to(nth_processor(0));
    for (int round = 0; e && round < atoi(argv[2]); round++) {
        round_with_fdr(round, &s, e, count);
        round_of_otf2(round, false, e, count);
        round_of_otf2(round, true, e, count);
    }
    return !e;
}
