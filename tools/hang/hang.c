/* SPDX-License-Identifier: MIT */
/* fdr hang: which ranks are behind, what the others wait for, and how sure that is; for processes without MPI, which
 * threads stand. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/live_files.h"
#include "tools/common/short_names.h"
#include "tools/common/terminal.h"
#include "tools/hang/load.h"
#include "tools/hang/print.h"
#include "tools/hang/standing_threads.h"
#include "tools/hang/verdict.h"

enum { SYMBOLS_MOST = 16 };

struct arguments {
    char **paths;
    size_t count;
    uint64_t limit_ns, after_ns;
    bool json;
};

static const struct argp_option options[] = {
    {"after", 'a', "TIME", 0,
     "Ranks: call it a hang if nothing of those behind has moved for this long (30s, or 20 times the longest such time "
     "of the run)",
     0},
    {"for", 'f', "TIME", 0,
     "Without MPI: a thread hangs if it has not moved for this long (1s; in a file of the watchdog at most a third of "
     "its first thread's time)",
     0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'f':
        if (!parse_duration(text, &a->limit_ns)) argp_error(state, "--for: not a duration: '%s'", text);
        return 0;
    case 'a':
        if (!parse_duration(text, &a->after_ns) || !a->after_ns)
            argp_error(state, "--after: not a duration: '%s'", text);
        return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->paths = state->argv + state->next;
        a->count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_END:
        if (a->count == 0) argp_error(state, "a FILE, PID or DIR is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the files that are meant ---- */

struct names {
    char **name;
    size_t count;
};

static bool add_name(struct names *n, const char *directory, const char *name)
{
    size_t bytes = strlen(directory) + strlen(name) + 2;
    char **wider = realloc(n->name, (n->count + 1) * sizeof *wider), *whole = malloc(bytes);
    if (wider) n->name = wider;
    if (!wider || !whole) {
        free(whole);
        return false;
    }
    snprintf(whole, bytes, "%s%s%s", directory, *directory ? "/" : "", name);
    n->name[n->count++] = whole;
    return true;
}

static bool add_directory(struct names *n, const char *directory)
{
    bool good = true;
    DIR *d = opendir(directory);
    for (struct dirent *e; d && good && (e = readdir(d));)
        if (ends_in(e->d_name, ".fdr")) good = add_name(n, directory, e->d_name);
    if (d) closedir(d);
    return good;
}

static bool find_names(const struct arguments *a, struct names *n)
{
    bool good = true;
    for (size_t i = 0; good && i < a->count; i++) {
        struct stat s;
        bool directory = stat(a->paths[i], &s) == 0 && S_ISDIR(s.st_mode);
        good = directory ? add_directory(n, a->paths[i]) : add_name(n, "", a->paths[i]);
    }
    return good;
}

static void free_names(struct names *n)
{
    for (size_t i = 0; i < n->count; i++) free(n->name[i]);
    free(n->name);
}

/* ---- the verdict ---- */

static int exit_code(enum judgement j) { return j == HANG ? DIFFERENT : j == UNDECIDED ? UNDECIDED_STATUS : DONE; }

static int report_job(struct standing *s, const struct arguments *a)
{
    struct fdr_file **earlier = calloc(s->processes + 1, sizeof *earlier);
    struct job job = {.after_ns = a->after_ns};
    struct verdict v = {0};
    int status = COULD_NOT;
    if (earlier) look_again(s->process, earlier, s->processes);
    bool loaded = earlier && job_load(&job, s->process, earlier, s->processes);
    if (loaded && job.doubled) {
        complain("hang: two processes of one rank run, so these are several jobs; name the recordings of one");
    } else if (loaded && hang_judge(&job, &v)) {
        status = a->json ? print_job_json(&job, &v, s) : print_job(&job, &v, s);
        status = worse(status, exit_code(v.judgement));
    } else {
        complain("hang: out of memory");
    }
    hang_verdict_free(&v);
    job_free(&job);
    for (size_t i = 0; earlier && i < s->processes; i++)
        if (earlier[i]) fdr_file_close(earlier[i]);
    free(earlier);
    return status;
}

/* Threads that seem to stand are looked at twice: what waits anew goes on. */
static int report_threads(struct standing *s, const struct arguments *a)
{
    struct fdr_file **earlier = NULL;
    find_stuck_threads(s, a->limit_ns);
    if (s->count) earlier = calloc(s->processes + 1, sizeof *earlier);
    if (earlier) {
        look_again(s->process, earlier, s->processes);
        for (size_t i = 0; i < s->processes; i++) s->process[i].earlier = earlier[i];
        find_stuck_threads(s, a->limit_ns);
    }
    int status = show_standing(s, a->json);
    for (size_t i = 0; earlier && i < s->processes; i++)
        if (earlier[i]) fdr_file_close(earlier[i]);
    free(earlier);
    return status;
}

static bool open_all(struct standing *s, const struct names *n, int *damage)
{
    s->process = calloc(n->count + 1, sizeof *s->process);
    s->ranks.rank = calloc(n->count + 1, sizeof *s->ranks.rank);
    if (!s->process || !s->ranks.rank) return false;
    s->names_off = n->count > SYMBOLS_MOST && !getenv("FDR_SYMBOLS");
    if (s->names_off) setenv("FDR_SYMBOLS", "0", 1); /* names by address take 0.1 s a process */
    for (size_t i = 0; i < n->count; i++) {
        struct fdr_file *file = open_recording(n->name[i], damage);
        if (file) s->process[s->processes++] = process_of(file, n->name[i]);
    }
    leave_out_older(s);
    return true;
}

/* Asks the kernel about the threads of a process that runs. A live file of one was read as a copy of the process. */
static void look_at(struct process *p)
{
    if (strcmp(fdr_file_info(p->file)->reason, "live") != 0) return;
    ask_kernel(p);
}

static bool any_has_mpi(const struct standing *s)
{
    for (size_t i = 0; i < s->processes; i++)
        if (has_mpi_state(s->process[i].file)) return true;
    return false;
}

int verb_hang(int argc, char **argv)
{
    static const struct argp_child children[] = {{&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "FILE|PID|DIR...",
        "Says which rank of an MPI job is behind, what the others wait for and since when, and whether that is a hang. "
        "Takes recordings, process numbers and directories of recordings, of any of the ranks. Without MPI it shows "
        "which threads stand in open regions. Exit code 1: a hang; 3: undecided.",
        children,
        NULL,
        NULL};
    struct arguments a = {.limit_ns = NOT_SAID};
    struct names names = {0};
    struct standing s = {0};
    int status = DONE, damage = DONE;
    parse_arguments(&argp, argc, argv, &a);
    bool good = find_names(&a, &names) && open_all(&s, &names, &damage);
    bool ranks = good && any_has_mpi(&s);
    for (size_t i = 0; !ranks && i < s.processes; i++) look_at(&s.process[i]);
    set_end_from_host(&s);
    if (!good) status = COULD_NOT;
    else if (ranks) status = report_job(&s, &a);
    else if (s.processes) status = report_threads(&s, &a);
    static const char *const next[] = {"findings", "html -o page.html", NULL};
    if (!a.json && s.processes) print_hint(next, a.count == 1 ? plain_name(a.paths[0]) : "FILE...");
    for (size_t i = 0; i < s.processes + s.left_out; i++)
        damage = worse(damage, close_partly_read(s.process[i].file, s.process[i].path));
    free_standing(&s);
    free_names(&names);
    if (good && s.processes && (status || damage == DIFFERENT)) return status; /* damage is no hang */
    return worse(status, damage);
}
