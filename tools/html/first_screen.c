/* SPDX-License-Identifier: MIT */
/* The first screen: facts as plain HTML, which stand before any script runs. */
#include "tools/html/page.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/detail.h"
#include "tools/common/job_ranks.h"
#include "tools/common/short_names.h"

enum { NEWEST = 14, OTHERS = 12, FINDINGS = 8, FRAMES = 16, STACKS = 24 };

static void card(FILE *to, const char *id, const char *title)
{
    fprintf(to, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
}
static void end_card(FILE *to) { fputs("</section>\n", to); }

/* A moment that the timeline shows when it is clicked. */
static void time_link(const struct page *page, FILE *to, size_t file, uint64_t ns, uint64_t end_ns)
{
    char text[HUMAN_BYTES];
    double t = page_time(page, file, ns);
    fprintf(to, "<a href=\"#t=%.0f,%.0f\">", t > 50000 ? t - 50000 : 0, t + 50000);
    html_text(to, human_since(text, ns, end_ns), 0);
    fputs("</a>", to);
}

static const char *thread_label(const struct fdr_location_info *l, char *text, size_t bytes)
{
    if (l->name[0]) snprintf(text, bytes, "%s", l->name);
    else snprintf(text, bytes, "thread %u", l->tid);
    return text;
}

/* ---- (b) the last moments ---- */

static const struct fdr_location_info *culprit_thread(const struct page *page)
{
    const struct fdr_file *file = page->death[page->culprit].file;
    const struct fdr_location_info *l = NULL;
    if (fdr_file_info(file)->has_cause) l = location_of_thread(file, main_cause(file).tid);
    return l ? l : last_location(file);
}

/* The moment that the first screen counts back from. */
static uint64_t end_of_file(const struct page *page, size_t file)
{
    const struct fdr_file_info *i = fdr_file_info(page->death[file].file);
    return i->has_cause ? i->cause_time_ns : page_end(page, file);
}

static void event_line(const struct page *page, FILE *to, const struct fdr_read_event *e, uint64_t end_ns)
{
    static const char *const kinds[] = {"",       "enter",  "leave",  "send",  "receive", "begin", "end",
                                        "metric", "marker", "sample", "event", "io",      "io end"};
    const struct fdr_file *file = page->death[page->culprit].file;
    char duration[HUMAN_BYTES], partner[160];
    fputs("<tr><td class=n>", to);
    time_link(page, to, page->culprit, e->time_ns, end_ns);
    fprintf(to, "<td>%s<td>", e->kind < sizeof kinds / sizeof *kinds ? kinds[e->kind] : "");
    html_name(to, page->redact && e->class_ == FDR_IN_IO ? "[file]" : shown_event(file, e));
    if (e->ordinal_kind == FDR_ORDINAL_KNOWN) fprintf(to, " #%llu", (unsigned long long)e->ordinal);
    if (e->kind == FDR_SEND || e->kind == FDR_RECV)
        fprintf(to, " <small>%s</small>", page_partner(page, page->culprit, e, partner));
    fputs("<td class=n>", to);
    if (e->kind == FDR_LEAVE && !e->repaired) html_text(to, human_time(duration, e->duration_ns), 0);
    fputs("</tr>\n", to);
}

static void others_line(const struct page *page, FILE *to, size_t file, const struct fdr_location_info *l)
{
    const struct fdr_file *f = page->death[file].file;
    char who[128];
    if (page->files > 1) {
        story_who(page->death[file].file, who, sizeof who);
        fputs("<tr><td>", to);
        html_name(to, who);
        fputs(" ", to);
    } else {
        fputs("<tr><td>", to);
    }
    html_name(to, thread_label(l, who, sizeof who));
    fputs("<td>", to);
    if (l->open_count) html_name(to, plain_shown(f, l->open[l->open_count - 1].region));
    else fputs("no open call", to);
    fputs("<td class=n>", to);
    time_link(page, to, file, l->moved_ns, end_of_file(page, file));
    fputs("</tr>\n", to);
}

static void the_others(const struct page *page, FILE *to, const struct fdr_location_info *culprit)
{
    size_t shown = 0, all = 0;
    fputs("<h3>Beside it</h3><table><tr><th>thread<th>innermost open call<th>last event</tr>\n", to);
    for (size_t i = 0; i < page->files; i++)
        for (size_t k = 0; k < fdr_location_count(page->death[i].file); k++) {
            const struct fdr_location_info *l = fdr_location_info(page->death[i].file, k);
            if (l == culprit || l->samples || !l->live) continue;
            if (all++ < OTHERS) others_line(page, to, i, l), shown++;
        }
    fputs("</table>\n", to);
    if (!all) fputs("<p>There is no other live thread.</p>\n", to);
    if (all > shown) fprintf(to, "<p>and %zu more in the timeline</p>\n", all - shown);
    if (page->files > 1) fputs("<p>Each time counts back from the end of its own recording.</p>\n", to);
}

static void last_moments(const struct page *page, FILE *to)
{
    const struct fdr_location_info *l = culprit_thread(page);
    struct fdr_file *file = page->death[page->culprit].file;
    struct past_event *e = calloc(NEWEST, sizeof *e);
    char name[256];
    uint64_t end = end_of_file(page, page->culprit);
    size_t count = e && l ? newest_events(file, l->id, end, e, NEWEST) : 0;
    card(to, "moments", "Last moments");
    if (l) {
        fputs("<h3>", to);
        html_name(to, thread_label(l, name, sizeof name));
        fputs("</h3>", to);
    }
    fputs("<table>\n", to);
    for (size_t i = 0; i < count; i++)
        if (e[i].e.time_ns <= end)
            event_line(page, to, &e[i].e, end); /* the copy may have what came after its moment */
    fputs("</table>\n", to);
    if (!count) fputs("<p>The recording has no event.</p>\n", to);
    ranks_beside(page, to);
    the_others(page, to, l);
    end_card(to);
    free(e);
}

/* ---- (c) what was open ---- */

static void open_path(const struct page *page, FILE *to, size_t file, const struct fdr_location_info *l)
{
    char time[HUMAN_BYTES];
    const struct fdr_file *f = page->death[file].file;
    uint64_t end = end_of_file(page, file);
    size_t skip = l->open_count > 24 ? l->open_count - 12 : 0;
    fputs("<ol class=path>", to);
    for (size_t i = 0; i < l->open_count; i++) {
        if (skip && i == 12) fprintf(to, "<li>%zu more</li>", skip - 12);
        if (skip && i >= 12 && i < skip) continue;
        fputs("<li>", to);
        html_name(to, plain_shown(f, l->open[i].region));
        if (!l->open[i].untimed && end > l->open[i].enter_ns)
            fprintf(to, " <small>%s</small>", human_time(time, end - l->open[i].enter_ns));
        fputs("</li>", to);
    }
    fputs("</ol>\n", to);
}

static void frames(FILE *to, struct fdr_file *file, uint32_t tid)
{
    const struct fdr_crash_thread_info *t;
    const struct fdr_crash_frame *r;
    size_t threads = fdr_crash_threads(file, &t), i = 0;
    while (i < threads && t[i].tid != tid) i++;
    size_t count = i < threads ? fdr_crash_frames(file, i, &r) : 0;
    if (!count) return;
    fputs("<p>stack, innermost first</p><ol class=stack>", to);
    for (size_t k = 0; k < count && k < FRAMES; k++) {
        fputs("<li>", to);
        html_name(to, r[k].function[0] ? plain_function(r[k].function) : "[no name]");
        const char *slash = strrchr(r[k].file, '/');
        if (r[k].file[0]) {
            fputs(" <small>", to);
            html_text(to, slash ? slash + 1 : r[k].file, 60);
            fprintf(to, ":%u</small>", r[k].line);
        }
        fputs(r[k].guessed ? " <small>(guessed)</small></li>" : "</li>", to);
    }
    fputs("</ol>\n", to);
}

static void open_of(const struct page *page, FILE *to, size_t file, const struct fdr_location_info *l, bool wide)
{
    char name[256];
    fprintf(to, "<details%s><summary>", wide ? " open" : "");
    if (page->files > 1) {
        story_who(page->death[file].file, name, sizeof name);
        html_name(to, name);
        fputs(" ", to);
    }
    html_name(to, thread_label(l, name, sizeof name));
    fprintf(to, " <small>%zu open</small></summary>", l->open_count);
    open_path(page, to, file, l);
    frames(to, page->death[file].file, l->tid);
    fputs("</details>\n", to);
}

static void open_calls(const struct page *page, FILE *to)
{
    const struct fdr_location_info *first = culprit_thread(page);
    size_t all = 0;
    card(to, "open", "Open calls");
    if (first && first->open_count) open_of(page, to, page->culprit, first, true);
    for (size_t i = 0; i < page->files; i++)
        for (size_t k = 0; k < fdr_location_count(page->death[i].file); k++) {
            const struct fdr_location_info *l = fdr_location_info(page->death[i].file, k);
            if (l == first || !l->open_count) continue;
            if (all++ < STACKS) open_of(page, to, i, l, false);
        }
    if (all > STACKS) fprintf(to, "<p>and %zu more threads</p>\n", all - STACKS);
    if (!all && !(first && first->open_count)) fputs("<p>No call was open.</p>\n", to);
    end_card(to);
}

/* ---- (d) findings ---- */

static void finding_line(const struct page *page, FILE *to, const struct page_finding *f)
{
    char who[128];
    fputs("<li>", to);
    if (page->files > 1 && !f->of_job) {
        story_who(page->death[f->file].file, who, sizeof who);
        html_name(to, who);
        fputs(": ", to);
    }
    html_text(to, f->finding.sentence, 0);
    page_finding_link(page, to, f);
    for (size_t i = 0; i < f->finding.evidences; i++) {
        fputs("<br><small>", to);
        html_text(to, f->finding.evidence[i], 0);
        fputs("</small>", to);
    }
    fputs("</li>\n", to);
}

/* Of other ranks: one that waits is in the verdict, and one that the launcher ended was not the first. */
static bool is_said(const struct page *page, const struct page_finding *f)
{
    if (f->of_job || f->file == page->culprit) return false;
    bool ended = f->finding.kind == FINDING_CRASH && page->death[f->file].kind == BY_REQUEST;
    return ended || (f->finding.kind == FINDING_HANG && page->verdict[0]);
}

/* Those that are not said elsewhere, at most FINDINGS. Returns the number of the others. */
static size_t finding_lines(const struct page *page, FILE *to)
{
    const struct page_findings *f = page->findings;
    size_t shown = 0, more = 0;
    fputs("<ol>\n", to);
    for (size_t i = 0; i < f->count; i++) {
        if (is_said(page, &f->row[i])) continue;
        if (shown == FINDINGS) more++;
        else finding_line(page, to, &f->row[i]), shown++;
    }
    fputs("</ol>\n", to);
    return more;
}

static void findings(const struct page *page, FILE *to)
{
    const struct page_findings *f = page->findings;
    size_t ended = 0;
    card(to, "findings", "What stands out");
    size_t more = finding_lines(page, to);
    for (size_t i = 0; page->files > 1 && i < page->files; i++)
        ended += i != page->culprit && page->death[i].kind == BY_REQUEST;
    if (ended)
        fprintf(to, "<p>%zu other rank%s asked to end from outside.</p>\n", ended, ended == 1 ? " was" : "s were");
    if (!f->count) fputs("<p>Nothing does, by the exact totals of all calls.</p>\n", to);
    if (more) fprintf(to, "<p>%zu more, of less weight</p>\n", more);
    if (f->not_judged_count) fputs("<h3>Not judged</h3><ul>\n", to);
    for (size_t i = 0; i < f->not_judged_count; i++) {
        fputs("<li>", to);
        html_text(to, f->not_judged[i], 0);
        fputs("</li>\n", to);
    }
    fputs(f->not_judged_count ? "</ul>\n" : "", to);
    end_card(to);
}

/* ---- (e) how far to believe it ---- */

static void ledger_lines(FILE *to, struct fdr_file *file)
{
    const struct fdr_ledger_row *l;
    struct fdr_ledger_row sum = {0};
    char a[HUMAN_BYTES];
    for (size_t i = 0, n = fdr_ledger(file, &l); i < n; i++) {
        sum.presented += l[i].presented, sum.kept += l[i].kept, sum.filtered += l[i].filtered;
        sum.reduced += l[i].reduced, sum.lost += l[i].lost;
    }
    const struct {
        const char *what;
        uint64_t count;
    } row[] = {{"presented", sum.presented},
               {"kept, drawn one by one", sum.kept},
               {"filtered by rules", sum.filtered},
               {"given back, drawn as texture", sum.reduced},
               {"lost", sum.lost}};
    fputs("<table>\n", to);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        fprintf(to, "<tr><td>%s<td class=n>%s<td class=n>%.1f %%</tr>\n", row[i].what, human_count(a, row[i].count),
                sum.presented ? 100.0 * (double)row[i].count / (double)sum.presented : 0.0);
    fputs("</table>\n", to);
}

static void reach(const struct page *page, FILE *to, size_t index)
{
    struct fdr_file *file = page->death[index].file;
    const struct fdr_file_info *i = fdr_file_info(file);
    const struct fdr_epoch_info *e;
    char a[HUMAN_BYTES], b[HUMAN_BYTES];
    uint64_t start = run_start(file), whole = complete_from(file), end = end_of_file(page, index);
    fprintf(to, "<p>The run lasted %s; kept events reach back %s.", human_time(a, end > start ? end - start : 0),
            human_time(b, end > i->first_ns ? end - i->first_ns : 0));
    if (whole)
        fprintf(to, " Every call of the last %s is kept; before that detail falls with age.",
                human_time(a, end > whole ? end - whole : 0));
    else if (fdr_epochs(file, &e)) fputs(" Every call is kept.", to);
    fputs(" Totals count every call of the run.</p>\n", to);
}

static void damage(const struct page *page, FILE *to)
{
    for (size_t i = 0; i < page->files; i++) {
        const struct fdr_file *file = page->death[i].file;
        size_t count = fdr_file_damage_count(file);
        if (!count) continue;
        fprintf(to, "<p class=warn>%zu damaged place%s: ", count, count == 1 ? "" : "s");
        html_text(to, fdr_file_damage(file, 0), 200);
        fputs("</p>\n", to);
    }
}

static void missing(const struct page *page, FILE *to)
{
    struct ranks r = {.rank = calloc(page->files, sizeof *r.rank)};
    int64_t from, end;
    for (size_t i = 0; r.rank && i < page->files; i++) {
        int rank = fdr_file_info(page->death[i].file)->rank, world = world_size(page->death[i].file);
        if (rank >= 0) r.rank[r.count++] = rank;
        if (world > r.world) r.world = world;
    }
    sort_ranks(&r);
    for (size_t i = 0; i <= r.count; i++) {
        if (!missing_ranks(&r, i, &from, &end)) continue;
        if (end - from == 1) fprintf(to, "<p class=warn>No recording of rank %lld.</p>\n", (long long)from);
        else
            fprintf(to, "<p class=warn>No recording of ranks %lld to %lld.</p>\n", (long long)from, (long long)end - 1);
    }
    free(r.rank);
}

static void belief(const struct page *page, FILE *to)
{
    card(to, "belief", "How far to believe it");
    damage(page, to);
    missing(page, to);
    reach(page, to, page->culprit);
    ledger_lines(to, page->death[page->culprit].file);
    if (page->files > 1)
        fprintf(to, "<p>%zu recordings; these figures are of the first named above.</p>\n", page->files);
    end_card(to);
}

/* ---- (f) build, host, settings ---- */

/* Lines of settings become one. */
static void fact(FILE *to, const char *name, const char *text)
{
    char value[512];
    snprintf(value, sizeof value, "%.*s", (int)sizeof value - 1, text);
    for (size_t i = 0, end = strlen(value); i < end; i++)
        if (value[i] == '\n') value[i] = i + 1 < end ? ' ' : 0;
    if (!*value) return;
    fputs("<tr><td>", to);
    html_text(to, name, 40);
    fputs("<td>", to);
    html_text(to, value, 160);
    fputs("</tr>\n", to);
}

static void origin(const struct page *page, FILE *to)
{
    const struct fdr_file *file = page->death[page->culprit].file;
    const struct fdr_file_info *i = fdr_file_info(file);
    const struct fdr_note_info *note;
    char size[HUMAN_BYTES];
    card(to, "origin", "Build, host, settings");
    fputs("<table>\n", to);
    if (!page->redact) {
        const char *command = fdr_crash_text(file, "cmdline", NULL);
        fact(to, "program", i->exe);
        fact(to, "command", command ? command : "");
        fact(to, "host", i->host);
        fact(to, "settings", i->config);
        for (size_t k = 0, n = fdr_notes(file, &note); k < n && k < 8; k++) fact(to, note[k].key, note[k].value);
    }
    fact(to, "build id", i->build_id);
    fact(to, "strategy", i->strategy);
    fact(to, "buffer", human_bytes(size, i->buffer_bytes));
    fact(to, "state", i->state);
    fact(to, "reason", page->redact ? i->reason_kind : i->reason);
    fact(to, "fdr", fdr_reader_version());
    fputs("</table>\n", to);
    if (page->redact) fputs("<p>Host, paths, command line and settings are left out (--redact).</p>\n", to);
    end_card(to);
}

void first_screen(const struct page *page, FILE *to)
{
    char text[1024];
    fputs("<main id=\"story\">\n<header><h1>", to);
    story_sentence(&page->story, text, sizeof text);
    html_text(to, text, 0);
    fputs("</h1><p>", to);
    story_sure(&page->story, text, sizeof text);
    html_text(to, text, 0);
    if (page->verdict[0]) {
        fputs("</p><p class=warn>", to);
        html_text(to, page->verdict, 0);
    }
    fputs("</p></header>\n<div id=\"cards\">\n", to);
    last_moments(page, to);
    open_calls(page, to);
    findings(page, to);
    belief(page, to);
    origin(page, to);
    fputs("</div>\n</main>\n", to);
}
