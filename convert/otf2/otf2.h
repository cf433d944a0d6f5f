/* SPDX-License-Identifier: MIT */
/* OTF2 archives, written by OTF2's own library. Files of this room:
 *
 *   archive_otf2.c      the archive as a whole: its files, errors, order of the parts; one writer open at a time
 *   archive_none.c      what is there of it in a build without OTF2
 *   events_otf2.c       each event of a location as an event of OTF2
 *   requests_otf2.c     which messages do not block
 *   one_sided_otf2.c    windows, and operations on them until they are complete
 *   definitions_otf2.c  strings, regions, metrics, stacks: written when an event first needs them
 *   groups_otf2.c       communicators, and how peers are named in them
 *   places_otf2.c       hosts, processes, threads, with their accounts as properties
 *
 * docs/EXPORT.md says what becomes of what. Neighbours: convert/ below. */
#ifndef FDRI_CONVERT_OTF2_OTF2_H
#define FDRI_CONVERT_OTF2_OTF2_H

#include <fdr/reader.h>
#include <otf2/otf2.h>

#include "convert/interned.h"
#include "convert/partners.h"

/* Attributes of events, for what OTF2's records have no field for. */
enum fdri_otf2_attribute {
    FDRI_OTF2_REPAIRED, /* the reader added this enter or leave */
    FDRI_OTF2_ORDINAL,  /* of a message or collective, where it has no partner here */
    FDRI_OTF2_WEIGHT,   /* of a sample: periods that it stands for */
    FDRI_OTF2_OFFSET,   /* of io: place in the file */
    FDRI_OTF2_ERRNO,    /* of io */
    FDRI_OTF2_OTHER,    /* the peer's world rank, outside of all recordings */
    FDRI_OTF2_ATTRIBUTES
};

/* One recording among those of the archive. */
struct fdri_otf2_process {
    struct fdr_file *file;
    const struct fdr_select *select;
    uint64_t shift_ns;             /* to the archive's time line */
    OTF2_LocationRef first, main_; /* number of the location with id 0; number of the one that stands for its rank */
    uint32_t node;                 /* system tree node of its host */
    uint32_t *region;              /* OTF2's number for each region id; UINT32_MAX: none yet */
    size_t regions;
};

struct fdri_otf2 {
    OTF2_Archive *archive;
    OTF2_GlobalDefWriter *def;
    int error; /* the first one, as -errno */
    struct fdri_otf2_process *process;
    size_t processes;
    struct fdri_convert_partners *partners;
    OTF2_LocationRef end;    /* the first number behind all locations of recordings */
    uint64_t from_ns, to_ns; /* of the events written, on the archive's time line */
    uint64_t *written;       /* events of each location, in the order of files and locations */
    size_t locations;
    struct fdri_convert_interned strings, regions, members, metrics, parameters, contexts, generators, comms, hosts, io;
    struct fdri_otf2_comm *comm; /* of each comm */
    size_t comm_room;
    uint32_t groups; /* of communicators */
    struct fdri_otf2_one_sided *one_sided;
    /* the location under way */
    size_t at; /* its process */
    OTF2_EvtWriter *writer;
    OTF2_AttributeList *list;
    uint32_t generator;          /* of its samples; UINT32_MAX: not known yet */
    struct fdri_otf2_operation { /* io under way, the newest last */
        uint32_t handle, operation;
        uint64_t number;
    } operation[16];
    uint32_t operations;
    uint64_t operation_number;
    struct fdri_otf2_requests {
        uint64_t given_back_ns; /* messages up to this time may have been given back */
        uint64_t id, what;      /* of the message that comes next; what 0: not known */
        uint64_t open[4096];    /* what was begun here and may be completed: ids of sends, and of receives */
        bool receive[4096];
        uint32_t count;
    } requests;
};

/* Keeps the first error of the library's calls. */
void fdri_otf2_check(struct fdri_otf2 *o, OTF2_ErrorCode code);
/* Writes one event of the location under way. */
void fdri_otf2_event(struct fdri_otf2 *o, const struct fdr_read_event *e);

/* A location begins; an event fdr.request; any other event. */
void fdri_otf2_requests_begin(struct fdri_otf2 *o, uint32_t location);
void fdri_otf2_requests_event(struct fdri_otf2 *o, const struct fdr_read_event *e);
void fdri_otf2_requests_other(struct fdri_otf2 *o, const struct fdr_read_event *e);
/* Does this message belong to a request that may be named? */
bool fdri_otf2_requests_of(struct fdri_otf2 *o, const struct fdr_read_event *e, uint64_t *id);

/* The same of fdr.rma; false: OTF2 cannot say it. Defines windows, behind communicators. */
bool fdri_otf2_one_sided_open(struct fdri_otf2 *o);
void fdri_otf2_one_sided_close(struct fdri_otf2 *o);
void fdri_otf2_one_sided_begin(struct fdri_otf2 *o);
bool fdri_otf2_one_sided_event(struct fdri_otf2 *o, const struct fdr_read_event *e);
void fdri_otf2_windows(struct fdri_otf2 *o);

/* Numbers of definitions, which are written if they are new. */
uint32_t fdri_otf2_string(struct fdri_otf2 *o, const char *text);
uint32_t fdri_otf2_region(struct fdri_otf2 *o, const struct fdr_read_event *e);
/* A metric with one member, or an event with several fields. name: of a metric NULL, it is that of its only field. */
uint32_t fdri_otf2_metric(struct fdri_otf2 *o, const char *name, const struct fdr_field_info *fields, uint32_t count,
                          bool counter);
uint32_t fdri_otf2_parameter(struct fdri_otf2 *o, const char *name, OTF2_ParameterType type);
uint32_t fdri_otf2_stack(struct fdri_otf2 *o, const struct fdr_read_event *e);
uint32_t fdri_otf2_generator(struct fdri_otf2 *o, uint32_t location);
uint32_t fdri_otf2_io_handle(struct fdri_otf2 *o, uint32_t file_id);
/* Defines all attributes, before the events; adds one to the next event. */
void fdri_otf2_attributes(struct fdri_otf2 *o);
void fdri_otf2_attribute(struct fdri_otf2 *o, enum fdri_otf2_attribute attribute, uint64_t value);

/* alone: 0, or a number that says which ones may be paired in this communicator: nothing else is. */
enum { FDRI_OTF2_TOGETHER, FDRI_OTF2_ALONE, FDRI_OTF2_ALONE_RECEIVED };
/* The communicator for a message with this peer, and the peer's place in it. */
uint32_t fdri_otf2_comm(struct fdri_otf2 *o, uint32_t comm_id, uint32_t peer, unsigned alone, uint32_t *place);
/* The place of a rank among its own members; its group. */
bool fdri_otf2_place(const struct fdri_otf2 *o, uint32_t comm, uint32_t rank, uint32_t *place);
uint32_t fdri_otf2_group(const struct fdri_otf2 *o, uint32_t comm);
bool fdri_otf2_has_members(const struct fdr_comm_info *info);
/* The recording of a rank, or NULL. */
const struct fdri_otf2_process *fdri_otf2_process_of(const struct fdri_otf2 *o, uint32_t rank);
/* Hosts, before the events; processes, threads and communicators, behind them. */
void fdri_otf2_hosts(struct fdri_otf2 *o);
void fdri_otf2_processes(struct fdri_otf2 *o);
void fdri_otf2_comms(struct fdri_otf2 *o);
void fdri_otf2_comms_free(struct fdri_otf2 *o);
/* Markers of what reductions took. */
void fdri_otf2_reductions(struct fdri_otf2 *o);

#endif
