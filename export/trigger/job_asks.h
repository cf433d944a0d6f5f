/* SPDX-License-Identifier: MIT */
/* Snapshots of a whole job: one rank asks, all ranks take theirs, the asking rank says who was not reached.
 *
 *   job_asks.c  the files by which ranks ask and answer     job_answers.c  what these files say; pure
 *
 * An ask is a file in the live directory, for the ranks of this node, and in FDR_DIR, for those of other nodes. fdr's
 * thread of each rank looks for both once a second. Each rank appends a line to them when it has its snapshot. */
#ifndef FDRI_EXPORT_TRIGGER_JOB_ASKS_H
#define FDRI_EXPORT_TRIGGER_JOB_ASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/snapshot/snapshot.h"

/* ---- job_asks.c: for the dumper thread ---- */
void fdri_trigger_job_start(void);
/* Asks all other ranks, then takes the snapshot as fdri_snapshot_take does. In a process without a job it says so once,
 * and takes its own. */
int fdri_trigger_job_take(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota);
/* Serves the asks of others. Says the result of the own one when all have answered, or after some seconds. Returns the
 * time of its next call. last: the recording ends; says what is known. */
uint64_t fdri_trigger_job_look(uint64_t now_ns, bool last);

/* ---- job_answers.c ---- */
enum { FDRI_TRIGGER_RANKS = 65536 };
struct fdri_trigger_ask {
    uint64_t id, at_ns; /* at_ns: since 1970 */
    int rank;
    char host[64], reason[160];
};
/* The first two lines of an ask's file. Returns their length. */
size_t fdri_trigger_ask_write(const struct fdri_trigger_ask *ask, char *text, size_t bytes);
bool fdri_trigger_ask_read(const char *text, struct fdri_trigger_ask *ask);
struct fdri_trigger_answers {
    uint8_t *answered; /* a byte for each rank: 1 it answered, 2 it could take no snapshot */
    uint32_t size;     /* of the job; 0: not known */
    uint32_t taken, failed;
};
/* Adds the answers in a file; a rank counts once. */
void fdri_trigger_answers_add(struct fdri_trigger_answers *a, const char *text);
bool fdri_trigger_answers_all(const struct fdri_trigger_answers *a);
/* "7 of 8 ranks took a snapshot; not reached: 3" */
void fdri_trigger_answers_say(const struct fdri_trigger_answers *a, char *text, size_t bytes);

#endif
