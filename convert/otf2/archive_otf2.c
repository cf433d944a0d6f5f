/* SPDX-License-Identifier: MIT */
/* OTF2 archives: the archive as a whole. One location after another is written and closed, so memory does not grow with
 * the number of events or of locations. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/exporters.h"
#include "convert/otf2/otf2.h"
#include "convert/output_directory.h"
#include "convert/time_line.h"

/* ---- errors ---- */

static int errno_of(OTF2_ErrorCode code)
{
    switch (code) {
    case OTF2_ERROR_ENOSPC: return ENOSPC;
    case OTF2_ERROR_EFBIG: return EFBIG;
    case OTF2_ERROR_EDQUOT: return EDQUOT;
    case OTF2_ERROR_ENOMEM:
    case OTF2_ERROR_MEM_ALLOC_FAILED:
    case OTF2_ERROR_MEM_FAULT: return ENOMEM;
    case OTF2_ERROR_EACCES: return EACCES;
    case OTF2_ERROR_EMFILE: return EMFILE;
    case OTF2_ERROR_ENOENT: return ENOENT;
    case OTF2_ERROR_EROFS: return EROFS;
    default: return EIO;
    }
}

void fdri_otf2_check(struct fdri_otf2 *o, OTF2_ErrorCode code)
{
    if (code != OTF2_SUCCESS && !o->error) o->error = -errno_of(code);
}

/* The library would print its errors. The first one that names a cause counts: later ones say only that it failed. */
static OTF2_ErrorCode on_error(void *data, const char *file, uint64_t line, const char *function, OTF2_ErrorCode code,
                               const char *format, va_list values)
{
    struct fdri_otf2 *o = data;
    (void)file, (void)line, (void)function, (void)format, (void)values;
    if (code != OTF2_SUCCESS && errno_of(code) != EIO && !o->error) o->error = -errno_of(code);
    return code;
}

/* ---- memory: a buffer is flushed when it has so many chunks ---- */

enum { CHUNKS = 2, DEFINITIONS_CHUNK = 1 << 20 }; /* each location has a file of definitions */
struct chunks {
    void *chunk[CHUNKS];
    uint32_t count;
};

static void *allocate(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, uint64_t size)
{
    (void)data, (void)type, (void)location;
    struct chunks *c = *buffer ? *buffer : calloc(1, sizeof *c);
    *buffer = c;
    if (!c || c->count == CHUNKS) return NULL;
    c->chunk[c->count] = malloc(size);
    return c->chunk[c->count] ? c->chunk[c->count++] : NULL;
}

static void release(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, bool final)
{
    struct chunks *c = *buffer;
    (void)data, (void)type, (void)location;
    while (c && c->count) free(c->chunk[--c->count]);
    if (!final) return;
    free(c);
    *buffer = NULL;
}

static OTF2_FlushType flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void)data, (void)type, (void)location, (void)caller, (void) final;
    return OTF2_FLUSH;
}

/* ---- events ---- */

static void begin_location(struct fdri_otf2 *o, uint32_t location)
{
    o->writer = OTF2_Archive_GetEvtWriter(o->archive, o->process[o->at].first + location);
    o->generator = UINT32_MAX;
    o->operations = 0;
    fdri_otf2_requests_begin(o, location);
    fdri_otf2_one_sided_begin(o);
    if (!o->writer && !o->error) o->error = -EIO;
}

/* written: the counter of this location. After an error, nothing of the archive is closed. OTF2 writes as it closes;
 * after a write that failed, it would do so from memory that it has freed. */
static void end_location(struct fdri_otf2 *o, uint64_t *written)
{
    if (!o->writer || o->error) return;
    fdri_otf2_check(o, OTF2_EvtWriter_GetNumberOfEvents(o->writer, written));
    fdri_otf2_check(o, OTF2_Archive_CloseEvtWriter(o->archive, o->writer));
    o->writer = NULL;
}

static void note_time(struct fdri_otf2 *o, uint64_t time_ns)
{
    uint64_t at = time_ns + o->process[o->at].shift_ns;
    if (at < o->from_ns) o->from_ns = at;
    if (at > o->to_ns) o->to_ns = at;
}

/* A location without events: number `end` + i stands for the rank in place i, which has no recording. A process
 * without threads has such a location, too, because readers refuse archives without locations. */
static void write_silent_location(struct fdri_otf2 *o, OTF2_LocationRef location)
{
    OTF2_EvtWriter *writer = OTF2_Archive_GetEvtWriter(o->archive, location);
    if (writer) fdri_otf2_check(o, OTF2_Archive_CloseEvtWriter(o->archive, writer));
}

