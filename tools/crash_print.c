/* SPDX-License-Identifier: MIT */
/* fdr crash for people: what died, where, what each thread was doing, what came before. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "tools/common/short_names.h"
#include "tools/unseen_end.h"
#include "tools/crash.h"

static const char *clock_text(uint64_t realtime_ns, char *text, size_t bytes)
{
    time_t s = (time_t)(realtime_ns / 1000000000u);
    struct tm t;
    char day[32] = "";
    if (gmtime_r(&s, &t)) strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &t);
    snprintf(text, bytes, "%s.%06u UTC", day, (unsigned)(realtime_ns % 1000000000u / 1000));
    return text;
}

/* ---- what died ---------------------------------------------------------------------------------------------- */

static void print_text(const struct fdr_file *file, const char *name, const char *label)
{
    size_t bytes;
    const char *text = fdr_crash_text(file, name, &bytes);
    if (!text || !bytes) return;
    printf("%-10s ", label);
    for (size_t i = 0, n; i < bytes; i += n ? n : 1) {
        char c[5] = "";
        memcpy(c, text + i, bytes - i < 4 ? bytes - i : 4);
        n = plain_bytes(c);
        if (n) fwrite(c, 1, n, stdout);
        else if (*c && *c != '\n') putchar('?');
        else if (i + 1 < bytes) printf(*c ? "\n           " : " ");
    }
    putchar('\n');
}

static void print_other_causes(const struct fdr_file *file)
{
    const struct fdr_crash_cause_info *c;
    char text[160];
    for (size_t i = 1, n = fdr_crash_causes(file, &c); i < n; i++) {
        describe_cause(file, &c[i], text, sizeof text);
        if (c[i].also) printf("meanwhile  thread %u: %s\n", c[i].tid, text);
        else if (c[i].before) printf("inside     the program's own handler of %s\n", text);
        else printf("handler    thread %u: %s while this file was written\n", c[i].tid, text);
    }
}

static void print_handlers(const struct fdr_file_info *i)
{
    print_replaced_handlers(i);
    if (i->faults_survived)
        printf("survived   %" PRIu64 " signals, which the program's own handlers took\n", i->faults_survived);
}

static void print_unseen_end(const struct fdr_file_info *i)
{
    char text[256];
    bool ended = i->has_end && i->end_status != INT_MIN && WIFEXITED(i->end_status);
    printf("%s%s\n", ended ? "died       not: it ended by " : "died of    ", unseen_end(i, text, sizeof text));
}

/* Prints that this is the rest of a live file: neither a death nor a loss. */
static void print_unneeded_file(const struct fdr_file_info *i)
{
    printf("over       the process no longer needed this live file%s%s; %s\n",
           i->over_error ? " and could not remove it: " : "", i->over_error ? strerror(i->over_error) : "",
           i->has_cause ? "its bundle is in FDR_DIR" : "the recording had ended");
}

static void print_head(const struct death *d)
{
    const struct fdr_file_info *i = fdr_file_info(d->file);
    const struct fdr_note_info *note;
    struct fdr_crash_cause_info c = main_cause(d->file);
    char cause[160], when[64];
    printf("%s\n", plain_name(d->path));
    if (i->has_cause)
        printf("died of    %s", describe_cause(d->file, &c, cause, sizeof cause)),
            print_thread_name(" in ", d->file, c.tid, "\n");
    else if (d->kind == KILLED) print_unseen_end(i);
    else
        printf("died       not: %s\n", d->kind == ALIVE ? "it is running"
                                       : i->reason[0]   ? "this is a snapshot"
                                                        : "it ended well");
    if (i->over) print_unneeded_file(i);
    if (i->killed_in_handler && d->kind != UNNEEDED_LIVE_FILE)
        printf(
            "then       it was killed while it handled that: stacks, registers, memory map and messages are missing\n");
    if (i->handled_signal)
        printf("before     the program's own handler took %s in thread %u and had not returned\n",
               signal_name(i->handled_signal, when), i->handled_tid);
    print_other_causes(d->file);
    print_counted_deaths(i);
    printf("%-10s %s\n", i->has_cause ? "when" : "newest", clock_text(d->realtime_ns, when, sizeof when));
    printf("process    %s, pid %u on %s\n", plain_name(i->exe), i->pid, plain_name(i->host));
    if (i->rank >= 0) printf("rank       %d\n", i->rank);
    print_text(d->file, "abort", "message");
    print_text(d->file, "exception", exception_was_caught(d->file) ? "handling" : "exception");
    print_text(d->file, "what", "what");
    print_text(d->file, "cmdline", "command");
    for (size_t n = 0, count = fdr_notes(d->file, &note); n < count; n++)
        printf("note       %s = %s\n", plain_name(note[n].key), plain_name(note[n].value));
    print_handlers(i);
}

/* ---- where -------------------------------------------------------------------------------------------------- */

static void print_cut(struct fdr_file *file, size_t thread)
{
    const struct fdr_crash_thread_info *t;
    char text[HUMAN_BYTES];
    if (!stack_is_cut(file, thread)) return;
    fdr_crash_threads(file, &t);
    printf("  (callers are missing: of the larger stack, the file has %u addresses from the first %s)\n",
           t[thread].kept_words, human_bytes(text, t[thread].kept_bytes));
}

