/* SPDX-License-Identifier: MIT */
/* The files by which the ranks of a job ask each other for a snapshot. All runs in the dumper thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fd/kept_open.h"
#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "export/trigger/job_asks.h"
#include "export/view.h"

#define OFTEN_NS 1000000000u
#define WAIT_NS  5000000000u  /* for the answers */
#define STALE_NS 60000000000u /* an older ask is nobody's any more */
enum { SERVED = 8, KEY_MOST = 100, NAME_MOST = KEY_MOST + 40, TEXT_MOST = 1 << 20 };

static struct {
    char name[NAME_MOST]; /* of the ask's file; "": this process is no rank of a known job */
    uint32_t size;
    uint64_t look_ns;
    uint64_t served[SERVED]; /* ids of the newest asks that this rank has answered */
    uint32_t serves;
    uint64_t taken_ns;    /* since 1970: when the newest snapshot for the job began, */
    int result;           /* and what came of it */
    uint64_t seen[2];     /* time of change of the file in each place */
    uint64_t own, due_ns; /* the own ask under way, 0: none */
    char reason[160];
    unsigned said;
} job;

static const struct fdri_fd_kept *place(int i)
{
    return i == 0 ? &fdri_snapshot_view.kept_live_dir : &fdri_snapshot_view.kept_dir;
}
static int directory(int i) { return fdri_fd_is_kept(place(i)->fd, place(i)) ? place(i)->fd : -1; }

/* ---- which job ---- */

/* The launcher's name of the job. Under Slurm each step is a job. Processes of an MPICH launcher that tells no name
 * have one parent on each node. */
static bool name_of_job(char *key, size_t bytes)
{
    static const char *const name[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMI_JOBID"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const char *id = secure_getenv(name[i]), *step = i == 1 ? secure_getenv("SLURM_STEP_ID") : NULL;
        if (id && *id) return snprintf(key, bytes, "%s%s%s", id, step ? "." : "", step ? step : "") > 0;
    }
    char host[64] = "host";
    gethostname(host, sizeof host - 1);
    return secure_getenv("PMI_RANK") && snprintf(key, bytes, "%s.%d", host, (int)getppid()) > 0;
}

static uint32_t size_of_job(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const char *text = secure_getenv(name[i]);
        unsigned long n = text ? strtoul(text, NULL, 10) : 0;
        if (n > 0 && n <= FDRI_TRIGGER_RANKS) return (uint32_t)n;
    }
    return 0;
}