/* Every location gets a file, also one without events: readers look for it. */
static void write_locations(struct fdri_otf2 *o, uint64_t *written)
{
    const struct fdri_otf2_process *p = &o->process[o->at];
    struct fdr_select all = p->select ? *p->select : (struct fdr_select){0};
    struct fdr_read_event e;
    all.one_location_after_another = true;
    struct fdr_iter *iter = fdr_iter_open(p->file, &all);
    if (!iter) o->error = -ENOMEM;
    bool more = iter && fdr_iter_next(iter, &e);
    for (size_t i = 0; i < fdr_location_count(p->file) && !o->error; i++) {
        uint32_t id = fdr_location_info(p->file, i)->id;
        begin_location(o, id);
        for (; more && e.location == id && !o->error; more = fdr_iter_next(iter, &e)) {
            fdri_otf2_event(o, &e);
            note_time(o, e.time_ns);
        }
        end_location(o, &written[i]);
    }
    if (!fdr_location_count(p->file)) write_silent_location(o, p->first);
    fdr_iter_close(iter);
}

static void write_events(struct fdri_otf2 *o)
{
    size_t ranks, done = 0;
    const uint32_t *rank = fdri_convert_partners_ranks(o->partners, &ranks);
    fdri_otf2_check(o, OTF2_Archive_OpenEvtFiles(o->archive));
    for (o->at = 0; o->at < o->processes && !o->error; o->at++) {
        write_locations(o, o->written + done);
        done += fdr_location_count(o->process[o->at].file);
    }
    for (size_t i = 0; i < ranks && !o->error; i++)
        if (!fdri_otf2_process_of(o, rank[i])) write_silent_location(o, o->end + i);
    if (!o->error) fdri_otf2_check(o, OTF2_Archive_CloseEvtFiles(o->archive));
}

/* ---- local definitions: the offsets of clocks; readers look for the files of all locations ---- */

static void write_local(struct fdri_otf2 *o, OTF2_LocationRef location, uint64_t shift_ns)
{
    uint64_t from = o->from_ns > shift_ns ? o->from_ns - shift_ns : 0;
    uint64_t to = o->to_ns > shift_ns ? o->to_ns - shift_ns : 0;
    OTF2_DefWriter *writer = OTF2_Archive_GetDefWriter(o->archive, location);
    if (!writer) {
        if (!o->error) o->error = -EIO;
        return;
    }
    /* Readers correct times between two offsets. */
    if (shift_ns) fdri_otf2_check(o, OTF2_DefWriter_WriteClockOffset(writer, from, (int64_t)shift_ns, 0));
    if (shift_ns) fdri_otf2_check(o, OTF2_DefWriter_WriteClockOffset(writer, to + 1, (int64_t)shift_ns, 0));
    fdri_otf2_check(o, OTF2_Archive_CloseDefWriter(o->archive, writer));
}

static void write_local_definitions(struct fdri_otf2 *o)
{
    size_t ranks;
    const uint32_t *rank = fdri_convert_partners_ranks(o->partners, &ranks);
    fdri_otf2_check(o, OTF2_Archive_OpenDefFiles(o->archive));
    for (size_t i = 0; i < o->processes; i++) {
        const struct fdri_otf2_process *p = &o->process[i];
        for (size_t l = 0; l < fdr_location_count(p->file) && !o->error; l++)
            write_local(o, p->first + fdr_location_info(p->file, l)->id, p->shift_ns);
        if (!fdr_location_count(p->file)) write_local(o, p->first, p->shift_ns);
    }
    for (size_t i = 0; i < ranks && !o->error; i++)
        if (!fdri_otf2_process_of(o, rank[i])) write_local(o, o->end + i, 0);
    if (!o->error) fdri_otf2_check(o, OTF2_Archive_CloseDefFiles(o->archive));
}

/* ---- the archive ---- */

static bool take_files(struct fdri_otf2 *o, struct fdr_file *const *files, size_t count,
                       const struct fdr_select *select)
{
    uint64_t *shift = calloc(count + 1, sizeof *shift);
    o->process = calloc(count + 1, sizeof *o->process);
    o->partners = fdri_convert_partners_open(files, count, select);
    if (shift) fdri_convert_time_line(files, count, shift);
    o->processes = o->process ? count : 0;
    for (size_t i = 0; i < o->processes && shift; i++) {
        struct fdri_otf2_process *p = &o->process[i];
        size_t locations = fdr_location_count(files[i]);
        *p = (struct fdri_otf2_process){.file = files[i],
                                        .select = select ? &select[i] : NULL,
                                        .shift_ns = shift[i],
                                        .first = o->end,
                                        .main_ = o->end,
                                        .regions = fdr_definition_count(files[i], FDR_REGION_DEFINITION) + 1};
        o->end += locations ? (OTF2_LocationRef)fdr_location_info(files[i], locations - 1)->id + 1 : 1;
        if (locations) p->main_ += fdr_location_info(files[i], 0)->id;
        o->locations += locations;
        p->region = malloc(p->regions * sizeof *p->region);
        if (!p->region) break;
        memset(p->region, 0xff, p->regions * sizeof *p->region);
    }
    bool good = shift && o->partners && o->process && (!count || o->process[count - 1].region);
    free(shift);
    o->written = calloc(o->locations + 1, sizeof *o->written);
    return good && o->written && fdri_otf2_one_sided_open(o);
}

