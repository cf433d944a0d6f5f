/* SPDX-License-Identifier: MIT */
/* Processes without MPI: the threads that make no progress in open regions, the region that most of them are in, and
 * the ranks missing there. Threads that wait for work, or compute, come last, a line for each process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/crash.h"
#include "tools/common/short_names.h"
#include "tools/hang/standing_threads.h"

/* ---- threads without progress ----------------------------------------------------------------------------------- */

uint64_t real_of(const struct fdr_file_info *info, uint64_t ns) { return ns + (uint64_t)info->realtime_offset_ns; }

uint64_t end_of(const struct fdr_file_info *info)
{
    uint64_t seen = info->last_ns;
    if (info->taken_ns > seen) seen = info->taken_ns;
    if (info->alive_ns > seen) seen = info->alive_ns;
    if (info->has_cause && info->cause_time_ns > seen) seen = info->cause_time_ns;
    return info->has_end && info->end_realtime_ns ? info->end_realtime_ns : real_of(info, seen);
}

struct process process_of(struct fdr_file *file, const char *path)
{
    return (struct process){.file = file, .path = path, .end_real_ns = end_of(fdr_file_info(file))};
}

/* True for a file left by a kill: its threads may have stood longer than the file shows. */
bool killed_unseen(const struct process *p)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    return !info->reason[0] && !info->has_cause && !(info->has_end && info->end_realtime_ns);
}

static int by_recording(const struct process *p, const struct process *q)
{
    const struct fdr_file_info *a = fdr_file_info(p->file), *b = fdr_file_info(q->file);
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    if (a->created_realtime_ns != b->created_realtime_ns)
        return a->created_realtime_ns < b->created_realtime_ns ? -1 : 1;
    return strcmp(a->host, b->host);
}

/* The best file of a recording first: the latest, but any file is better than the rest of a live file that is over. Of
 * equal ones the first that was named. */
static int by_worth(const void *x, const void *y)
{
    const struct process *const *p = x, *const *q = y;
    int order = by_recording(*p, *q);
    bool over = fdr_file_info((*p)->file)->over, other_over = fdr_file_info((*q)->file)->over;
    if (order) return order;
    if (over != other_over) return over ? 1 : -1;
    if ((*p)->end_real_ns != (*q)->end_real_ns) return (*p)->end_real_ns > (*q)->end_real_ns ? -1 : 1;
    return *p < *q ? -1 : *p > *q;
}

static bool mark_superseded(struct standing *v)
{
    struct process **sorted = calloc(v->processes + 1, sizeof *sorted);
    if (!sorted) return false;
    for (size_t i = 0; i < v->processes; i++) sorted[i] = &v->process[i];
    if (v->processes) qsort(sorted, v->processes, sizeof *sorted, by_worth);
    for (size_t i = 1; i < v->processes; i++) sorted[i]->superseded = by_recording(sorted[i - 1], sorted[i]) == 0;
    free(sorted);
    return true;
}

/* Keeps one file of each process, the newest. */
void leave_out_older(struct standing *v)
{
    struct process *older = calloc(v->processes + 1, sizeof *older);
    size_t left = 0;
    if (!older || !mark_superseded(v)) {
        free(older);
        return;
    }
    for (size_t i = 0; i < v->processes; i++) {
        if (v->process[i].superseded) older[v->left_out++] = v->process[i];
        else v->process[left++] = v->process[i];
    }
    v->processes = left;
    for (size_t i = 0; i < v->left_out; i++) v->process[left + i] = older[i];
    free(older);
}

/* A kill left the file, and no thread of fdr's noted the time in it. Its end is then the latest moment that any file of
 * the same host has seen. */
