/* SPDX-License-Identifier: MIT */
/* fdr suggest, between its files: suggest.c has the verb, suggest_choice.c the choice, suggest_print.c the output. */
#ifndef FDRI_TOOLS_SUGGEST_H
#define FDRI_TOOLS_SUGGEST_H

#include "tools/common/verbs.h"

struct suggest_function {
    const char *name, *shown; /* whole; for people */
    const uint32_t *region;   /* its definitions: of several libraries, or copies that the compiler made */
    size_t regions;
    uint64_t calls, exclusive_ns, inclusive_ns, max_ns; /* of timed calls */
    uint64_t typical_ns; /* half of the calls are at most that long, by the histogram; 0: unknown */
    bool alike;          /* at most one call in a hundred is much longer than the typical one */
    bool hooked;         /* known by address: compiler's hooks, so that gcc's list can leave it out */
    bool chosen;
    bool by_rules;    /* rules can name it */
    char *printed;    /* as gcc prints it, as far as known; NULL: not hooked, or no name */
    char *item;       /* for gcc's list; NULL: none */
    bool by_gcc;      /* chosen, and in gcc's list */
    bool collateral;  /* not chosen, but an item of gcc's list matches it */
    const char *why;  /* chosen, but not in gcc's list */
    const char *harm; /* with `why`: shown name of a function worth keeping that the item would leave out, too */
};
struct suggest_sum {
    size_t functions;
    double events, time; /* shares, 0 to 1 */
};
struct suggestion {
    struct suggest_function *function; /* chosen ones first, in the order of the choice */
    uint32_t *region;
    size_t count, chosen;
    uint64_t events, time_ns; /* of the whole run: events of timed calls, points; exclusive time */
    uint64_t rest_calls, untimed;
    struct suggest_sum all, rules, gcc;
    const char *unknown; /* why nothing can be said; NULL: it can */
};
struct suggest_limits {
    double keep_time, most_events; /* percent; keep_time 0: no limits but most_events */
};
/* False: out of memory. */
bool suggest_choose(struct suggestion *s, const struct fdr_file *file, const struct suggest_limits *limits);
void suggest_free(struct suggestion *s);
double suggest_share(uint64_t part, uint64_t whole);
/* Can a rule `exclude exact NAME` name it? */
bool suggest_rule_can_name(const char *symbol);
/* Does this item of gcc's list match the function? */
bool suggest_matches(const struct suggest_function *of_item, const struct suggest_function *f);

int suggest_text(const struct suggestion *s, const struct fdr_file *file);
int suggest_json(const struct suggestion *s, const struct fdr_file *file);
int suggest_rules(const struct suggestion *s, const struct fdr_file *file);
int suggest_flags(const struct suggestion *s);
int suggest_cmake(const struct suggestion *s);

#endif
