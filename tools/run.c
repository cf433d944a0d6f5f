/* SPDX-License-Identifier: MIT */
/* fdr run: starts a program, waits, and keeps the recordings that a kill left, with the kind of end. It copies them out
 * of the live directory. Passes on the exit status or the death by a signal. A launcher of MPI jobs: run_job.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/verbs.h"
#include "tools/common/found_recordings.h"
#include "tools/common/live_files.h"
#include "tools/run_job.h"

struct arguments {
    char **command;
    const char *out;
};

static const struct argp_option options[] = {
    {"output", 'o', "DIR", 0, "Target directory of the copy (FDR_DIR, else the working directory)", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'o': a->out = text; return 0;
    case ARGP_KEY_ARG: /* the rest belongs to the program */
        a->command = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!a->command) argp_error(state, "a command is needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- processes killed for want of memory in this control group (version 2, else 1) ---- */

static uint64_t field(const char *path, const char *name)
{
    char line[256];
    uint64_t value = 0;
    FILE *f = fopen(path, "re");
    size_t n = strlen(name);
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && line[n] == ' ') value = strtoull(line + n, NULL, 10);
    if (f) fclose(f);
    return value;
}

static uint64_t oom_kills(void)
{
    char line[1024], path[1200];
    uint64_t sum = 0;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        const char *group = strchr(line, ':') ? strchr(strchr(line, ':') + 1, ':') : NULL;
        if (!group) continue;
        if (strncmp(line, "0::", 3) == 0) {
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.events", group + 1);
            sum += field(path, "oom_kill");
        } else if (strstr(line, ":memory:")) {
            snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.oom_control", group + 1);
            sum += field(path, "oom_kill");
        }
    }
    if (f) fclose(f);
    return sum;
}

/* ---- the program ---- */

static volatile sig_atomic_t child;

/* Signals from the terminal go to the whole process group, so the program got them already. */
static void forward_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    (void)context;
    if (child > 0 && info->si_code != SI_KERNEL) kill((pid_t)child, number);
    errno = saved;
}

/* Not SIGTSTP and the like: stopping concerns this process as well as the program. */
static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM};
enum { PASSED = sizeof passed / sizeof passed[0] };