void set_end_from_host(struct standing *v)
{
    for (size_t i = 0; i < v->processes; i++) {
        struct process *p = &v->process[i];
        const struct fdr_file_info *a = fdr_file_info(p->file);
        if (!killed_unseen(p) || a->alive_ns) continue;
        for (size_t j = 0; j < v->processes; j++) {
            const struct fdr_file_info *b = fdr_file_info(v->process[j].file);
            if (strcmp(a->host, b->host) == 0 && end_of(b) > p->end_real_ns) p->end_real_ns = end_of(b);
        }
    }
}

const struct fdr_task_info *task_of(const struct fdr_file *file, uint32_t tid)
{
    const struct fdr_task_info *t;
    for (size_t i = 0, n = fdr_tasks(file, &t); i < n; i++)
        if (t[i].tid == tid) return &t[i];
    return NULL;
}

static bool add(struct stuck **list, size_t *count, const struct stuck *s)
{
    struct stuck *wider = realloc(*list, (*count + 1) * sizeof *wider);
    if (!wider) return false;
    *list = wider;
    wider[(*count)++] = *s;
    return true;
}

/* The time after which a thread counts as hanging: 1 s. The file does not have FDR_WATCHDOG; the threads it found have
 * mostly stood for more than a third of the first one's time. So that third serves if it is shorter. */
static uint64_t usual_limit(const struct fdr_file_info *info)
{
    uint64_t second = 1000000000u;
    bool found = info->has_trigger && !strcmp(info->reason_kind, "watchdog");
    return found && info->trigger_value / 3 < second ? info->trigger_value / 3 : second;
}

static void add_standing(struct standing *v, struct process *p, size_t index, bool time_was_given)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    const struct fdr_location_info *l = fdr_location_info(p->file, index);
    uint64_t moved = real_of(info, l->moved_ns > l->to_ns ? l->moved_ns : l->to_ns);
    struct stuck s = {.judgement = judge_standing(p, index, time_was_given),
                      .process = p,
                      .location = l,
                      .task = task_of(p->file, l->tid),
                      .stood_ns = p->end_real_ns > moved ? p->end_real_ns - moved : 0,
                      .since_real_ns = moved};
    snprintf(s.region, sizeof s.region, "%s", region_name(p->file, l->open[l->open_count - 1].region));
    if (s.judgement < STANDS_UNKNOWN) {
        add(&v->quiet, &v->quiet_count, &s);
        return;
    }
    p->stuck += add(&v->stuck, &v->count, &s);
    v->hanging += s.judgement == STANDS_HANGS;
}

/* limit NOT_SAID: the usual one. */
static void find_in_process(struct standing *v, struct process *p, uint64_t limit)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    bool time_was_given = limit != NOT_SAID;
    if (!time_was_given) limit = usual_limit(info);
    p->threads = p->stuck = p->unknown_threads = 0;
    for (size_t i = 0; i < fdr_location_count(p->file); i++) {
        const struct fdr_location_info *l = fdr_location_info(p->file, i);
        if (!l->live || l->open_count == 0 || l->parent != UINT32_MAX) continue;
        if (l->given_times) {
            p->unknown_threads++;
            continue;
        }
        p->threads++;
        uint64_t moved = real_of(info, l->moved_ns > l->to_ns ? l->moved_ns : l->to_ns);
        if ((p->end_real_ns > moved ? p->end_real_ns - moved : 0) >= limit) add_standing(v, p, i, time_was_given);
    }
    int world = world_size(p->file);
    if (info->rank >= 0) v->ranks.rank[v->ranks.count++] = info->rank;
    if (world > v->ranks.world) v->ranks.world = world;
}

static int by_judgement(const void *x, const void *y)
{
    const struct stuck *a = x, *b = y;
    if (a->judgement != b->judgement) return a->judgement > b->judgement ? -1 : 1;
    if (a->since_real_ns != b->since_real_ns) return a->since_real_ns < b->since_real_ns ? -1 : 1;
    return 0;
}

/* ---- the region that most of them are in ------------------------------------------------------------------------ */