void fdri_trigger_job_start(void)
{
    char key[KEY_MOST] = "";
    memset(&job, 0, sizeof job);
    if (fdri_snapshot_view.rank < 0 || !name_of_job(key, sizeof key)) return;
    for (char *c = key; *c; c++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-", *c)) *c = '_';
    snprintf(job.name, sizeof job.name, "job-%s.fdr.ask.part", key);
    job.size = size_of_job();
}

/* ---- files ---- */

/* The text of the file in a place; NULL: there is none. To be freed. */
static char *read_ask(int i)
{
    struct stat st;
    int fd = directory(i) < 0 ? -1 : fdri_fd_open(directory(i), job.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) return NULL;
    char *text = NULL;
    if (fdri_system_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size < TEXT_MOST)
        text = malloc((size_t)st.st_size + 1);
    long n = text ? fdri_system_pread(fd, text, (uint64_t)st.st_size, 0) : -1;
    fdri_system_close(fd);
    if (n >= 0) text[n] = 0;
    else free(text), text = NULL;
    return text;
}

/* Never an incomplete file under this name. False: there is one already, or no file can be made. */
static bool make_ask(int i, const char *text, size_t bytes)
{
    char part[NAME_MOST + 32];
    if (directory(i) < 0) return false;
    snprintf(part, sizeof part, "%.*s.%d.part", NAME_MOST - 1, job.name, fdri_export_pid());
    int fd = fdri_fd_open(directory(i), part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0) return false;
    bool made = fdri_system_pwrite(fd, text, bytes, 0) == (long)bytes &&
                fdri_system_rename_new(directory(i), part, directory(i), job.name) == 0;
    fdri_system_close(fd);
    if (!made) fdri_system_unlinkat(directory(i), part);
    return made;
}

static void remove_ask(int i)
{
    if (directory(i) >= 0) fdri_system_unlinkat(directory(i), job.name);
}

/* Lines are short, and each is one write behind the end: they do not mix. */
static void answer(int result)
{
    char line[160];
    int n = result ? snprintf(line, sizeof line, "rank %d failed: %.100s\n", fdri_snapshot_view.rank, strerror(-result))
                   : snprintf(line, sizeof line, "rank %d taken\n", fdri_snapshot_view.rank);
    for (int i = 0; i < 2; i++) {
        int fd = directory(i) < 0 ? -1 : fdri_fd_open(directory(i), job.name, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
        if (fd < 0) continue;
        (void)!write(fd, line, (size_t)n);
        fdri_system_close(fd);
    }
}

static bool is_fresh(const struct fdri_trigger_ask *a)
{
    uint64_t now = fdri_clock_ns(CLOCK_REALTIME);
    return now < a->at_ns || now - a->at_ns < STALE_NS;
}

static bool is_served(uint64_t id)
{
    for (int i = 0; i < SERVED; i++)
        if (job.served[i] == id) return true;
    return false;
}
static void mark_served(uint64_t id) { job.served[job.serves++ % SERVED] = id; }

static int take(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota, bool join)
{
    job.taken_ns = fdri_clock_ns(CLOCK_REALTIME);
    job.result = fdri_snapshot_take(why, quota, join);
    answer(job.result);
    return job.result;
}

/* The ask in a place that this rank has not answered. Removes one that nobody can be waiting for. */
static bool ask_in(int i, struct fdri_trigger_ask *a)
{
    char *text = read_ask(i);
    bool is_one = text && fdri_trigger_ask_read(text, a);
    free(text);
    if (is_one && is_fresh(a)) return !is_served(a->id);
    if (is_one) remove_ask(i);
    return false;
}

/* ---- asking ---- */

/* If another rank asks just now, the snapshot that follows answers it. */
static bool join_other(struct fdri_trigger_ask *other)
{
    for (int i = 0; i < 2; i++) {
        if (!ask_in(i, other)) continue;
        mark_served(other->id);
        return true;
    }
    other->id = 0;
    return false;
}

static void ask_others(const char *reason)
{
    struct fdri_trigger_ask a = {.rank = fdri_snapshot_view.rank, .at_ns = fdri_clock_ns(CLOCK_REALTIME)}, other;
    char text[320];
    gethostname(a.host, sizeof a.host - 1);
    if (!a.host[0]) strcpy(a.host, "host");
    snprintf(a.reason, sizeof a.reason, "%.159s", reason);
    a.id = (a.at_ns ^ (uint64_t)fdri_export_pid() << 40) | 1;
    size_t n = fdri_trigger_ask_write(&a, text, sizeof text);
    if (join_other(&other)) return;
    bool asked = make_ask(0, text, n);
    if (!asked && join_other(&other)) return; /* it was faster */
    asked |= make_ask(1, text, n);
    mark_served(a.id);
    if (asked) {
        job.own = a.id;
        job.due_ns = fdri_clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
        snprintf(job.reason, sizeof job.reason, "%s", a.reason);
    } else {
        fdri_text_message("scope job: no ask can be written to the live directory or FDR_DIR; the other ranks take no "
                          "snapshot (%s)",
                          a.reason);
    }
}

int fdri_trigger_job_take(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota)
{
    if (!job.name[0] && fdri_text_once(&job.said))
        fdri_text_message("scope job: no launcher has told this process its rank and job; only its own snapshot is "
                          "taken");
    if (job.name[0] && !job.own) ask_others(why->reason);
    return job.name[0] ? take(why, quota, false) : fdri_snapshot_take(why, quota, false);
}

/* ---- the answers ---- */

/* True: the result was said, and the ask is over. */
static bool settle(bool at_once)
{
    struct fdri_trigger_answers a = {.size = job.size, .answered = calloc(FDRI_TRIGGER_RANKS, 1)};
    char text[700];
    bool over = false;
    for (int i = 0; i < 2 && a.answered; i++) {
        char *answers = read_ask(i);
        if (answers) fdri_trigger_answers_add(&a, answers);
        free(answers);
    }
    if (a.answered && (at_once || fdri_trigger_answers_all(&a))) {
        over = true;
        fdri_trigger_answers_say(&a, text, sizeof text);
        fdri_text_message("snapshot of the whole job (%s): %s", job.reason, text);
    }
    free(a.answered);
    for (int i = 0; over && i < 2; i++) remove_ask(i);
    if (over) job.own = 0;
    return over;
}

/* ---- asks of others ---- */

static bool has_changed(int i)
{
    struct stat st;
    if (directory(i) < 0 || fdri_system_lstat(directory(i), job.name, &st)) return false;
    uint64_t changed = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec + st.st_ino;
    bool is_new = changed != job.seen[i];
    job.seen[i] = changed;
    return is_new;
}

static void serve(int i)
{
    struct fdri_trigger_ask a;
    char reason[256];
    if (!ask_in(i, &a)) return;
    mark_served(a.id);
    if (a.at_ns <= job.taken_ns) { /* two ranks asked at once */
        answer(job.result);
        return;
    }
    snprintf(reason, sizeof reason, "rank %d on %.40s asked: %.159s", a.rank, a.host, a.reason);
    struct fdri_snapshot_why why = fdri_snapshot_because(FDRI_ARENA_REASON_JOB, reason);
    struct fdri_snapshot_quota quota = fdri_snapshot_whole_quota();
    take(&why, &quota, true);
}

uint64_t fdri_trigger_job_look(uint64_t now, bool last)
{
    if (!job.name[0]) return UINT64_MAX;
    if (last) {
        if (job.own) settle(true);
        return UINT64_MAX;
    }
    if (now < job.look_ns) return job.look_ns;
    job.look_ns = now + OFTEN_NS;
    for (int i = 0; i < 2; i++)
        if (has_changed(i)) serve(i);
    if (job.own) settle(now >= job.due_ns);
    return job.look_ns;
}
