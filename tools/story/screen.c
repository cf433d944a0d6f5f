/* SPDX-License-Identifier: MIT */
/* fdr FILE: the story in a screen. What, why, when, who, what stands out, where detail ends, which verb shows more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/detail.h"
#include "tools/common/short_names.h"
#include "tools/common/terminal.h"
#include "tools/findings/findings.h"
#include "tools/story/story.h"

enum { THREADS = 5, FINDINGS = 5, BETWEEN = 3 /* ranks */, FRAMES = 6, TEXT = 1200 };

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

/* ---- the place of a death --------------------------------------------------------------------------------------- */

static void print_path(const struct fdr_file *file, const struct fdr_location_info *l)
{
    char text[TEXT] = "";
    size_t used = 0, skip = l->open_count > 8 ? l->open_count - 6 : 0;
    for (size_t i = 0; i < l->open_count && used + 140 < sizeof text; i++) {
        if (skip && i >= 2 && i < skip) continue;
        int n = snprintf(text + used, sizeof text - used, "%s%s%.100s", i ? " > " : "",
                         skip && i == skip ? "... > " : "", plain_shown(file, l->open[i].region));
        used += n > 0 ? (size_t)n : 0;
    }
    print_wrapped("inside", l->open_count ? text : "no recorded call");
}

static void print_stack(struct fdr_file *file)
{
    const struct fdr_crash_thread_info *t;
    if (!fdr_crash_threads(file, &t) || !t[0].faulting) return;
    printf("%sstack%s\n", bold(), plain_again());
    print_frames(file, 0, FRAMES);
}

static void print_place(const struct story *story)
{
    struct fdr_file *file = story->death->file;
    const char *text[] = {"abort", "exception", "what"};
    const struct fdr_location_info *l = location_of_thread(file, main_cause(file).tid);
    for (size_t i = 0; i < 3; i++)
        if (fdr_crash_text(file, text[i], NULL))
            print_wrapped(i ? text[i] : "message", plain_name(fdr_crash_text(file, text[i], NULL)));
    if (l) print_path(file, l);
    print_stack(file);
}

/* ---- what stands out -------------------------------------------------------------------------------------------- */

/* The first sentence already says how it died. */
static void print_findings(const struct findings *f, const struct findings *between)
{
    char label[16], why[300];
    int shown = 0;
    printf("%sstands out%s\n", bold(), plain_again());
    for (size_t i = 0; i < between->count && shown < BETWEEN; i++) {
        snprintf(label, sizeof label, "%9d", ++shown);
        print_wrapped(label, between->row[i].sentence);
    }
    for (size_t i = 0; i < f->count && shown < FINDINGS; i++) {
        if (f->row[i].kind == FINDING_CRASH) continue;
        snprintf(label, sizeof label, "%9d", ++shown);
        print_wrapped(label, f->row[i].sentence);
    }
    if (!shown) print_wrapped("", "nothing notable, by the exact totals of all calls");
    if (f->count > FINDINGS + 1) printf("           and %zu more of less weight\n", f->count - (size_t)shown);
    for (size_t i = 0; i < f->not_judged_count; i++) {
        snprintf(why, sizeof why, "%s: %s", f->not_judged[i].what, f->not_judged[i].why);
        print_wrapped(i ? "" : "not judged", why);
    }
}

/* ---- what to ask next ------------------------------------------------------------------------------------------- */

static bool has(const struct findings *f, enum finding_kind kind)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->row[i].kind == kind) return true;
    return false;
}

static void print_command(const char *verb, const char *path, const char *more, const char *what)
{
    char command[512];
    snprintf(command, sizeof command, "fdr %s %.400s%s", verb, path, more);
    printf("  %-48s  %s\n", command, what);
}

static void print_next(const struct story *story, const struct findings *f)
{
    const char *path = plain_name(story->death->path);
    bool slow = has(f, FINDING_OUTLIER) || has(f, FINDING_PERIODIC);
    printf("%snext%s\n", bold(), plain_again());
    if (story->died) print_command("crash", path, "", "the post-mortem: all stacks, the last events");
    if (has(f, FINDING_HANG)) print_command("hang", path, "", "who is stuck where, since when");
    if (story->files > 1) {
        print_command("findings", "FILE...", "", "the evidence, the ranks beside each other");
        print_command("hang", "FILE...", "", "who waits for whom, and whether that is a hang");
        print_command("messages", "FILE...", "", "messages, matched");
        print_command("html", "FILE...", " -o page.html", "a timeline of all of them to look at");
    } else if (f->count) print_command("findings", path, "", "the evidence");
    if (slow) print_command("outliers", path, "", "slow calls, what ran inside and beside");
    if (has(f, FINDING_GROWTH)) print_command("stats --by time", path, "", "the pace of each region over the run");
    print_command("stats", path, "", "exact totals by region");
    if (story->files == 1) print_command("html", path, " -o page.html", "a timeline to look at");
}

static void print_screen(const struct story *story, const struct findings *f, const struct findings *between)
{
    char text[TEXT];
    struct fdr_file *file = story->death->file;
    story_sentence(story, text, sizeof text);
    printf("%s", bold());
    print_wrapped("what", plain_name(text));
    printf("%s", plain_again());
    story_sure(story, text, sizeof text);
    print_wrapped("how sure", plain_name(text));
    if (story->files > 1) {
        snprintf(text, sizeof text, "%s, one of %zu recordings", story->death->path, story->files);
        print_wrapped("file", plain_name(text));
    }
    if (fdr_file_info(file)->has_cause) print_place(story);
    print_story_threads(file, story->death->path, THREADS);
    print_findings(f, between);
    detail_sentence(file, text, sizeof text);
    print_wrapped("detail", text);
    print_next(story, f);
}

static int print_story_json(const struct story *story, const struct findings *f)
{
    char text[TEXT];
    json_t *o = findings_json(story->death->file, f);
    json_object_set_new(o, "file", json_text(story->death->path));
    story_sentence(story, text, sizeof text);
    json_object_set_new(o, "sentence", json_text(text));
    story_sure(story, text, sizeof text);
    json_object_set_new(o, "how_sure", json_text(text));
    detail_sentence(story->death->file, text, sizeof text);
    json_object_set_new(o, "detail", json_text(text));
    return print_json(o);
}

static void find_between(const struct death *death, size_t files, struct findings *between)
{
    struct job_part *part = calloc(files, sizeof *part);
    for (size_t i = 0; part && i < files; i++) part[i] = (struct job_part){death[i].file, death[i].path};
    if (part) job_findings_of(part, files, between);
    free(part);
}

static int tell(struct death *death, size_t files, bool json)
{
    struct findings f, between = {0};
    struct story story = story_of(death, files);
    findings_of(story.death->file, story.death->path, &f);
    if (files > 1) find_between(death, files, &between);
    int status = f.failed ? COULD_NOT : DONE;
    if (f.failed) complain("%s: out of memory", story.death->path);
    else if (json) status = print_story_json(&story, &f);
    else print_screen(&story, &f, &between), status = finish_output();
    findings_free(&f);
    findings_free(&between);
    return status;
}

int verb_story(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "The story of a recording in a screen: what happened to whom, what stands out, "
                                     "where detail ends, and which verb shows more. Of several files it is about the "
                                     "process that died first.",
                                     children,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    int status = DONE;
    size_t files;
    parse_arguments(&argp, argc, argv, &a);
    struct death *death = open_deaths(&a.files, &files, &status);
    if (files) status = worse(status, tell(death, files, a.json));
    for (size_t i = 0; i < files; i++) status = worse(status, close_partly_read(death[i].file, death[i].path));
    free(death);
    return status;
}
