/* SPDX-License-Identifier: MIT */
/* fdr messages: sends and receives of a job, matched. */
#include "tools/messages.h"

#include <stdlib.h>

#include "tools/common/terminal.h"

struct arguments {
    const char **paths;
    size_t count;
    bool json, pairs, all;
};

static const struct argp_option options[] = {{"pairs", 'p', 0, 0, "Each matched message", 0},
                                             {"all", 'a', 0, 0, "Every envelope, not only those with most messages", 0},
                                             {"json", 'j', 0, 0, "As JSON", 0},
                                             {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'p': a->pairs = true; return 0;
    case 'a': a->all = true; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG: a->paths[a->count++] = text; return 0;
    case ARGP_KEY_NO_ARGS: argp_error(state, "no FILE given"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int verb_messages(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "FILE...",
        "Messages of the ranks of a job, one file for each: which send belongs to which receive, and why others have "
        "no partner. Message n of the sender is message n of the receiver, whatever either file has given back.",
        NULL,
        NULL,
        NULL};
    struct arguments a = {.paths = calloc((size_t)argc + 1, sizeof *a.paths)};
    struct job job = {0};
    int status = DONE;
    if (!a.paths) return COULD_NOT;
    parse_arguments(&argp, argc, argv, &a);
    if (messages_load(&job, a.paths, a.count, &status)) {
        messages_match(&job);
        status = worse(status, messages_print(&job, a.json, a.pairs, a.all));
        static const char *const next[] = {"hang", "findings", "html -o page.html", NULL};
        if (!a.json && !messages_none(&job)) print_hint(next, a.count == 1 ? plain_name(a.paths[0]) : "FILE...");
    } else {
        status = COULD_NOT;
    }
    messages_free(&job);
    free(a.paths);
    return status;
}
