/* SPDX-License-Identifier: MIT */
/* Archives and event writers of the program, and OTF2's references as ids of fdr. */
#ifndef FDRI_ADAPTERS_OTF2_OTF2_ARCHIVE_H
#define FDRI_ADAPTERS_OTF2_OTF2_ARCHIVE_H

#include <errno.h>
#include <otf2/otf2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"

enum { FDRI_OTF2_FIELDS = 16 }; /* of an event */

/* ---- kept_memory.c ---- */

/* Memory that lives as long as its archive. Not malloc's: instrumenters record that, and call OTF2 under locks of their
 * own. Zeros; NULL: there is none. Under the archive's lock. */
struct fdri_otf2_memory {
    struct fdri_otf2_block *newest;
};
void *fdri_otf2_take(struct fdri_otf2_memory *m, size_t bytes);
void fdri_otf2_give_back(struct fdri_otf2_memory *m);

/* ---- references.c ---- */

/* References, each with an id of fdr, 0: none. Read without a lock. Instrumenters give each rank numbers of its own, so
 * there are few, anywhere. */
enum { FDRI_OTF2_PARTS = 256 };
struct fdri_otf2_refs {
    struct fdri_otf2_refs_part *part[FDRI_OTF2_PARTS];
};
uint32_t fdri_otf2_refs_get(struct fdri_otf2_refs *r, uint32_t ref);
/* False: no memory, or the reference is OTF2_UNDEFINED. Under the archive's lock. */
bool fdri_otf2_refs_set(struct fdri_otf2_memory *m, struct fdri_otf2_refs *r, uint32_t ref, uint32_t id);
/* inverse[id] = reference, UINT32_MAX: none, for ids below *count. NULL: no memory. The caller frees it. */
uint32_t *fdri_otf2_refs_inverse(struct fdri_otf2_refs *r, uint32_t *count);

/* ---- archives ---- */

struct fdri_otf2_text {
    struct fdri_otf2_refs place; /* of a string in `text`, from 1 on */
    char **text;
    uint32_t count, room;
};
/* A metric as one event of it has it: one value is a metric of fdr, more are a user event. */
struct fdri_otf2_metric {
    struct fdri_otf2_metric *next; /* of the archive */
    uint32_t ref, id;
    uint8_t count;
    OTF2_Type type[FDRI_OTF2_FIELDS];
};
struct fdri_otf2_named {
    uint32_t ref, name, file, line; /* references of strings; of a metric `file` is the unit */
};
struct fdri_otf2_names {
    struct fdri_otf2_refs place;
    struct fdri_otf2_named *row;
    uint32_t count, room;
};

struct fdri_otf2_archive {
    struct fdri_otf2_archive *next;
    OTF2_Archive *real;
    OTF2_GlobalDefWriter *definitions; /* of this archive; NULL: not asked for yet */
    unsigned number; /* of the process, from 1 on: later ones have it in their names, as both count references from 0 */
    bool recorded;   /* events go to fdr, else to OTF2 */
    bool written;    /* its events are to be written at the end */
    bool written_back; /* they are */
    bool mapped;       /* references of events are not those of its definitions */
    uint32_t lock;
    struct fdri_otf2_memory memory;
    struct fdri_otf2_writer *writers;
    struct fdri_otf2_metric *metrics; /* the newest first; read without the lock */
    struct fdri_otf2_refs regions, comms, handles, signed_, unsigned_;
    struct fdri_otf2_text strings;
    struct fdri_otf2_names region_names, member_names, class_members, parameter_names, handle_names;
};

/* The object that a program holds as its OTF2_EvtWriter. */
struct fdri_otf2_writer {
    struct fdri_otf2_writer *next; /* of the archive */
    struct fdri_otf2_archive *archive;
    OTF2_EvtWriter *real; /* if nothing is recorded, else NULL */
    OTF2_LocationRef location;
    void *user;
    char name[32];         /* of its location in the recording */
    uint64_t events;       /* that were written by the program */
    uint32_t open;         /* calls */
    uint64_t events_there; /* in the archive; known when that is written */
    uint64_t nested;       /* events that came while this thread was inside of fdr */
    uint64_t not_kept;     /* events of a kind, or with more values, than fdr has room for */
    uint32_t rewind;       /* the newest rewind point, and the number of events there */
    uint64_t events_at_rewind;
    struct fdri_otf2_queue *queue; /* NULL: a thread of the program records */
    bool bound;
    struct fdri_otf2_pending { /* operations of io under way; the oldest are overwritten */
        uint64_t matching, began;
        uint32_t operation;
    } pending[16];
    uint32_t begun; /* so many operations */
};

/* Above 0 while the thread is inside of fdr. An instrumenter that records locks sees those of fdr, too. The events that
 * it then writes are not the program's, and would wait for the lock that fdr holds. */
extern __thread uint32_t fdri_otf2_inside;

/* A lock of few steps. Not pthread_mutex_lock, which such instrumenters record. Its wait is no cancellation point. */
static inline void fdri_otf2_lock(uint32_t *lock)
{
    const struct timespec moment = {0, 20000};
    int saved = errno;
    fdri_otf2_inside++;
    while (fdri_atomic_swap_acq_rel(lock, 1u)) syscall(SYS_nanosleep, &moment, NULL); /* L:archive */
    errno = saved;
}
static inline void fdri_otf2_unlock(uint32_t *lock)
{
    fdri_atomic_store_release(lock, 0u); /* L:archive */
    fdri_otf2_inside--;
}

struct fdri_otf2_archive *fdri_otf2_archive_of(const OTF2_Archive *real);
/* The archive whose definitions this writes; if that is not known, the newest that is recorded. */
struct fdri_otf2_archive *fdri_otf2_archive_of_definitions(const OTF2_GlobalDefWriter *writer);

#endif