bool stands_in(const struct standing *v, const struct process *p, const char *region)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->stuck[i].process == p && strcmp(v->stuck[i].region, region) == 0) return true;
    return false;
}

/* The number of processes with a thread that hangs in this region. */
static size_t processes_in_region(const struct standing *v, const char *region)
{
    size_t n = 0;
    for (size_t p = 0; p < v->processes; p++) n += stands_in(v, &v->process[p], region);
    return n;
}

static int by_region_and_process(const void *x, const void *y)
{
    const struct stuck *a = *(const struct stuck *const *)x, *b = *(const struct stuck *const *)y;
    int by_name = strcmp(a->region, b->region);
    return by_name ? by_name : a->process < b->process ? -1 : a->process > b->process;
}

/* The region in which threads of most processes hang; of several, the one with the earliest. NULL: no thread hangs. */
const char *most_common_region(const struct standing *v)
{
    const struct stuck **sorted = calloc(v->count + 1, sizeof *sorted), *best = NULL;
    size_t most = 0;
    for (size_t i = 0; sorted && i < v->count; i++) sorted[i] = &v->stuck[i];
    if (!sorted) return v->count ? v->stuck[0].region : NULL; /* out of memory */
    qsort(sorted, v->count, sizeof *sorted, by_region_and_process);
    for (size_t i = 0, end; i < v->count; i = end) {
        size_t processes = 0;
        const struct stuck *first = sorted[i];
        for (end = i; end < v->count && !strcmp(sorted[end]->region, sorted[i]->region); end++) {
            processes += end == i || sorted[end]->process != sorted[end - 1]->process;
            if (sorted[end] < first) first = sorted[end];
        }
        if (processes > most || (processes == most && first < best)) most = processes, best = first;
    }
    free(sorted);
    return best ? best->region : NULL;
}

/* ---- as text ---------------------------------------------------------------------------------------------------- */

static void print_process(const struct process *p)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    if (info->rank >= 0) printf("rank %d ", info->rank);
    printf("pid %u on %s", info->pid, plain_name(info->host));
}

/* The thread's native stack, if the watchdog took one; else SIZE_MAX. */
size_t stack_of(const struct stuck *s)
{
    const struct fdr_crash_thread_info *t;
    size_t n = fdr_crash_threads(s->process->file, &t);
    for (size_t i = 0; i < n; i++)
        if (t[i].tid == s->location->tid && t[i].answered) return i;
    return SIZE_MAX;
}

/* In a large job all threads hang in the same few places, and finding the names of a process takes 0.1 s. */
enum { STACKS_MOST = 16 };

/* The kernel's name of the thread, which is newer; else that of its location. */
static const char *name_of_thread(const struct stuck *s)
{
    return s->task && s->task->name[0] ? s->task->name : s->location->name;
}

/* "stopped", "waits for a lock of thread 12 (main)"; "": not known. */
static void print_task(const struct stuck *s)
{
    const struct fdr_task_info *t = s->task, *owner = t ? task_of(s->process->file, t->lock_owner) : NULL;
    if (!t) return;
    if (t->frozen) printf(", frozen");
    else if (t->state == 'T') printf(", stopped");
    else if (t->state == 't') printf(", stopped by a debugger");
    else if (t->state == 'D') printf(", in a call that cannot be interrupted (D)");
    else if (t->state == 'R') printf(", runs");
    if (t->waits_for[0]) printf(", waits for %s%s", strcmp(t->waits_for, "lock") ? "" : "a ", t->waits_for);
    if (owner) printf(" of thread %u (%s)", owner->tid, plain_name(owner->name));
}

/* Innermost first; of a long path as much as fits into two lines. */
static void print_path(const struct stuck *s)
{
    enum { COLUMNS = 200 };
    const struct fdr_open_call *open = s->location->open;
    size_t used = 0;
    printf("   ");
    for (size_t i = s->location->open_count; i-- > 0;) {
        const char *name = plain_shown(s->process->file, open[i].region);
        used += strlen(name) + 3;
        if (used > COLUMNS && i + 1 < s->location->open_count) {
            printf(" < ... %zu more", i + 1);
            break;
        }
        printf(" %s%s", i + 1 < s->location->open_count ? "< " : "", name);
    }
    putchar('\n');
}

