/* SPDX-License-Identifier: MIT */
/* fdr hang over the ranks of an MPI job: facts in, verdict out. Facts are what the recordings and the kernel say;
 * counters decide, stacks only explain.
 *
 *   load.c     recordings and processes to facts        edges.c     who waits for whom, as far as counters show it
 *   process_life.c  one process: its state, its progress     proof.c     who can never go on
 *   verdict.h  the verdict                              judge.c     who is behind, and what to call it
 *   verdict_sentence.c  the verdict in words            print.c, json.c  what the command shows
 *   rank_tree.c  open regions and native functions of all ranks, folded
 *   job_view.c the verdict beside other things: fdr html
 *   standing_threads.c, threads_json.c  processes without MPI: threads that stand, by locks and regions
 *
 * These are pure but for load, print and json: tests run them on made-up jobs with a clock of their own.
 * Neighbours: common/ below; recordings are read through fdr/reader.h alone. */
#ifndef FDRI_TOOLS_HANG_JOB_FACTS_H
#define FDRI_TOOLS_HANG_JOB_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fdr/reader.h>

enum tri { UNKNOWN = 0, NO, YES };
/* How the process ended. OUTSIDE: by a signal that others send to a whole job, or unseen. Such an end may be the result
 * of an earlier death, and not the cause of the others. */
enum hang_end { GOES_ON, LEFT, FAULT, OUTSIDE };
/* The state of a thread outside of MPI, as far as the kernel or its regions show it. */
enum hang_doing { COMPUTES, IN_IO, ON_LOCK, SLEEPS, STANDS, NOT_SEEN };

struct job_comm_state { /* the collectives of one communicator, on one rank */
    uint64_t comm, begun, ended;
};
struct job_envelope { /* messages counted for one envelope */
    uint64_t comm, count;
    uint32_t peer;
    int32_t tag;
    bool sent, unsure;
};
struct job_wait {
    bool in_call; /* the other fields are of that call */
    enum fdr_mpi_wait kind;
    uint64_t comm;            /* identity; 0: none, or not known */
    uint32_t operation, peer; /* as in struct fdr_mpi_thread_state; peer: also the root */
    int32_t tag;
    uint32_t pending;
    uint64_t ordinal, since_ns;
    char call[48], collective[24]; /* "MPI_Wait", and the name of the operation: "Allreduce" */
};
/* Times are ns since 1970, by the rank's host. */
struct job_rank {
    uint32_t rank;
    enum hang_end end;
    uint64_t end_ns;
    bool stopped;
    bool looked_twice; /* a process that runs: what is told of it holds for the time between the looks at all of them */
    uint64_t seen_ns;  /* the newest moment that is known of it */
    uint64_t moved_ns; /* its newest event */
    uint64_t longest_still_ns; /* longest time without an event that is over; 0: not known */
    enum tri moves, busy;      /* a counter went on; it uses processor time */
    enum hang_doing doing;
    bool counts;          /* its counters tell all messages and collectives since MPI_Init ... */
    bool leaves_out;      /* ... but for some communicators, of which it has no counters */
    uint32_t callers;     /* threads that called MPI */
    struct job_wait wait; /* of the thread that waits longest */
    struct job_comm_state *comm;
    size_t comms;
    struct job_envelope *envelope;
    size_t envelopes;
    char where[160], cause[48]; /* its innermost regions; the signal that it died of */
    const void *process;        /* of load.c; not looked at here */
};
#define JOB_WORLD 1u /* identity of MPI_COMM_WORLD */
struct job_comm {
    uint64_t identity;
    char name[64];
    uint32_t size;
    const uint32_t *member; /* world ranks; NULL: all ranks from 0 on */
};
struct job {
    struct job_rank *rank; /* those with a recording, ascending */
    size_t ranks;
    struct job_comm *comm;
    size_t comms;
    uint32_t world;    /* size; 0: not known */
    uint64_t after_ns; /* --after; 0: not said */
    size_t others;     /* recordings of other jobs, left out */
    bool doubled;      /* two processes of one rank run: the recordings are of several jobs */
};

/* The index of this world rank; job->ranks: it has no recording. */
size_t job_find(const struct job *job, uint32_t rank);
const struct job_comm *job_comm_of(const struct job *job, uint64_t identity);
uint32_t job_member(const struct job_comm *c, uint32_t i);
/* How many collectives of the communicator the rank has begun; UINT64_MAX: not known. */
uint64_t job_begun(const struct job_rank *r, uint64_t comm);

#endif
