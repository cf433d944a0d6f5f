/* SPDX-License-Identifier: MIT */
/* Ordinals of messages and collectives: counted for the whole process in tallies, from MPI_Init on, whatever is
 * recorded. numbers.c counts; receive_order.c knows which receives wait for an earlier receive from any source. */
#ifndef FDRI_MPI_NUMBERS_H
#define FDRI_MPI_NUMBERS_H
#include <fdr/fdr.h>
#include <fdr/tally.h>
#include <stdbool.h>
#include <stdint.h>

struct fdri_mpi_members;
enum fdri_mpi_topology { FDRI_MPI_NO_TOPOLOGY, FDRI_MPI_CART, FDRI_MPI_GRAPH, FDRI_MPI_DIST_GRAPH };

/* The state by which a communicator numbers its messages. */
struct fdri_mpi_order {
    uint64_t identity;           /* equal on all ranks; 0: not known, so nothing of it is numbered */
    uint32_t created;            /* communicators made of it */
    uint32_t windows;            /* windows made of it */
    uint64_t completing;         /* of a window: synchronizations so far that complete operations */
    uint32_t posting;            /* receives being posted now; counted only if several threads may call MPI */
    uint32_t wild;               /* receives from any source or with any tag so far */
    uint32_t first, last, count; /* waiting receives: 1 + place; receive_order.c */
    uint32_t users;              /* MPI, while the communicator is not freed; open requests; waiting receives */
    bool lasting;                /* never freed */
    uint8_t topology;            /* enum fdri_mpi_topology */
    bool lost;                   /* the order of its receives is not known any more */
    fdr_tally collectives;       /* its row; 0: not looked for */
    fdr_tally volume;            /* the row of their bytes; 0: not looked for */
};

enum fdri_mpi_numbered { FDRI_MPI_UNNUMBERED, FDRI_MPI_NUMBERED, FDRI_MPI_AMBIGUOUS };
/* One message of an envelope. */
struct fdri_mpi_number {
    fdr_tally row;
    uint64_t n;
    uint8_t state;
    bool posting; /* its posting is counted as under way */
};

/* ---- numbers.c ---- */
void fdri_mpi_numbers_start(bool by_session); /* MPI begins: counting begins */
bool fdri_mpi_numbers_threads(void);          /* may several threads call MPI at once? */
uint64_t fdri_mpi_numbers_buffer(void);       /* bytes of the buffer; 0: nothing records */
bool fdri_mpi_numbers_count(const struct fdri_mpi_members *group);
/* Have the communicators that the program made filled their share of the tallies? Further ones get no identity. */
bool fdri_mpi_numbers_full(void);
/* Something of a communicator without an identity: what, as the counters of `messages` (-1: it was made). Readers know
 * then that a communicator without counters need not be one without messages. */
void fdri_mpi_numbers_uncounted(int what);
enum { FDRI_MPI_SENT, FDRI_MPI_RECEIVED };
/* Takes the next number of the envelope, before MPI is called. peer: world rank. posting: the call posts it, and
 * fdri_mpi_number_posted follows. */
struct fdri_mpi_number fdri_mpi_number_take(int direction, const struct fdri_mpi_members *group, uint32_t peer, int tag,
                                            bool posting);
/* MPI has the message; others of its envelope that were posted meanwhile make it ambiguous. */
void fdri_mpi_number_posted(struct fdri_mpi_number *number);
/* MPI did not take it. */
void fdri_mpi_number_undo(struct fdri_mpi_number *number);
/* As fdr_message_send_nth has it. */
uint64_t fdri_mpi_number_ordinal(const struct fdri_mpi_number *number);
/* Adds to the bytes of its envelope. */
void fdri_mpi_number_bytes(const struct fdri_mpi_number *number, uint64_t bytes);
/* A send was cancelled. */
void fdri_mpi_number_hole(const struct fdri_mpi_number *number);
/* From this number on nothing of the envelope is sure. */
void fdri_mpi_number_stop(const struct fdri_mpi_number *number);
/* The collective that begins now on the communicator; FDR_ORDINAL_UNKNOWN. root: world rank; UINT32_MAX: none. */
uint64_t fdri_mpi_collective_begins(const struct fdri_mpi_members *group, uint32_t operation, uint32_t root);
void fdri_mpi_collective_ended(const struct fdri_mpi_members *group);
/* A collective ended, with an ordinal or without: adds its bytes. */
void fdri_mpi_collective_bytes(const struct fdri_mpi_members *group, uint64_t sent, uint64_t received);

/* ---- receive_order.c ---- */
struct fdri_mpi_receive {
    const struct fdri_mpi_members *group; /* NULL: not to be recorded */
    uint32_t peer;                        /* world rank, if `any_source` is not set */
    int tag;                              /* below 0: any */
    bool any_source, later;               /* later: numbered when it completes */
    bool counted;                         /* its posting is counted in its communicator */
    uint32_t wild;                        /* of the communicator when it was posted */
    uint32_t place;                       /* 1 + place among the waiting ones; 0: none */
    struct fdri_mpi_number number;
};
/* Before MPI is called. blocking: the call returns when the message is there. */
void fdri_mpi_receive_posts(struct fdri_mpi_receive *r, bool blocking);
void fdri_mpi_receive_posted(struct fdri_mpi_receive *r, bool failed);
/* It has got a message of this envelope. Records it. */
void fdri_mpi_receive_completed(struct fdri_mpi_receive *r, uint32_t peer, int tag, uint64_t bytes);
/* After the cancelling of `number`: moves down the number of a pending receive of the envelope behind it. */
void fdri_mpi_receive_move_down(struct fdri_mpi_receive *r, const struct fdri_mpi_number *number);
/* It was cancelled, or may have been: nobody knows yet. */
void fdri_mpi_receive_unsure(struct fdri_mpi_receive *r);
/* It was cancelled, and got none. */
void fdri_mpi_receive_cancelled(struct fdri_mpi_receive *r);
/* Its completion will not be seen. */
void fdri_mpi_receive_forgotten(struct fdri_mpi_receive *r);

#endif
