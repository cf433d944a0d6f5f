/* SPDX-License-Identifier: MIT */
/* fdr suggest: which functions to leave out of the next recording. */
#include "tools/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/short_names.h"

enum output { TEXT, JSON, RULES, FLAGS, CMAKE };
enum { OPTION_RULES = 0x1000, OPTION_FLAGS, OPTION_CMAKE, OPTION_KEEP_TIME, OPTION_EVENTS };

struct arguments {
    const char *path, *out;
    enum output as;
    struct suggest_limits limits;
};

static const struct argp_option options[] = {
    {"rules", OPTION_RULES, 0, 0, "As a file of rules for FDR_FILTER", 0},
    {"flags", OPTION_FLAGS, 0, 0, "As the option of gcc that leaves the hooks of these functions out", 0},
    {"cmake", OPTION_CMAKE, 0, 0, "The same for a CMakeLists.txt to include", 0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {"output", 'o', "FILE", 0, "Into this file instead of standard output", 0},
    {"keep-time", OPTION_KEEP_TIME, "PERCENT", 0,
     "Keep so much of the time shown (95). Functions of at most 128 ns do not count. 0: there is no limit, and long "
     "functions may go, too",
     0},
    {"events", OPTION_EVENTS, "PERCENT", 0, "Stop when so many of the events are gone (95)", 0},
    {0}};

static double parse_percent(struct argp_state *state, const char *option, const char *text)
{
    char *end;
    double percent = strtod(text, &end);
    if (*end == '%') end++;
    if (end == text || *end || !(percent >= 0 && percent <= 100))
        argp_error(state, "%s: not a percentage: '%s'", option, text);
    return percent;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    enum output as = TEXT;
    switch (key) {
    case OPTION_RULES: as = RULES; break;
    case OPTION_FLAGS: as = FLAGS; break;
    case OPTION_CMAKE: as = CMAKE; break;
    case 'j': as = JSON; break;
    case 'o': a->out = text; return 0;
    case OPTION_KEEP_TIME: a->limits.keep_time = parse_percent(state, "--keep-time", text); return 0;
    case OPTION_EVENTS: a->limits.most_events = parse_percent(state, "--events", text); return 0;
    case ARGP_KEY_ARG:
    case ARGP_KEY_END: return one_file(state, key, text, &a->path);
    default: return ARGP_ERR_UNKNOWN;
    }
    if (a->as != TEXT && a->as != as) argp_error(state, "only one of --rules, --flags, --cmake, --json");
    a->as = as;
    return 0;
}

static int print(const struct arguments *a, const struct suggestion *s, const struct fdr_file *file)
{
    if (s->unknown && a->as != TEXT && a->as != JSON) {
        complain("%s: nothing can be suggested: %s", a->path, s->unknown);
        return COULD_NOT;
    }
    if (a->out && strcmp(a->out, "-")) {
        int may = may_write(a->out, &a->path, 1);
        if (may != DONE) return may;
        if (!freopen(a->out, "w", stdout)) {
            complain("%s: %s", a->out, strerror(errno));
            return COULD_NOT;
        }
    }
    switch (a->as) {
    case JSON: return suggest_json(s, file);
    case RULES: return suggest_rules(s, file);
    case FLAGS: return suggest_flags(s);
    case CMAKE: return suggest_cmake(s);
    default: return suggest_text(s, file);
    }
}

int verb_suggest(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE",
                                     "Which functions to leave out of the next recording: short, frequent, alike ones, "
                                     "and how much of the events and "
                                     "of the time shown goes with them. Figures are those of the exact totals.",
                                     children,
                                     NULL,
                                     NULL};
    struct arguments a = {.limits = {95, 95}};
    struct suggestion s;
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct fdr_file *file = open_recording(a.path, &status);
    if (!file) return status;
    if (!suggest_choose(&s, file, &a.limits)) {
        complain("%s: out of memory", a.path);
        status = COULD_NOT;
    } else {
        status = worse(status, print(&a, &s, file));
        if (s.unknown) status = worse(status, COULD_NOT);
    }
    suggest_free(&s);
    return worse(status, close_recording(file, a.path, false));
}