static void describe(struct fdri_otf2 *o)
{
    char creator[64];
    snprintf(creator, sizeof creator, "fdr %s", fdr_reader_version());
    fdri_otf2_check(o, OTF2_Archive_SetCreator(o->archive, creator));
    fdri_otf2_check(o, OTF2_Archive_SetProperty(o->archive, "FDR::VERSION", fdr_reader_version(), true));
}

static void write_clock(struct fdri_otf2 *o)
{
    const struct fdri_otf2_process *p = o->process;
    uint64_t realtime = OTF2_UNDEFINED_TIMESTAMP;
    if (o->from_ns > o->to_ns) o->from_ns = o->to_ns = 0;
    if (o->processes) realtime = o->from_ns - p->shift_ns + (uint64_t)fdr_file_info(p->file)->realtime_offset_ns;
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteClockProperties(o->def, 1000000000, o->from_ns,
                                                                 o->to_ns - o->from_ns + 1, realtime));
}

static void write_archive(struct fdri_otf2 *o)
{
    o->def = OTF2_Archive_GetGlobalDefWriter(o->archive);
    o->list = OTF2_AttributeList_New();
    if (!o->def || !o->list) o->error = o->error ? o->error : -ENOMEM;
    if (!o->error) describe(o);
    if (!o->error) fdri_otf2_attributes(o);
    if (!o->error) fdri_otf2_hosts(o);
    if (!o->error) write_events(o);
    if (!o->error) write_clock(o);
    if (!o->error) fdri_otf2_processes(o);
    if (!o->error) fdri_otf2_comms(o);
    if (!o->error) fdri_otf2_windows(o);
    if (!o->error) write_local_definitions(o);
    if (!o->error) fdri_otf2_reductions(o);
    if (o->list) OTF2_AttributeList_Delete(o->list);
    if (!o->error) fdri_otf2_check(o, OTF2_Archive_CloseGlobalDefWriter(o->archive, o->def));
}

static void open_archive(struct fdri_otf2 *o, const char *directory)
{
    static const OTF2_FlushCallbacks flush_callbacks = {flush, NULL};
    static const OTF2_MemoryCallbacks memory_callbacks = {allocate, release};
    o->archive = OTF2_Archive_Open(directory, "traces", OTF2_FILEMODE_WRITE, OTF2_CHUNK_SIZE_EVENTS_DEFAULT,
                                   DEFINITIONS_CHUNK, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!o->archive) {
        o->error = o->error ? o->error : -EIO;
        return;
    }
    fdri_otf2_check(o, OTF2_Archive_SetFlushCallbacks(o->archive, &flush_callbacks, NULL));
    fdri_otf2_check(o, OTF2_Archive_SetMemoryCallbacks(o->archive, &memory_callbacks, NULL));
    fdri_otf2_check(o, OTF2_Archive_SetSerialCollectiveCallbacks(o->archive));
}

static void free_all(struct fdri_otf2 *o)
{
    struct fdri_convert_interned *tables[] = {&o->strings,  &o->regions,    &o->members, &o->metrics, &o->parameters,
                                              &o->contexts, &o->generators, &o->comms,   &o->hosts,   &o->io};
    fdri_otf2_comms_free(o);
    fdri_otf2_one_sided_close(o);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) fdri_convert_interned_free(tables[i]);
    for (size_t i = 0; i < o->processes; i++) free(o->process[i].region);
    fdri_convert_partners_close(o->partners);
    free(o->process);
    free(o->written);
}

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    struct fdri_otf2 o = {.from_ns = UINT64_MAX};
    char *part;
    (void)value;
    int status = fdri_convert_directory_begin(out_path, &part);
    if (status) return status;
    OTF2_ErrorCallback before = OTF2_Error_RegisterCallback(on_error, &o);
    if (!take_files(&o, files, count, select)) o.error = -ENOMEM;
    if (!o.error) open_archive(&o, part);
    if (o.archive && !o.error) write_archive(&o);
    if (o.archive && !o.error) fdri_otf2_check(&o, OTF2_Archive_Close(o.archive));
    OTF2_Error_RegisterCallback(before, NULL);
    free_all(&o);
    return fdri_convert_directory_end(out_path, part, o.error);
}

const struct fdr_exporter fdri_convert_otf2 = {
    .name = "otf2",
    .help = "an OTF2 archive, a directory: Vampir, Scalasca, otf2-print",
    .call_bytes = 24,
    .directory = true,
    .run = run,
};
