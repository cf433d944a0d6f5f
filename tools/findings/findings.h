/* SPDX-License-Identifier: MIT */
/* The findings of a recording, each with its evidence, and how sure it is. "Nothing" is an answer.
 *
 *   findings.c    gathers and ranks all kinds       findings_verb.c  fdr findings
 *   run_facts.c   what every kind needs to know     outliers_verb.c  fdr outliers
 *   outlier_calls.c  kept calls unlike their region's others, and what ran inside
 *   One file a kind: growth.c, imbalance.c, slow_calls.c (outlier and periodic), returning.c
 *   (periodic by count), waiting.c, standing.c (hang),
 *   loss.c, death.c (crash). between_ranks.c: of several recordings of one job.
 *
 * A kind is a function of the recording alone. Totals and epochs are exact, so they come first; kept calls add places.
 *
 * Neighbours: the verbs above, tools/story/ and tools/html/ use it; recordings are read through fdr/reader.h alone. */
#ifndef FDRI_TOOLS_FINDINGS_H
#define FDRI_TOOLS_FINDINGS_H

#include "tools/common/verbs.h"

enum finding_kind {
    FINDING_GROWTH,
    FINDING_IMBALANCE,
    FINDING_PERIODIC,
    FINDING_OUTLIER,
    FINDING_WAIT,
    FINDING_LOSS,
    FINDING_HANG,
    FINDING_CRASH
};
enum { FINDING_TEXT = 400, FINDING_LOCATIONS = 32, FINDING_EVIDENCE = 4, NOT_JUDGED = 12 };

struct finding {
    enum finding_kind kind;
    char sentence[FINDING_TEXT];
    uint32_t region;    /* UINT32_MAX: it is about none */
    uint32_t waited_in; /* where other threads wait for it; UINT32_MAX: not known */
    uint32_t location[FINDING_LOCATIONS];
    size_t locations;            /* 0: all */
    size_t file;                 /* between ranks: index of the recording that it is about; SIZE_MAX: all of them */
    int rank[FINDING_LOCATIONS]; /* between ranks: those that it is about */
    size_t ranks, ranks_in_all;  /* how many of them stand in rank[] */
    uint64_t from_ns, to_ns;     /* where it shows; 0, 0: the whole run */
    double value;
    const char *unit;  /* of value */
    double share;      /* of the run's length: what it cost one thread; 0: unknown */
    double sure;       /* 0 to 1 */
    double weight;     /* the greatest comes first */
    double longest_ns; /* of an outlier: its duration; else 0 */
    char evidence[FINDING_EVIDENCE][FINDING_TEXT];
    size_t evidences;
};
struct findings {
    struct finding *row;
    size_t count, room;
    struct {
        char what[64], why[360];
    } not_judged[NOT_JUDGED];
    size_t not_judged_count;
    bool failed; /* out of memory: some are missing */
};

/* Finds all of one recording, the weightiest first. `path`: of the file. */
void findings_of(struct fdr_file *file, const char *path, struct findings *findings);
/* Finds what the ranks of one job show only beside each other: their exact totals, not their clocks. */
struct job_part {
    struct fdr_file *file;
    const char *path;
};
void job_findings_of(const struct job_part *part, size_t count, struct findings *findings);
void findings_free(struct findings *findings);
const char *finding_kind_name(enum finding_kind kind);
json_t *findings_json(const struct fdr_file *file, const struct findings *findings);
json_t *job_findings_json(const struct job_part *part, const struct findings *findings);

/* ---- for the kinds ---- */

/* A new row, zero apart from kind and weight. NULL: out of memory. */
struct finding *add_finding(struct findings *findings, enum finding_kind kind, double weight);
/* Appends to the sentence, which is cut to its room. */
void say(struct finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void add_evidence(struct finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void add_location(struct finding *finding, uint32_t location);
void cannot_judge(struct findings *findings, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