static void print_stuck(const struct standing *v, const struct stuck *s, bool with_stack)
{
    char stood[HUMAN_BYTES], name[HUMAN_BYTES], why[160];
    const struct fdr_file_info *info = fdr_file_info(s->process->file);
    print_process(s->process);
    printf(", thread %u%s%s: for %s%s (since %+.6f s%s%s)", s->location->tid, name_of_thread(s)[0] ? " " : "",
           plain_name(name_of_thread(s)), killed_unseen(s->process) ? "at least " : "", human_time(stood, s->stood_ns),
           (double)(s->since_real_ns - v->stuck[0].since_real_ns) / 1e9,
           info->has_cause && info->cause_signal ? ", until " : "",
           info->has_cause && info->cause_signal ? signal_name(info->cause_signal, name) : "");
    print_task(s);
    putchar('\n');
    if (s->judgement == STANDS_UNKNOWN) printf("    undecided: %s\n", why_unknown(s, why));
    print_path(s);
    size_t stack = with_stack ? stack_of(s) : SIZE_MAX;
    if (stack != SIZE_MAX) print_frames(s->process->file, stack, 16);
}

/* Prints the place of a process that does not hang where most do. */
static void print_elsewhere(const struct process *p)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    char name[HUMAN_BYTES];
    printf("not there: ");
    print_process(p);
    if (p->stuck) printf(", which stands elsewhere\n");
    else if (info->has_cause && info->cause_signal)
        printf(", which died of %s\n", signal_name(info->cause_signal, name));
    else if (info->has_cause || info->has_end || killed_unseen(p)) printf(", which has ended\n");
    else if (p->unknown_threads && !p->threads) printf(", which records times of its own\n");
    else printf(", which still runs\n");
}

static void print_others(const struct standing *v, const char *region)
{
    printf("\n%zu of %zu processes stand in %s\n", processes_in_region(v, region), v->processes, plain_name(region));
    for (size_t i = 0; i < v->processes; i++)
        if (!stands_in(v, &v->process[i], region)) print_elsewhere(&v->process[i]);
    print_missing_ranks(&v->ranks);
}

static void print_unknown_ends(const struct standing *v)
{
    for (size_t i = 0; i < v->processes; i++) {
        const struct process *p = &v->process[i];
        if (!killed_unseen(p) || p->stuck == p->threads) continue;
        printf("note: ");
        print_process(p);
        printf(" ended unseen, up to 1 s after its last sign of life: its other threads with open regions may have "
               "hung, too\n");
    }
}

static void print_given_times(const struct standing *v)
{
    for (size_t i = 0; i < v->processes; i++) {
        const struct process *p = &v->process[i];
        if (!p->unknown_threads) continue;
        printf("note: ");
        print_process(p);
        printf(" has %zu thread%s with open regions that record%s times of their own: the time since their last "
               "movement is unknown\n",
               p->unknown_threads, p->unknown_threads == 1 ? "" : "s", p->unknown_threads == 1 ? "s" : "");
    }
}

/* "3 threads wait for work: 14 bio_close (condition), ..." */
static void print_names(const struct standing *v, size_t from, size_t end, enum standing_judgement what)
{
    enum { NAMES = 6 };
    size_t told = 0;
    for (size_t k = from; k < end; k++) {
        const struct stuck *s = &v->quiet[k];
        const char *name = name_of_thread(s);
        if (s->judgement != what || told++ >= NAMES) continue;
        printf("%s %u%s%s", told > 1 ? "," : "", s->location->tid, *name ? " " : "", plain_name(name));
        if (what == STANDS_COMPUTES) printf(" in %s", plain_name(s->region));
        else if (s->task && s->task->waits_for[0]) printf(" (%s)", s->task->waits_for);
    }
    if (told > NAMES) printf(", and %zu more", told - NAMES);
    putchar('\n');
}

