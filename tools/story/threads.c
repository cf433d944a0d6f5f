/* SPDX-License-Identifier: MIT */
/* The life of each thread: it worked, waited, was in calls that are still open, or in none. */
#include "tools/story/story.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/common/short_names.h"
#include "tools/common/terminal.h"
#include "tools/findings/run_facts.h"

enum { LABEL = 16, FIGURES = 56 };

/* From its first event to its end, or to the newest moment. */
static uint64_t life_of(const struct run_facts *f, const struct thread_facts *t)
{
    uint64_t end = t->info->end_ns ? t->info->end_ns : f->end_ns;
    return end > t->info->start_ns ? end - t->info->start_ns : 1;
}

/* The region in which it spent most time, and the one in which it waited most. */
static const struct fdr_total *most_of(const struct run_facts *f, uint32_t location, bool waiting)
{
    const struct fdr_total *best = NULL;
    for (size_t i = 0; i < f->rows; i++) {
        const struct fdr_total *t = f->row[i];
        if (t->location != location || f->region[t->id].waits != waiting || !t->exclusive_ns) continue;
        if (!best || t->exclusive_ns > best->exclusive_ns) best = t;
    }
    return best;
}

static void print_place(const struct run_facts *f, const struct fdr_total *t, const char *what, unsigned columns)
{
    char name[1024];
    if (t) printf("%s%s", what, fit(name, plain_shown(f->file, t->id), columns > 200 ? 200 : columns));
}

/* Time in calls that are still open, beside what ended inside of them. Totals lack it. */
static double open_time(const struct run_facts *f, const struct thread_facts *t, double rest)
{
    const struct fdr_location_info *l = t->info;
    if (!l->open_count || l->open[0].untimed || f->end_ns <= l->open[0].enter_ns) return 0;
    double open = (double)(f->end_ns - l->open[0].enter_ns);
    return open < rest ? open : rest;
}

static void print_open(const struct run_facts *f, const struct thread_facts *t, const char *what, unsigned columns)
{
    char name[1024];
    const struct fdr_location_info *l = t->info;
    if (l->open_count)
        printf("%s%s", what,
               fit(name, plain_shown(f->file, l->open[l->open_count - 1].region), columns > 200 ? 200 : columns));
}

static void print_thread(const struct run_facts *f, const struct thread_facts *t)
{
    char name[LABEL * 4 + 4], thread[LABEL_BYTES];
    double life = (double)life_of(f, t), waits = (double)t->waiting_ns, works = (double)t->exclusive_ns - waits;
    double rest = life - waits - works > 0 ? life - waits - works : 0, open = open_time(f, t, rest);
    unsigned columns = terminal_columns(), room = columns > FIGURES + 24 ? (columns - FIGURES) / 2 : 12;
    thread_label(f->file, t->info->id, thread);
    printf("  %-*s %5.1f %% %6.1f %% %6.1f %% %6.1f %%  ", LABEL, fit(name, thread, LABEL), 100 * works / life,
           100 * waits / life, 100 * open / life, 100 * (rest - open) / life);
    const struct fdr_total *work = most_of(f, t->info->id, false);
    const struct fdr_total *wait = waits > 0.01 * life ? most_of(f, t->info->id, true) : NULL;
    print_place(f, work, "", room);
    print_place(f, wait, work ? "; waits in " : "waits in ", room);
    if (open > 0.5 * life || !work) print_open(f, t, work || wait ? "; is in " : "is in ", room);
    putchar('\n');
}

static int by_work(const void *x, const void *y)
{
    const struct thread_facts *a = x, *b = y;
    uint64_t i = a->exclusive_ns - a->waiting_ns, k = b->exclusive_ns - b->waiting_ns;
    return i < k ? 1 : i > k ? -1 : 0;
}

void print_story_threads(struct fdr_file *file, const char *path, size_t most)
{
    struct run_facts f;
    if (!run_facts_of(file, path, &f)) return;
    qsort(f.thread, f.threads, sizeof *f.thread, by_work);
    if (f.threads)
        printf("%s%-18s%s %5s   %6s   %6s  no call   most of it in\n", bold(), f.threads == 1 ? "thread" : "threads",
               plain_again(), "works", "waits", "open");
    for (size_t i = 0; i < f.threads && i < most; i++) print_thread(&f, &f.thread[i]);
    if (f.threads > most) printf("  and %zu more: fdr stats --by location\n", f.threads - most);
    run_facts_free(&f);
}
