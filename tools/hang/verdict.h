/* SPDX-License-Identifier: MIT */
/* The verdict on a job: who is behind, who waits, and how sure that is. */
#ifndef FDRI_TOOLS_HANG_VERDICT_H
#define FDRI_TOOLS_HANG_VERDICT_H

#include "tools/hang/job_facts.h"

enum judgement { NOTHING, SLOW, UNDECIDED, HANG };
#define HANG_LEAST_WAIT_NS 1000000000u /* shorter waits are usual */

enum hang_kind {
    BY_STOPPED,
    BY_COMPUTING,
    BY_IO,
    BY_LOCK,
    BY_MISMATCH,
    BY_CYCLE,
    BY_DEAD,
    BY_ENDED,
    BY_ABSENT,
    BY_UNKNOWN
};
enum rank_class {
    IS_STOPPED,
    IS_COMPUTING,
    IS_WAITING,
    IS_IN_IO,
    IS_ON_LOCK,
    IS_ENDED,
    IS_DEAD,
    IS_MISMATCHED,
    IS_IN_CYCLE,
    IS_ABSENT,
    IS_UNKNOWN
};

/* Whom a rank waits for. all: for each of them, so one that never comes is enough; else for at least one. */
struct edges {
    const uint32_t *to; /* indices of job->rank */
    size_t count;
    bool all;
    bool open;    /* members without a recording, or with one that is too old, may be meant as well */
    size_t group; /* of a collective: index of the group; SIZE_MAX: of none */
    uint32_t one; /* room for a single one */
};
/* The ranks that stand in one collective: the same communicator and ordinal. */
struct group {
    uint64_t comm, ordinal, since_ns, last_since_ns, seen_ns;
    uint32_t operation, root;
    bool told;        /* who is behind was found */
    bool mismatch;    /* some call another operation, or name another root */
    uint32_t *behind; /* indices of those that have not begun it */
    size_t behinds;
    size_t absent; /* members of whom that is not known */
    uint32_t first_absent;
    size_t waiting;
};
struct finding {
    enum hang_kind kind;
    enum judgement judgement;
    uint32_t *behind, *waiting; /* world ranks, ascending */
    size_t behinds, waitings;
    uint64_t comm, ordinal, since_ns; /* of those that wait directly. comm 0, ordinal UINT64_MAX: no collective */
    uint32_t operation;
    int32_t tag;
    uint32_t peer;
    enum fdr_mpi_wait wait;
    size_t one, waits; /* index of one that is behind (job->ranks: it has no recording); of one that waits for it */
};
struct verdict {
    enum judgement judgement;
    struct finding *finding; /* the most important first */
    size_t findings;
    struct edges *edges; /* of each rank */
    struct group *group;
    size_t groups;
    enum rank_class *class_of; /* of each rank with a recording */
    uint64_t now_ns;           /* the newest moment */
    size_t told;               /* index of the one that the sentence is about; job->ranks: it is about none */
    char why[256], sentence[512];
};

/* False: out of memory. */
bool hang_judge(const struct job *job, struct verdict *v);
void hang_verdict_free(struct verdict *v);

/* ---- edges.c ---- */
bool hang_find_edges(const struct job *job, struct verdict *v);
/* Another rank waits for `to` since `since_ns`. Is the recording of `to` recent enough to count against it? Not if it
 * was seen before that wait, or so long ago that it may have gone on. */
bool hang_is_recent(const struct job_rank *to, uint64_t since_ns, uint64_t seen_ns);
/* "Allreduce": an operation that nobody leaves before all have begun it. */
bool hang_needs_all(const char *operation);
/* r ended before the rank `before` was last seen, and not by the signal that ended `before`, too. */
bool hang_is_gone(const struct job_rank *r, const struct job_rank *before);

/* ---- proof.c: stuck[i]: rank i can never go on. seeds: also because of those that are gone, stopped or in
 * MPI_Finalize; else only as those in a cycle wait for each other. ---- */
void hang_find_stuck(const struct job *job, const struct verdict *v, bool seeds, bool *stuck);

uint64_t hang_limit(const struct job *job, const struct job_rank *r); /* judge.c: of standing */

/* ---- verdict_sentence.c ---- */
void hang_say(const struct job *job, struct verdict *v);
/* The class of a rank in a word: those outside of MPI by what they do there, as far as it is known. */
const char *hang_class_text(enum rank_class c, const struct job_rank *r);
/* One finding, for print.c: the sentence, and why it is judged so. */
void hang_say_finding(const struct job *job, const struct verdict *v, const struct finding *f, char *text,
                      size_t bytes);
void hang_say_why(const struct job *job, const struct finding *f, char *text, size_t bytes);
const char *hang_time_text(uint64_t ns, char text[24]); /* "31.2 s" */
/* "3", "0-2, 7" */
const char *hang_ranks_text(const uint32_t *rank, size_t count, char *text, size_t bytes);
/* "MPI_Allreduce #4711 on MPI_COMM_WORLD" */
const char *hang_call_text(const struct job *job, const struct job_wait *w, char *text, size_t bytes);
extern const char *const hang_kind_name[], *const rank_class_name[], *const judgement_name[];

#endif
