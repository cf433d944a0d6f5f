/* SPDX-License-Identifier: MIT */
/* fdr findings: what stands out in recordings, and what cannot be judged. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/job_files.h"
#include "tools/common/short_names.h"
#include "tools/findings/findings.h"

struct arguments {
    struct file_list files;
    bool json;
};

static const struct argp_option options[] = {{"json", 'j', 0, 0, "As JSON", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'j': a->json = true; return 0;
    default: return some_files(state, key, text, &a->files);
    }
}

static void print_finding(const struct finding *f, size_t number)
{
    printf("%2zu  %s\n", number, f->sentence);
    for (size_t i = 0; i < f->evidences; i++) printf("      %s\n", f->evidence[i]);
    printf("      %s; %.0f %% sure\n", finding_kind_name(f->kind), 100 * f->sure);
}

static void print_findings(const char *path, const struct findings *f, bool several)
{
    if (several) printf("%s\n", plain_name(path));
    if (!f->count) printf("nothing notable, by the exact totals of all calls\n");
    for (size_t i = 0; i < f->count; i++) print_finding(&f->row[i], i + 1);
    for (size_t i = 0; i < f->not_judged_count; i++)
        printf("not judged: %s: %s\n", f->not_judged[i].what, f->not_judged[i].why);
    if (several) putchar('\n');
}

/* Of several files one document: each finding names its file. */
static void join_json(json_t *to, json_t *from, const char *path)
{
    static const char *const list[] = {"findings", "not_judged"};
    size_t at;
    json_t *row;
    for (size_t i = 0; i < 2; i++) {
        json_array_foreach(json_object_get(from, list[i]), at, row)
        {
            json_object_set_new(row, "file", json_text(path));
            json_array_append(json_object_get(to, list[i]), row);
        }
    }
    json_decref(from);
}

static int one(const char *path, bool several, json_t *json)
{
    int status = DONE;
    struct findings f;
    struct fdr_file *file = open_recording(path, &status);
    if (!file) return status;
    findings_of(file, path, &f);
    if (f.failed) {
        complain("%s: out of memory", path);
        status = COULD_NOT;
    } else if (json) join_json(json, findings_json(file, &f), path);
    else print_findings(path, &f, several);
    findings_free(&f);
    return worse(status, close_partly_read(file, path));
}

int verb_findings(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "What stands out: regions that grow, threads unlike the others, slow calls, "
                                     "waiting, loss, hangs. Each with its evidence; and what cannot be judged.",
                                     children,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    json_t *json = a.json ? json_pack("{s:[], s:[]}", "findings", "not_judged") : NULL;
    for (size_t i = 0; i < a.files.count; i++) status = worse(status, one(a.files.path[i], a.files.count > 1, json));
    free(a.files.path);
    return worse(status, json ? print_json(json) : finish_output());
}