void print_frames(struct fdr_file *file, size_t thread, size_t most)
{
    const struct fdr_crash_frame *r;
    size_t count = fdr_crash_frames(file, thread, &r), number = 0;
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(r[i].module, '/'), *module = slash ? slash + 1 : r[i].module;
        if (number >= most) {
            printf("  ... %zu more\n", count - i);
            break;
        }
        printf("  %s#%-2zu %016" PRIx64 " ", r[i].guessed ? "?" : " ", number, r[i].address);
        if (r[i].function[0]) printf("%s", plain_function(r[i].function));
        else if (module[0]) printf("%s+0x%" PRIx64, plain_name(module), r[i].offset);
        else printf("in no module");
        if (r[i].is_inline) printf(" [inlined]");
        if (r[i].file[0]) printf(" at %s:%u", plain_name(r[i].file), r[i].line);
        else if (r[i].function[0] && module[0]) printf(" in %s+0x%" PRIx64, plain_name(module), r[i].offset);
        putchar('\n');
        number += !r[i].is_inline;
    }
    print_cut(file, thread);
}

static void print_registers(const struct fdr_file *file, const struct fdr_crash_thread_info *t)
{
    if (t->register_count && fdr_crash_register_name(t->machine, 0))
        print_thread_name("\nregisters of ", file, t->tid, "\n");
    for (size_t i = 0; i < t->register_count; i++) {
        const char *name = fdr_crash_register_name(t->machine, i);
        if (!name) break;
        printf("%s%8s %016" PRIx64, i % 4 ? "" : "  ", name, t->registers[i]);
        if (i % 4 == 3 || i + 1 == t->register_count) putchar('\n');
    }
}

/* ---- what came before --------------------------------------------------------------------------------------- */

static void print_event(const struct fdr_file *file, const struct fdr_read_event *e, uint64_t end_ns)
{
    char since[HUMAN_BYTES], duration[HUMAN_BYTES];
    const char *phase = kind_phase(e->kind);
    printf("  %s  %-6s %*s%s", human_since(since, e->time_ns, end_ns), *phase ? phase : kind_name(e->kind),
           (int)(e->depth < 20 ? e->depth : 20), "", plain_name(shown_event(file, e)));
    if (e->kind == FDR_LEAVE) printf(", %s", human_time(duration, e->duration_ns));
    if (e->kind == FDR_MARKER) printf(" %" PRIu64, e->field[0]);
    if (e->kind == FDR_SEND || e->kind == FDR_RECV)
        printf(" %s %" PRIu64 ", tag %" PRId64 ", %" PRIu64 " bytes", e->kind == FDR_SEND ? "to" : "from", e->field[0],
               (int64_t)e->field[1], e->field[3]);
    putchar('\n');
}

static void print_newest(struct fdr_file *file, const struct fdr_location_info *l, uint64_t end_ns, bool all)
{
    struct past_event *e = calloc(CRASH_EVENTS, sizeof *e);
    size_t count = e ? (all ? newest_events : newest_own_events)(file, l->id, end_ns, e, CRASH_EVENTS) : 0;
    printf("\nthe newest %zu events of ", count);
    print_thread_name("", file, l->tid, "\n");
    for (size_t i = 0; i < count; i++) print_event(file, &e[i].e, end_ns);
    free(e);
}

struct share {
    uint32_t region;
    uint64_t calls, ns;
};
static int by_ns(const void *x, const void *y)
{
    const struct share *a = x, *b = y;
    return a->ns > b->ns ? -1 : a->ns < b->ns;
}

enum { STRETCH_CALLS = 2000000 }; /* calls read per stretch at most: only the end matters, and it must come quickly */

/* Prints the regions with the most time, among calls that ended between two moments before the end, down to a depth. */
static void print_stretch(struct fdr_file *file, uint32_t location, uint64_t end_ns, uint64_t from, uint64_t to,
                          uint32_t depth)
{
    size_t regions = fdr_definition_count(file, FDR_REGION_DEFINITION) + 1, used = 0;
    struct share *share = calloc(regions, sizeof *share); /* by region; index 0: calls without a name */
    uint64_t calls = 0;
    char text[HUMAN_BYTES], other[HUMAN_BYTES];
    struct fdr_select s = {.locations = &location,
                           .location_count = 1,
                           .depth_max = depth,
                           .classes = 1,
                           .from_ns = end_ns > from ? end_ns - from : 0,
                           .to_ns = end_ns - to};
    struct fdr_iter *it = share ? fdr_iter_open(file, &s) : NULL;
    struct fdr_read_event e;
    while (calls < STRETCH_CALLS && it && fdr_iter_next(it, &e)) {
        if (e.kind != FDR_LEAVE || e.repaired || e.time_ns < s.from_ns || e.time_ns > s.to_ns) continue;
        struct share *r = &share[e.id < regions ? e.id : 0];
        calls++;
        r->region = e.id;
        r->calls++;
        r->ns += e.duration_ns;
    }
    fdr_iter_close(it);
    for (size_t i = 0; calls && i < regions; i++)
        if (share[i].calls) share[used++] = share[i];
    if (calls) {
        qsort(share, used, sizeof *share, by_ns);
        printf("  %8s to %8s before: %s%s calls", human_time(text, from), human_time(other, to),
               calls == STRETCH_CALLS ? "the first " : "", human_count((char[HUMAN_BYTES]){0}, calls));
        if (depth) printf(" at depth %u or less", depth);
        for (size_t i = 0; i < used && i < 3; i++)
            printf("%s %s %s (%s)", i ? "," : ":", plain_shown(file, share[i].region), human_time(text, share[i].ns),
                   human_count(other, share[i].calls));
        putchar('\n');
    }
    free(share);
}

