/* SPDX-License-Identifier: MIT */
/* fdr version: the version, and with --build how this build was made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fdr/fdr.h>

#include "tools/common/verbs.h"

struct arguments {
    bool build, json;
};

static const struct argp_option options[] = {
    {"build", 'b', 0, 0, "Also how this build was made and what it has", 0}, {"json", 'j', 0, 0, "As JSON", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'b': a->build = true; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG: argp_error(state, "takes no argument: '%s'", text); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Turns lines "name: value" into an object. */
static json_t *build_object(void)
{
    json_t *object = json_object();
    char *text = strdup(fdr_build()), *rest = NULL;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        char *colon = strchr(line, ':');
        if (!colon) continue;
        *colon = '\0';
        json_object_set_new(object, line, json_text(colon + 1 + strspn(colon + 1, " ")));
    }
    free(text);
    return object;
}

static int print_object(bool build)
{
    json_t *object = json_object();
    json_object_set_new(object, "version", json_text(FDR_VERSION_STRING));
    json_object_set_new(object, "recorder", json_text(fdr_version()));
    json_object_set_new(object, "reader", json_text(fdr_reader_version()));
    if (build) json_object_set_new(object, "build", build_object());
    return print_json(object);
}

int verb_version(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, "The version of the command and of its libraries.",
                                     NULL,    NULL,  NULL};
    struct arguments a = {0};
    parse_arguments(&argp, argc, argv, &a);
    if (a.json) return print_object(a.build);
    printf("fdr %s\n", FDR_VERSION_STRING);
    if (strcmp(fdr_version(), FDR_VERSION_STRING) != 0) printf("libfdr: %s\n", fdr_version());
    if (strcmp(fdr_reader_version(), FDR_VERSION_STRING) != 0) printf("libfdr-reader: %s\n", fdr_reader_version());
    if (a.build) fputs(fdr_build(), stdout);
    return finish_output();
}
