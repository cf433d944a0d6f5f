/* SPDX-License-Identifier: MIT */
/* fdr recover: writes the readable part of a damaged recording as a complete one. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/verbs.h"

struct arguments {
    const char *path, *out;
    bool json;
};

static const struct argp_option options[] = {
    {"output", 'o', "OUT", 0,
     "The new recording. It replaces an existing file, but not the input; from a core file it replaces none", 0},
    {"json", 'j', 0, 0, "Report as JSON", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'o': a->out = text; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG: return one_file(state, key, text, &a->path);
    case ARGP_KEY_END:
        one_file(state, key, text, &a->path);
        if (!a->out) argp_error(state, "-o OUT is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int report(const struct arguments *a, const struct fdr_file *file, const char *message, bool json)
{
    if (!json) {
        for (size_t i = 0; i < fdr_file_damage_count(file); i++)
            printf("left out: %s\n", plain_name(fdr_file_damage(file, i)));
        printf("%s: recovered to %s%s%s\n", plain_name(a->path), plain_name(a->out), message[0] ? ": " : "",
               plain_name(message));
        return finish_output();
    }
    json_t *o = json_object(), *left = json_array();
    for (size_t i = 0; i < fdr_file_damage_count(file); i++)
        json_array_append_new(left, json_text(fdr_file_damage(file, i)));
    json_object_set_new(o, "file", json_text(a->path));
    json_object_set_new(o, "output", json_text(a->out));
    json_object_set_new(o, "message", json_text(message));
    json_object_set_new(o, "left_out", left);
    return print_json(o);
}

static bool is_core(const char *path)
{
    unsigned char head[18] = {0};
    struct stat st;
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL; /* opening a pipe would block */
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    return n == sizeof head && memcmp(head, "\177ELF", 4) == 0 && (head[16] == 4 || head[17] == 4); /* ET_CORE */
}

static int from_core(const struct arguments *a)
{
    char message[512] = "";
    int e = fdr_core_extract(a->path, a->out, message, sizeof message);
    if (e) {
        complain("%s", message[0] ? message : strerror(-e));
        return COULD_NOT;
    }
    int status = message[0] ? DIFFERENT : DONE;
    if (!a->json) {
        if (message[0]) printf("left out: %s\n", plain_name(message));
        printf("%s: the recording is in %s\n", plain_name(a->path), plain_name(a->out));
        return worse(status, finish_output());
    }
    json_t *o = json_object(), *left = json_array();
    if (message[0]) json_array_append_new(left, json_text(message));
    json_object_set_new(o, "file", json_text(a->path));
    json_object_set_new(o, "output", json_text(a->out));
    json_object_set_new(o, "left_out", left);
    return worse(status, print_json(o));
}

int verb_recover(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "FILE|CORE",
        "Writes the readable part of a damaged recording as a new, whole file, or takes the recording out of a core "
        "file. Exit code 0: FILE was whole; 1: damaged parts are left out and named.",
        NULL,
        NULL,
        NULL};
    struct arguments a = {0};
    char message[512] = "";
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    if ((status = may_write(a.out, (const char *const *)&a.path, 1)) != DONE) return status;
    if (is_null_device(a.out)) {
        complain("%s: a device cannot become a recording", a.out);
        return COULD_NOT;
    }
    if (is_core(a.path)) return from_core(&a);
    struct fdr_file *file = open_recording(a.path, &status);
    if (!file) return status;
    if (fdr_file_verify(file) == FDR_DAMAGED) status = worse(status, DIFFERENT);
    int error = fdr_file_recover(file, a.out, message, sizeof message);
    if (error == 0) {
        status = worse(status, report(&a, file, message, a.json));
    } else {
        complain("%s: %s", a.out, message[0] ? message : strerror(-error));
        status = COULD_NOT;
    }
    fdr_file_close(file);
    return status;
}