static void print_before(struct fdr_file *file, const struct fdr_location_info *l, uint64_t end_ns)
{
    static const struct {
        uint64_t from, to;
        uint32_t depth;
    } stretch[] = {{1000000, 0, 0},
                   {10000000, 1000000, 16},
                   {100000000, 10000000, 8},
                   {1000000000, 100000000, 4},
                   {60000000000, 1000000000, 2}};
    uint64_t reach = end_ns > l->from_ns ? end_ns - l->from_ns : 0;
    print_thread_name("\nwhat came before, calls that ended in ", file, l->tid, "\n");
    for (size_t i = 0; i < 5 && stretch[i].to < reach; i++)
        print_stretch(file, l->id, end_ns, stretch[i].from < reach ? stretch[i].from : reach, stretch[i].to,
                      stretch[i].depth);
    if (reach > 60000000000) print_stretch(file, l->id, end_ns, reach, 60000000000, 1);
}

/* Prints the newest value of each metric, over all locations. */
static void print_metrics(struct fdr_file *file)
{
    size_t count = fdr_definition_count(file, FDR_METRIC_DEFINITION);
    struct fdr_read_event *last = count && count < 100000 ? calloc(count + 1, sizeof *last) : NULL, e;
    struct fdr_select s = {.classes = 1u << FDR_IN_METRIC};
    struct fdr_iter *it = last ? fdr_iter_open(file, &s) : NULL;
    while (it && fdr_iter_next(it, &e))
        if (e.kind == FDR_METRIC && e.id <= count) last[e.id] = e;
    fdr_iter_close(it);
    bool any = false;
    for (size_t i = 1; last && i <= count; i++) {
        const struct fdr_metric_info *m = fdr_metric_info(file, (uint32_t)i);
        double f;
        if (!last[i].kind) continue;
        if (!any) printf("\nnewest value of each metric\n");
        any = true;
        memcpy(&f, &last[i].field[0], sizeof f);
        if (m->type == FDR_VALUE_F64) printf("  %s = %g %s\n", plain_name(m->name), f, plain_name(m->unit));
        else if (m->type == FDR_VALUE_I64)
            printf("  %s = %" PRId64 " %s\n", plain_name(m->name), (int64_t)last[i].field[0], plain_name(m->unit));
        else printf("  %s = %" PRIu64 " %s\n", plain_name(m->name), last[i].field[0], plain_name(m->unit));
    }
    free(last);
}

/* For a process with very many mappings. */
static void print_cut_map(const struct fdr_file *file)
{
    size_t bytes;
    uint64_t more = 0;
    const char *maps = fdr_crash_text(file, "maps", &bytes), *line = maps ? strstr(maps, "\n... ") : NULL;
    if (line && sscanf(line, "\n... %" SCNu64, &more) == 1)
        printf("\nthe memory map in this file is incomplete: it lacks %" PRIu64
               " lines of files' data, of memory without a file, or of its end\n",
               more);
}

void print_crash(const struct death *d, const struct crash_shown *shown)
{
    const struct fdr_crash_thread_info *t;
    const struct fdr_file_info *i = fdr_file_info(d->file);
    struct fdr_crash_cause_info c = main_cause(d->file);
    const struct fdr_location_info *l = location_of_thread(d->file, c.tid);
    uint64_t end_ns = i->has_cause ? c.time_ns : i->last_ns;
    print_head(d);
    if (fdr_crash_threads(d->file, &t) && t[0].faulting) {
        print_thread_name("\nwhere, ", d->file, t[0].tid, "\n");
        print_frames(d->file, 0, 64);
    }
    if (l)
        print_thread_name("\nopen regions of ", d->file, l->tid, ", outermost first\n"),
            print_open_regions(d->file, l, end_ns);
    if (shown->registers && fdr_crash_threads(d->file, &t) && t[0].faulting) print_registers(d->file, &t[0]);
    print_other_threads(d->file, end_ns, c.tid);
    bool dead = d->kind <= KILLED || shown->all;
    if (!l && dead) l = last_location(d->file); /* the thread with the newest event */
    if (!dead)
        printf("\nnothing died, so there are no last events to show; fdr %s tells what stands out, --all shows the "
               "newest events\n",
               plain_name(d->path));
    if (l && dead) print_newest(d->file, l, end_ns, shown->all), print_before(d->file, l, end_ns);
    print_metrics(d->file);
    print_cut_map(d->file);
}
