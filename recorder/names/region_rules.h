/* SPDX-License-Identifier: MIT */
/* Rules about regions: those of FDR_FILTER (filter_rules.c), and the regions that the governor muted (mutes.c). */
#ifndef FDRI_RECORDER_NAMES_REGION_RULES_H
#define FDRI_RECORDER_NAMES_REGION_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/names/names.h"

/* The decision of FDR_FILTER about a region: which of its calls are stored. */
struct fdri_names_rule {
    uint8_t mode;
    uint32_t count;
    uint64_t min_ns;
};
enum {
    FDRI_NAMES_RULE_NONE = 0,
    FDRI_NAMES_RULE_EXCLUDE,
    FDRI_NAMES_RULE_FIRST,
    FDRI_NAMES_RULE_EVERY,
    FDRI_NAMES_RULE_MIN,
    FDRI_NAMES_RULE_COUNTERS,
    FDRI_NAMES_RULE_ITERATIONS, /* whole iterations: each `count`th; 0: those that differ */
    FDRI_NAMES_RULE_MUTED       /* no rule of the file, but the governor: of each `count` calls one has a time */
};
/* Each call of the region is recorded as any other, and its leaves find it. */
static inline bool fdri_names_rule_records_all(const struct fdri_names_rule *rule)
{
    return rule->mode == FDRI_NAMES_RULE_COUNTERS || rule->mode == FDRI_NAMES_RULE_ITERATIONS;
}
/* Reads the file FDR_FILTER before a recording begins. edges: counters are read at the edges of calls, namely of the
 * regions whose names match edge_regions. */
void fdri_names_rules_load(const char *path, bool edges, const char *edge_regions);
void fdri_names_rules_define(uint32_t region, const struct fdri_names_called *called, const char *file,
                             bool by_address);
/* The names of a function are known, after threads have called it. True: a rule applies to it from now on. Threads that
 * have a row of it go on recording its calls until they adopt the rule, after fdri_names_mutes_changed. */
bool fdri_names_rules_decide_late(uint32_t region, const struct fdri_names_called *called);
const struct fdri_names_rule *fdri_names_rule_of(uint32_t region); /* NULL: none, for the calling thread */
/* The same, or that of a muted region. */
const struct fdri_names_rule *fdri_names_rule_now(uint32_t region);
const char *fdri_names_rule_pattern(const struct fdri_names_rule *rule); /* of a rule of the file */
bool fdri_names_rules_loaded(void);                                      /* did the file have rules? */
bool fdri_names_rules_any(void);                                         /* may regions have rules, or be muted? */
bool fdri_names_is_ruled(uint32_t region);                               /* does it have a rule, for whatever thread? */
bool fdri_names_rules_named(void); /* is there a rule about the names of functions? */
void fdri_names_rules_patterns(void (*each)(const char *pattern, bool exact)); /* those of names of functions */
/* Calls back for each pattern that no region has matched so far. */
void fdri_names_rules_unmatched(void (*each)(const char *where, const char *pattern));
bool fdri_names_rules_phases(void);
bool fdri_names_rules_phase(const char *name);

/* Regions that the governor muted. Only fdr's own thread changes them; threads adopt a change when they see the version
 * (record/adopt_mutes.c). */
enum { FDRI_NAMES_MUTE_PERIOD = 256 };
extern uint32_t fdri_names_mutes_version __attribute__((visibility("hidden"))); /* atomic; rises with each change */
bool fdri_names_mutes_start(bool on); /* forgets all mutes; false: no memory */
void fdri_names_mute(uint32_t region, bool muted);
void fdri_names_mutes_changed(void);        /* makes the changes known to threads */
bool fdri_names_is_muted(uint32_t region);  /* now */
bool fdri_names_was_muted(uint32_t region); /* now, or before */

#endif
