/* SPDX-License-Identifier: MIT */
/* fdr findings: what stands out in recordings, and what cannot be judged. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/job_files.h"
#include "tools/common/short_names.h"
#include "tools/common/terminal.h"
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

static void print_findings(const struct findings *f)
{
    if (!f->count) printf("nothing notable, by the exact totals of all calls\n");
    for (size_t i = 0; i < f->count; i++) print_finding(&f->row[i], i + 1);
    for (size_t i = 0; i < f->not_judged_count; i++)
        printf("not judged: %s: %s\n", f->not_judged[i].what, f->not_judged[i].why);
}

/* Of several files one document: each finding names its file. path: NULL, if it does so already. */
static void join_json(json_t *to, json_t *from, const char *path)
{
    static const char *const list[] = {"findings", "not_judged"};
    size_t at;
    json_t *row;
    for (size_t i = 0; i < 2; i++) {
        json_array_foreach(json_object_get(from, list[i]), at, row)
        {
            if (path) json_object_set_new(row, "file", json_text(path));
            json_array_append(json_object_get(to, list[i]), row);
        }
    }
    json_decref(from);
}

/* Findings between the ranks come before those of each rank alone. */
static int all_ranks(const struct job_part *part, size_t count, json_t *json)
{
    struct findings f;
    job_findings_of(part, count, &f);
    int status = f.failed ? COULD_NOT : DONE;
    if (f.failed) complain("out of memory");
    else if (json) join_json(json, job_findings_json(part, &f), NULL);
    else if (f.count || f.not_judged_count) {
        printf("between %zu recordings\n", count);
        print_findings(&f);
        putchar('\n');
    }
    findings_free(&f);
    return status;
}

static int one(const struct job_part *part, bool several, json_t *json)
{
    int status = DONE;
    struct findings f;
    findings_of(part->file, part->path, &f);
    if (f.failed) {
        complain("%s: out of memory", part->path);
        status = COULD_NOT;
    } else if (json) {
        join_json(json, findings_json(part->file, &f), part->path);
    } else {
        if (several) printf("%s\n", plain_name(part->path));
        print_findings(&f);
        if (several) putchar('\n');
    }
    findings_free(&f);
    return status;
}

static int tell_all(const struct file_list *files, json_t *json)
{
    struct job_part *part = calloc(files->count, sizeof *part);
    size_t count = 0;
    int status = part ? DONE : COULD_NOT;
    for (size_t i = 0; part && i < files->count; i++) {
        part[count] = (struct job_part){open_recording(files->path[i], &status), files->path[i]};
        count += part[count].file != NULL;
    }
    if (count > 1) status = worse(status, all_ranks(part, count, json));
    for (size_t i = 0; i < count; i++) status = worse(status, one(&part[i], files->count > 1, json));
    for (size_t i = 0; i < count; i++) status = worse(status, close_partly_read(part[i].file, part[i].path));
    free(part);
    return status;
}

int verb_findings(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "What stands out: regions that grow, threads unlike the others, slow calls, "
                                     "waiting, loss, hangs. Each with its evidence; and what cannot be judged. Of the "
                                     "ranks of a job it begins with ranks unlike the others.",
                                     children,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    json_t *json = a.json ? json_pack("{s:[], s:[]}", "findings", "not_judged") : NULL;
    status = tell_all(&a.files, json);
    static const char *const next[] = {"stats", "outliers", "html -o page.html", NULL};
    if (!json && status != COULD_NOT) print_hint(next, a.files.count == 1 ? plain_name(a.files.path[0]) : "FILE...");
    free(a.files.path);
    return worse(status, json ? print_json(json) : finish_output());
}
