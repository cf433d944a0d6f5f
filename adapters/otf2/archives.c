/* SPDX-License-Identifier: MIT */
/* Archives. With FDR_OTF2_ARCHIVE=1 events are written into the real archive when its event files are closed. Without,
 * OTF2's library works on nothing: its substrate that has no files. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/otf2/otf2_adapter.h"

static uint32_t lock;                      /* of the list of archives */
static struct fdri_otf2_archive *archives; /* the newest first */
static unsigned opened;
static struct fdri_otf2_writer *retired; /* threads know their writer by its address, so none is used again */

struct fdri_otf2_archive *fdri_otf2_archive_of(const OTF2_Archive *real)
{
    fdri_otf2_lock(&lock);
    struct fdri_otf2_archive *a = archives;
    while (a && (real ? a->real != real : !a->recorded)) a = a->next;
    fdri_otf2_unlock(&lock);
    return a;
}

struct fdri_otf2_archive *fdri_otf2_archive_of_definitions(const OTF2_GlobalDefWriter *writer)
{
    fdri_otf2_lock(&lock);
    struct fdri_otf2_archive *a = archives;
    while (a && (!writer || a->definitions != writer)) a = a->next;
    fdri_otf2_unlock(&lock);
    return a ? a : fdri_otf2_archive_of(NULL);
}

OTF2_GlobalDefWriter *OTF2_Archive_GetGlobalDefWriter(OTF2_Archive *archive)
{
    struct fdri_otf2_archive *a = fdri_otf2_archive_of(archive);
    OTF2_GlobalDefWriter *writer = FDRI_OTF2_REAL(OTF2_Archive_GetGlobalDefWriter)(archive);
    fdri_otf2_lock(&lock);
    if (a) a->definitions = writer;
    fdri_otf2_unlock(&lock);
    return writer;
}

static bool asked_for(void)
{
    const char *v = secure_getenv("FDR_OTF2_ARCHIVE");
    if (!v || !*v || !strcmp(v, "0")) return false;
    if (strcmp(v, "1") != 0) fprintf(stderr, "fdr: FDR_OTF2_ARCHIVE='%.40s': known: 0, 1; using 0\n", v);
    return !strcmp(v, "1");
}

/* ---- flushes: the program's events never wait for one; the archive's do at the end ---- */

static OTF2_FlushType flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void)data, (void)type, (void)location, (void)caller, (void) final;
    return OTF2_FLUSH;
}
static const OTF2_FlushCallbacks at_the_end = {flush, NULL};

OTF2_ErrorCode OTF2_Archive_SetFlushCallbacks(OTF2_Archive *archive, const OTF2_FlushCallbacks *callbacks, void *data)
{
    struct fdri_otf2_archive *a = fdri_otf2_archive_of(archive);
    return FDRI_OTF2_REAL(OTF2_Archive_SetFlushCallbacks)(archive, a && a->recorded ? &at_the_end : callbacks, data);
}

/* ---- open ---- */

static void add(struct fdri_otf2_archive *a, OTF2_Archive *real, bool written)
{
    a->real = real;
    a->written = written;
    fdri_otf2_lock(&lock);
    a->next = archives;
    archives = a;
    a->number = ++opened;
    fdri_otf2_unlock(&lock);
    if (a->recorded) FDRI_OTF2_REAL(OTF2_Archive_SetFlushCallbacks)(real, &at_the_end, NULL);
}

OTF2_Archive *OTF2_Archive_Open(const char *path, const char *name, const OTF2_FileMode mode, const uint64_t events,
                                const uint64_t definitions, const OTF2_FileSubstrate substrate,
                                const OTF2_Compression compression)
{
    bool written = asked_for(), writes = mode != OTF2_FILEMODE_READ;
    struct fdri_otf2_archive *a = writes ? calloc(1, sizeof *a) : NULL;
    fdri_otf2_inside++;
    if (a && fdr_init(NULL) == 0) a->recorded = __atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED);
    fdri_otf2_inside--;
    bool nowhere = a && a->recorded && !written;
    OTF2_Archive *real = FDRI_OTF2_REAL(OTF2_Archive_Open)(path, name, mode, events, definitions,
                                                           nowhere ? OTF2_SUBSTRATE_NONE : substrate,
                                                           nowhere ? OTF2_COMPRESSION_NONE : compression);
    if (a && real) add(a, real, written);
    else free(a);
    return real;
}

/* ---- event writers ---- */

static struct fdri_otf2_writer *find(struct fdri_otf2_archive *a, OTF2_LocationRef location)
{
    struct fdri_otf2_writer *w = location == OTF2_UNDEFINED_LOCATION ? NULL : a->writers;
    while (w && w->location != location) w = w->next;
    return w;
}

