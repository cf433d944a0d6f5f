/* SPDX-License-Identifier: MIT */
/* libfdr-otf2: stands before the writer of OTF2's library. Events that a program writes go into fdr's buffer, with the
 * program's times. If FDR_OTF2_ARCHIVE asks for it, the archive is written at its end, by OTF2's own library.
 *
 *   generic_events.h   events that fdr has no class for
 *   otf2_archive.h     what is kept of an archive and of its event writers
 *   event_writer.c     the functions of OTF2_EvtWriter
 *   archives.c         those of OTF2_Archive; archives and their event writers
 *   event_locations.c  which thread of fdr records the events of which event writer
 *   record_event.c     an event of OTF2 as events of fdr
 *   write_back.c       events of fdr as events of OTF2, into the real archive
 *   kept_memory.c      memory of an archive
 *   references.c       OTF2's references as ids of fdr, and back
 *   otf2_names.c       those definitions of OTF2 that name what fdr shows
 *   real_library.c     OTF2's functions behind ours
 *
 * Definitions, markers and snapshots of OTF2 go to its library unchanged. Without an archive it writes them nowhere. If
 * fdr records nothing, everything goes there. */
#ifndef FDRI_ADAPTERS_OTF2_OTF2_ADAPTER_H
#define FDRI_ADAPTERS_OTF2_OTF2_ADAPTER_H

#include <fdr/fdr.h>
#include <otf2/otf2.h>
#include <stdbool.h>

#include "adapters/otf2/generic_events.h"
#include "adapters/otf2/otf2_archive.h"

/* OTF2's own function of this name, looked for once. */
#define FDRI_OTF2_REAL(name)                                                                                           \
    __extension__({                                                                                                    \
        static __typeof__(&name) real_;                                                                                \
        if (!__atomic_load_n(&real_, __ATOMIC_RELAXED))                                                                \
            __atomic_store_n(&real_, (__typeof__(&name))fdri_otf2_real(#name), __ATOMIC_RELAXED);                      \
        __atomic_load_n(&real_, __ATOMIC_RELAXED);                                                                     \
    })
typedef void fdri_otf2_any(void);
fdri_otf2_any *fdri_otf2_real(const char *name);

/* ---- events ---- */

#define FDRI_OTF2_NUMBER0(name, ...) FDRI_OTF2_##name,
enum fdri_otf2_kind {
    FDRI_OTF2_NONE,
    FDRI_OTF2_GENERIC(FDRI_OTF2_NUMBER0, FDRI_OTF2_NUMBER0, FDRI_OTF2_NUMBER0, FDRI_OTF2_NUMBER0, FDRI_OTF2_NUMBER0,
                      FDRI_OTF2_NUMBER0) FDRI_OTF2_ProgramBegin,
    FDRI_OTF2_Attribute, /* of the event that follows: its kind, reference, type, value */
    FDRI_OTF2_Request,   /* of the message that follows, or alone: what (enum fdri_otf2_request), id */
    FDRI_OTF2_Operation, /* of the operation that follows: flags, matching id */
    FDRI_OTF2_USER_KINDS,
    FDRI_OTF2_Enter = FDRI_OTF2_USER_KINDS,
    FDRI_OTF2_Leave,
    FDRI_OTF2_Send,
    FDRI_OTF2_Recv,
    FDRI_OTF2_CollectiveBegin,
    FDRI_OTF2_CollectiveEnd,
    FDRI_OTF2_Values,
    FDRI_OTF2_ParameterInt,
    FDRI_OTF2_ParameterUnsignedInt,
    FDRI_OTF2_OperationBegin,
    FDRI_OTF2_OperationComplete,
    FDRI_OTF2_StoreRewind,
    FDRI_OTF2_DoRewind
};
#undef FDRI_OTF2_NUMBER0
/* Values of field `what` of user events fdr.request (docs/FORMAT.md, 9.4). */
enum fdri_otf2_request {
    FDRI_OTF2_ISEND = 1,
    FDRI_OTF2_ISEND_COMPLETE,
    FDRI_OTF2_IRECV_POSTED,
    FDRI_OTF2_IRECV,
    FDRI_OTF2_TESTED,
    FDRI_OTF2_CANCELLED
};

struct fdri_otf2_record {
    uint64_t time;
    uint32_t kind, count;
    struct fdri_otf2_metric *metric; /* of Values */
    uint64_t field[FDRI_OTF2_FIELDS];
};

/* ---- the way of an event ---- */

/* Records an event, in the location of its writer. */
void fdri_otf2_submit(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r);
void fdri_otf2_record(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r);
/* The newest event of a writer is recorded when this returns. */
void fdri_otf2_finish(struct fdri_otf2_writer *w);
void fdri_otf2_end_queue(struct fdri_otf2_writer *w);
/* The writer whose events this thread records itself. */
extern __thread struct fdri_otf2_writer *fdri_otf2_mine;

/* The region of fdr for a reference; it is defined if it is new. */
fdr_region fdri_otf2_region_id(struct fdri_otf2_archive *a, OTF2_RegionRef ref);
struct fdri_otf2_metric *fdri_otf2_metric_id(struct fdri_otf2_archive *a, OTF2_MetricRef ref, uint8_t count,
                                             const OTF2_Type *type);
uint32_t fdri_otf2_comm_id(struct fdri_otf2_archive *a, OTF2_CommRef ref);
uint32_t fdri_otf2_handle_id(struct fdri_otf2_archive *a, OTF2_IoHandleRef ref);
uint32_t fdri_otf2_parameter_id(struct fdri_otf2_archive *a, OTF2_ParameterRef ref, bool is_signed);
fdr_event_type fdri_otf2_type(enum fdri_otf2_kind kind);
/* The kind whose user event has this id; FDRI_OTF2_NONE: none. */
enum fdri_otf2_kind fdri_otf2_kind_of(fdr_event_type type);
uint32_t fdri_otf2_operation(uint32_t collective); /* fdr's number of a collective operation of OTF2 */
uint32_t fdri_otf2_collective(uint32_t operation); /* and back */

/* Writes the recorded events of all writers into the real archive. */
void fdri_otf2_write_back(struct fdri_otf2_archive *a);

#endif
