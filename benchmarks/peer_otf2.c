/* SPDX-License-Identifier: MIT */
/* OTF2 beside fdr. Not part of the build: run.sh compiles it where OTF2 is installed.
 *   peer_otf2 call [CALLS]            ns per call of the workload of bench_call, with the processor's clock; events
 *                                     stay in memory, in touched pages
 *   peer_otf2 stream DIR STREAM...    writes the events of each stream with OTF2 into DIR (the caller removes it);
 *                                     prints "PATH <tab> events <tab> bytes", bytes of the event file alone */
#include <otf2/otf2.h>
#include <sys/mman.h>

#include "measure.h"
#include "stream.h"

static OTF2_EvtWriter *writer;
static long counted;

#define W_PREFIX   count
#define W_ENTER(n) (counted++)
#define W_LEAVE(n) (void)0
#include "workload.h"

#define W_PREFIX   otf2
#define W_ENTER(n) OTF2_EvtWriter_Enter(writer, NULL, bench_ticks(), n)
#define W_LEAVE(n) OTF2_EvtWriter_Leave(writer, NULL, bench_ticks(), n)
#include "workload.h"

/* ---- memory: one pool of touched pages -------------------------------------------------------------------------- */

static struct {
    char *base;
    size_t size, used;
} pool;

static void *allocate(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, uint64_t size)
{
    (void)data, (void)type, (void)location, (void)buffer;
    if (size > pool.size - pool.used) return NULL;
    pool.used += size;
    return pool.base + pool.used - size;
}
static void release(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, bool final)
{
    (void)data, (void)type, (void)location, (void)buffer, (void) final;
}
static OTF2_FlushType before_flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void)data, (void)type, (void)location, (void)caller, (void) final;
    return OTF2_FLUSH;
}
static OTF2_TimeStamp after_flush(void *data, OTF2_FileType type, OTF2_LocationRef location)
{
    (void)data, (void)type, (void)location;
    return bench_ticks();
}

static OTF2_Archive *open_archive(const char *directory, OTF2_FileSubstrate substrate)
{
    static OTF2_FlushCallbacks flush = {before_flush, after_flush};
    static OTF2_MemoryCallbacks memory = {allocate, release};
    OTF2_Archive *a = OTF2_Archive_Open(directory, "t", OTF2_FILEMODE_WRITE, OTF2_CHUNK_SIZE_EVENTS_DEFAULT,
                                        OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT, substrate, OTF2_COMPRESSION_NONE);
    if (!a) return NULL;
    OTF2_Archive_SetFlushCallbacks(a, &flush, NULL);
    if (substrate == OTF2_SUBSTRATE_NONE) OTF2_Archive_SetMemoryCallbacks(a, &memory, NULL);
    OTF2_Archive_SetSerialCollectiveCallbacks(a);
    OTF2_Archive_OpenEvtFiles(a);
    return a;
}

/* ---- call ---- */

static int time_calls(long calls)
{
    pool.size = (size_t)calls * 2 * 2 * 16 + (64u << 20);
    pool.base = mmap(NULL, pool.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (pool.base == MAP_FAILED) return 1;
    OTF2_Archive *a = open_archive("none", OTF2_SUBSTRATE_NONE);
    writer = a ? OTF2_Archive_GetEvtWriter(a, 0) : NULL;
    if (!writer) return 1;
    count_pass();
    pin_thread();
    double ns = measure(otf2_pass, counted, calls);
    uint64_t events = 0;
    OTF2_EvtWriter_GetNumberOfEvents(writer, &events);
    if (events < (uint64_t)calls * 2) return 1;
    printf("otf2\t%.4f\n", ns);
    return 0; /* the archive ends with the process */
}

/* ---- stream ----------------------------------------------------------------------------------------------------- */

static void write_point(const struct stream_event *e)
{
    const struct stream_param *p = e->param;
    switch (e->kind) {
    case STREAM_SEND:
    case STREAM_ISEND:
        OTF2_EvtWriter_MpiSend(writer, NULL, e->time, (uint32_t)p->peer, p->comm, (uint32_t)p->tag, p->bytes);
        break;
    case STREAM_RECV:
    case STREAM_IRECV:
        OTF2_EvtWriter_MpiRecv(writer, NULL, e->time, (uint32_t)p->peer, p->comm, (uint32_t)p->tag, p->bytes);
        break;
    case STREAM_COLL_BEGIN: OTF2_EvtWriter_MpiCollectiveBegin(writer, NULL, e->time); break;
    default:
        OTF2_EvtWriter_MpiCollectiveEnd(writer, NULL, e->time, (OTF2_CollectiveOp)(p->tag % 16), p->comm,
                                        (uint32_t)p->peer, p->bytes, p->bytes2);
    }
}

static uint64_t write_events(const struct stream *s)
{
    uint64_t events = 0, time = s->head->t0_ns;
    struct stream_event e;
    for (uint64_t i = 0; i < s->head->records; i++) {
        if (!stream_event(s, i, &time, &e)) continue;
        events++;
        if (e.kind == STREAM_ENTER) OTF2_EvtWriter_Enter(writer, NULL, e.time, e.value);
        else if (e.kind == STREAM_LEAVE) OTF2_EvtWriter_Leave(writer, NULL, e.time, e.value);
        else write_point(&e);
    }
    return events;
}

static int write_stream(const char *directory, int number, const char *path)
{
    char archive[4096], file[4200];
    struct stream s;
    struct stat st;
    if (!stream_open(&s, path)) return 1;
    snprintf(archive, sizeof archive, "%s/%d", directory, number);
    snprintf(file, sizeof file, "%s/t/0.evt", archive);
    OTF2_Archive *a = open_archive(archive, OTF2_SUBSTRATE_POSIX);
    writer = a ? OTF2_Archive_GetEvtWriter(a, 0) : NULL;
    if (!writer) return 1;
    uint64_t events = write_events(&s);
    OTF2_Archive_CloseEvtWriter(a, writer);
    OTF2_Archive_CloseEvtFiles(a);
    OTF2_Archive_Close(a);
    stream_close(&s);
    if (stat(file, &st) != 0 || st.st_size == 0) {
        fprintf(stderr, "peer_otf2: %s was not written\n", file);
        return 1;
    }
    printf("%s\t%llu\t%lld\n", path, (unsigned long long)events, (long long)st.st_size);
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    if (argc >= 2 && strcmp(argv[1], "call") == 0) return time_calls(argc > 2 ? atol(argv[2]) : 4000000);
    if (argc < 4 || strcmp(argv[1], "stream") != 0) {
        fprintf(stderr, "usage: peer_otf2 call [CALLS] | stream DIR STREAM.evt...\n");
        return 64;
    }
    for (int i = 3; i < argc; i++) status |= write_stream(argv[2], i - 3, argv[i]);
    return status;
}