static void execute(char **command, const char *live, const sigset_t *mask, const struct sigaction *on_child)
{
    sigaction(SIGCHLD, on_child, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (live) setenv("FDR_LIVE_DIR", live, 1);
    execvp(command[0], command);
    complain("%s: %s", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Returns the program's wait status; INT_MIN: it could not be started. live NULL: uses the default live directory. */
static int run(char **command, const char *live)
{
    struct sigaction ours = {.sa_sigaction = forward_signal, .sa_flags = SA_RESTART | SA_SIGINFO}, before[PASSED];
    struct sigaction standard = {.sa_handler = SIG_DFL}, on_child;
    sigset_t all, old;
    int status = INT_MIN;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);       /* no signal is lost between the fork and the handlers */
    sigaction(SIGCHLD, &standard, &on_child); /* if SIGCHLD were ignored, waiting would return no status */
    pid_t pid = fork();
    if (pid == 0) execute(command, live, &old, &on_child);
    if (pid < 0) complain("%s: cannot be started: %s", command[0], strerror(errno));
    if (pid > 0) child = pid;
    for (int i = 0; i < PASSED; i++) {
        sigaction(passed[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) sigaction(passed[i], &ours, NULL);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    for (int i = 0; i < PASSED; i++) sigaction(passed[i], &before[i], NULL);
    return pid > 0 ? status : INT_MIN;
}

/* ---- its recordings ---- */

static uint64_t realtime_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void keep_recording(const struct found_recording *l, const char *out, int status, uint64_t kills)
{
    char to[4096];
    if (l->live) {
        complain("%s: process %u still writes it; it stays", l->path, l->pid);
        return;
    }
    if (l->unneeded) { /* its process could not remove it */
        int e = recording_remove(l);
        if (e) complain("%s: %s; it stays", l->path, strerror(-e));
        return;
    }
    int e = recording_copy(l, out, to, sizeof to);
    if (!e) {
        bool own = (pid_t)l->pid == (pid_t)child; /* of others nobody saw the moment: they may be gone for long */
        e = fdr_file_add_end(to, own ? status : INT_MIN, (uint32_t)kills, own ? realtime_ns() : 0);
        if (e) unlink(to); /* keep the original */
    }
    if (e) complain("%s: cannot be copied to %s: %s; it stays", l->path, out, strerror(-e));
    else if (recording_remove(l) == 0) complain("kept %s", to);
}

/* Makes a directory below the live directory for this run alone, so every file in it afterwards belongs to this run.
 * Other users have no access. */
static bool make_directory(char *path, size_t bytes)
{
    struct stat st;
    if (mkdir(live_directory(), 0700) != 0 && errno != EEXIST) return false;
    if (lstat(live_directory(), &st)) return false;
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) {
        errno = EPERM;
        return false;
    }
    char *whole = realpath(live_directory(), NULL); /* an absolute path, as the program may change its directory */
    if (!whole) return false;
    bool fits = snprintf(path, bytes, "%s/run-%d-XXXXXX", whole, (int)getpid()) < (int)bytes;
    free(whole);
    if (!fits) errno = ENAMETOOLONG;
    return fits && mkdtemp(path) != NULL;
}

/* Ends as the program did: with its status or its signal. */
static int end_as(int status)
{
    if (status == INT_MIN) return COULD_NOT;
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    struct rlimit none = {0, 0};
    sigset_t one;
    setrlimit(RLIMIT_CORE, &none); /* the program wrote its core file; another one is useless */
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* Ranks that the launcher killed may take a moment to end. */
enum { ENDS_MOST = 30, ENDS_PAUSE_US = 100000 };
static bool any_lives(const struct found_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->entry[i]->live) return true;
    return false;
}

static void find_left(const char *live, bool job, struct found_list *list)
{
    recordings_find(live, RECORDINGS_ANY_OWNER, list);
    for (int i = 0; job && i < ENDS_MOST && any_lives(list); i++) {
        usleep(ENDS_PAUSE_US);
        recordings_free(list);
        recordings_find(live, RECORDINGS_ANY_OWNER, list);
    }
}

int verb_run(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[--] COMMAND [ARGUMENT...]",
        "Runs a program and waits. If it is killed, its recording is copied out of the live directory, with its exit "
        "status or signal. The copy also has the number of processes that the kernel killed meanwhile for want of "
        "memory; `fdr info` shows both. Of mpirun, mpiexec, srun and the like all ranks leave their files in one "
        "folder, and the verdict of fdr crash or fdr hang is printed. Signals are passed on to the program; this "
        "command ends with its exit status or signal.",
        NULL,
        NULL,
        NULL};
    const char *directory = getenv("FDR_DIR");
    struct arguments a = {.out = directory && directory[0] ? directory : NULL};
    struct found_list list = {0};
    char live[4096], folder[4096];
    parse_flagged(&argp, argc, argv, ARGP_IN_ORDER, &a);
    bool job = is_job_launcher(a.command[0]), new_folder = job && !a.out, symbols = getenv("FDR_SYMBOLS") != NULL;
    long long began = (long long)(realtime_ns() / 1000000000u);
    if (job && !job_folder(a.out, folder, sizeof folder)) {
        complain("%s: no folder for the job's files: %s", a.out ? plain_name(a.out) : "fdr-job", strerror(errno));
        return COULD_NOT;
    }
    if (job) a.out = folder;
    else if (!a.out) a.out = ".";
    if (!make_directory(live, sizeof live)) {
        complain("%s: %s; the program runs, but its recording is not kept if it is killed", live_directory(),
                 strerror(errno));
        return end_as(run(a.command, NULL));
    }
    uint64_t before = oom_kills();
    int status = run(a.command, live);
    uint64_t kills = oom_kills() - before;
    setenv("FDR_SYMBOLS", "0", 0);
    find_left(live, job, &list);
    for (size_t i = 0; i < list.count; i++) keep_recording(list.entry[i], a.out, status, kills);
    recordings_free(&list);
    rmdir(live); /* fails if a file is left in it */
    if (!symbols) unsetenv("FDR_SYMBOLS");
    if (job) job_verdict(folder, new_folder, began);
    return end_as(status);
}