/* "idle: pid 12 on vm: ..." */
static void print_quiet(const struct standing *v, enum standing_judgement what)
{
    for (size_t i = 0, end; i < v->quiet_count; i = end) {
        size_t count = 0;
        for (end = i; end < v->quiet_count && v->quiet[end].process == v->quiet[i].process; end++)
            count += v->quiet[end].judgement == what;
        if (!count) continue;
        printf(what == STANDS_IDLE ? "idle: " : "computing: ");
        print_process(v->quiet[i].process);
        if (what == STANDS_IDLE) printf(": %zu thread%s for work:", count, count == 1 ? " waits" : "s wait");
        else printf(": %zu thread%s:", count, count == 1 ? " without events" : "s without events");
        print_names(v, i, end, what);
    }
}

void print_unseen(const struct standing *v)
{
    for (size_t i = 0; i < v->processes; i++)
        if (v->process[i].unseen[0]) printf("note: %s\n", v->process[i].unseen);
}

void print_left_out(const struct standing *v)
{
    if (v->left_out) printf("note: left out, as there is a newer file of the same process:");
    for (size_t i = 0; i < v->left_out; i++) printf(" %s", plain_name(v->process[v->processes + i].path));
    if (v->left_out) putchar('\n');
}

/* The first line: what is said of those that stand. */
static void print_judgement(const struct standing *v)
{
    size_t threads = 0, unknown = v->count - v->hanging;
    const char *s = v->processes == 1 ? "" : "es";
    for (size_t i = 0; i < v->processes; i++) threads += v->process[i].threads;
    if (v->hanging || !v->count)
        printf("%s: %zu of %zu threads with open regions stand, in %zu process%s\n",
               v->hanging ? "hangs" : "nothing hangs", v->hanging, threads, v->processes, s);
    if (unknown)
        printf("undecided: %zu of %zu threads with open regions stand, in %zu process%s; they may hang, or wait for "
               "work\n",
               unknown, threads, v->processes, s);
}

static void print_report(const struct standing *v)
{
    print_judgement(v);
    for (size_t i = 0; i < v->count; i++) print_stuck(v, &v->stuck[i], i < STACKS_MOST);
    if (v->count > STACKS_MOST) printf("(stacks: of the first %d; --json has all)\n", STACKS_MOST);
    if (v->count && v->processes > 1) print_others(v, most_common_region(v));
    print_quiet(v, STANDS_COMPUTES);
    print_quiet(v, STANDS_IDLE);
    print_unseen(v);
    print_unknown_ends(v);
    print_given_times(v);
    print_left_out(v);
}

static void forget_standing(struct standing *v)
{
    free(v->stuck), free(v->quiet);
    v->stuck = v->quiet = NULL;
    v->count = v->hanging = v->quiet_count = v->ranks.count = 0;
}

void free_standing(struct standing *v)
{
    forget_standing(v);
    free(v->process);
    free(v->ranks.rank);
}

/* ---- the door --------------------------------------------------------------------------------------------------- */

void find_stuck_threads(struct standing *v, uint64_t limit_ns)
{
    forget_standing(v);
    for (size_t i = 0; i < v->processes; i++) find_in_process(v, &v->process[i], limit_ns);
    sort_ranks(&v->ranks);
    if (v->count) qsort(v->stuck, v->count, sizeof *v->stuck, by_judgement);
}

int show_standing(struct standing *v, bool json)
{
    if (!json) print_report(v);
    int status = json ? print_standing_json(v) : finish_output();
    return v->hanging ? worse(status, DIFFERENT) : v->count ? worse(status, UNDECIDED_STATUS) : status;
}