static struct fdri_otf2_writer *make(struct fdri_otf2_archive *a, OTF2_LocationRef location)
{
    struct fdri_otf2_writer *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    *w = (struct fdri_otf2_writer){.next = a->writers, .archive = a, .location = location, .rewind = UINT32_MAX};
    snprintf(w->name, sizeof w->name, "%.0u%sOTF2 %llu", a->number > 1 ? a->number : 0, a->number > 1 ? ": " : "",
             (unsigned long long)(location % 10000000000000));
    if (!a->recorded) w->real = FDRI_OTF2_REAL(OTF2_Archive_GetEvtWriter)(a->real, location);
    if (!a->recorded && !w->real) {
        free(w);
        return NULL;
    }
    return a->writers = w;
}

OTF2_EvtWriter *OTF2_Archive_GetEvtWriter(OTF2_Archive *archive, OTF2_LocationRef location)
{
    struct fdri_otf2_archive *a = fdri_otf2_archive_of(archive);
    if (!a) return FDRI_OTF2_REAL(OTF2_Archive_GetEvtWriter)(archive, location);
    fdri_otf2_lock(&a->lock);
    struct fdri_otf2_writer *w = find(a, location);
    if (!w) w = make(a, location);
    fdri_otf2_unlock(&a->lock);
    return (OTF2_EvtWriter *)w;
}

/* The events of a writer stay, until its archive is written. If its own thread closes it, it is the thread's first
 * writer no longer. But its events are in the thread's location, so the next writer gets a location of its own. */
OTF2_ErrorCode OTF2_Archive_CloseEvtWriter(OTF2_Archive *archive, OTF2_EvtWriter *writer)
{
    struct fdri_otf2_writer *w = (struct fdri_otf2_writer *)writer;
    if (!fdri_otf2_archive_of(archive)) return FDRI_OTF2_REAL(OTF2_Archive_CloseEvtWriter)(archive, writer);
    if (!w) return OTF2_ERROR_INVALID_ARGUMENT;
    if (!w->real) return OTF2_SUCCESS;
    OTF2_ErrorCode code = FDRI_OTF2_REAL(OTF2_Archive_CloseEvtWriter)(archive, w->real);
    fdri_otf2_lock(&w->archive->lock);
    for (struct fdri_otf2_writer **at = &w->archive->writers; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    fdri_otf2_unlock(&w->archive->lock);
    free(w);
    return code;
}

/* ---- close ---- */

/* Says in one line how much is missing in the archive. */
static void report(const struct fdri_otf2_archive *a)
{
    uint64_t missing = 0, not_kept = 0, nested = 0;
    for (struct fdri_otf2_writer *w = a->writers; w; w = w->next) {
        missing += a->written_back && w->events > w->events_there ? w->events - w->events_there : 0;
        not_kept += w->not_kept;
        nested += w->nested;
    }
    if (missing)
        fprintf(stderr, "fdr: the OTF2 archive lacks %llu events: fdr gave them back, or had no room for them\n",
                (unsigned long long)missing);
    if (not_kept)
        fprintf(stderr, "fdr: %llu events of OTF2 were not recorded: fdr has no room for such values\n",
                (unsigned long long)not_kept);
    if (nested)
        fprintf(stderr, "fdr: %llu events of OTF2 are left out: they came out of fdr's own calls, as for locks\n",
                (unsigned long long)nested);
}

static void write_back(struct fdri_otf2_archive *a)
{
    if (!a->recorded || a->written_back) return;
    fdri_otf2_inside++;
    for (struct fdri_otf2_writer *w = a->writers; w; w = w->next) fdri_otf2_finish(w);
    if (a->written) fdri_otf2_write_back(a);
    fdri_otf2_inside--;
    a->written_back = a->written;
}

OTF2_ErrorCode OTF2_Archive_CloseEvtFiles(OTF2_Archive *archive)
{
    struct fdri_otf2_archive *a = fdri_otf2_archive_of(archive);
    if (a) write_back(a);
    return FDRI_OTF2_REAL(OTF2_Archive_CloseEvtFiles)(archive);
}

static void free_archive(struct fdri_otf2_archive *a)
{
    fdri_otf2_give_back(&a->memory);
    free(a);
}

static void take_out(struct fdri_otf2_archive *a)
{
    fdri_otf2_lock(&lock);
    for (struct fdri_otf2_writer *w = a->writers, *next; w; w = next) {
        next = w->next;
        w->next = retired;
        retired = w;
    }
    for (struct fdri_otf2_archive **at = &archives; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            break;
        }
    fdri_otf2_unlock(&lock);
}

OTF2_ErrorCode OTF2_Archive_Close(OTF2_Archive *archive)
{
    struct fdri_otf2_archive *a = fdri_otf2_archive_of(archive);
    if (a) write_back(a);
    OTF2_ErrorCode code = FDRI_OTF2_REAL(OTF2_Archive_Close)(archive);
    if (!a) return code;
    for (struct fdri_otf2_writer *w = a->writers; w; w = w->next) fdri_otf2_end_queue(w);
    report(a);
    take_out(a);
    free_archive(a);
    return code;
}
