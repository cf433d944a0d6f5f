/* SPDX-License-Identifier: MIT */
/* When snapshots are taken: by the API in the caller's thread, by a signal in the dumper thread, at the end.
 * One is taken at a time; whoever asks while one runs gets its result. */
#define _GNU_SOURCE
#include <errno.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/say.h"
#include "export/export.h"

struct fdri_export_view fdri_view;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static bool active;             /* between start and stop */
static bool running;            /* a snapshot is being written */
static uint64_t finished;       /* snapshots written or failed, ever */
static int last_result;
static char last_path[FDRI_PATH_MAX];

static sem_t asked;
static pthread_t dumper;
static bool have_dumper, stopping;
static struct sigaction previous;
static int installed;           /* signal number, 0 = none */

static void say_failed(const char *what, int e)
{
    fdri_say("snapshot (%s) in %s failed: %s; recording goes on", what, fdri_view.dir, strerror(-e));
}

static int write_one(const char *reason, bool limited)
{
    struct fdri_new_file f;
    int e = limited ? fdri_files_admit() : 0;
    if (!e) e = fdri_file_begin(&f);
    if (e) return e;
    struct fdr_superblock *s = (void *)fdri_view.base;
    uint64_t number = fdr_add_relaxed(&s->snapshots_taken, 1u) + 1;
    e = fdri_copy_arena(f.fd, reason, number);
    if (e) {
        fdri_file_abandon(&f);
        say_failed(reason ? reason : "", e);
        return e;
    }
    return fdri_file_commit(&f);
}

/* Joins a snapshot under way, else takes one. The lock is not held while files are written. */
static int take(const char *reason, bool limited)
{
    pthread_mutex_lock(&lock);
    if (!active) {
        pthread_mutex_unlock(&lock);
        return -ESRCH;
    }
    if (running) {
        uint64_t mine = finished + 1;
        while (finished < mine) pthread_cond_wait(&done, &lock);
        int result = last_result;
        pthread_mutex_unlock(&lock);
        return result;
    }
    running = true;
    pthread_mutex_unlock(&lock);
    int result = write_one(reason, limited);
    pthread_mutex_lock(&lock);
    running = false;
    finished++;
    last_result = result;
    if (!result) memcpy(last_path, fdri_files_last(), sizeof last_path);
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&lock);
    return result;
}

int fdr_snapshot(const char *reason)
{
    if (!fdr_load_relaxed(&fdr_switch_.on)) return -ESRCH; /* also a child made without atfork handlers */
    return take(reason ? reason : "api", true);
}
int fdri_export_final(const char *reason) { return take(reason, false); }
const char *fdr_last_snapshot(void) { return last_path; }

/* ---- by signal ---- */

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    sem_post(&asked); /* async-signal-safe; the dumper does the work */
    if (previous.sa_flags & SA_SIGINFO) {
        if (previous.sa_sigaction) previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    }
    errno = saved;
}

static void *dump_loop(void *unused)
{
    uint64_t last = 0;
    (void)unused;
    for (;;) {
        while (sem_wait(&asked) && errno == EINTR) {}
        if (fdr_load_acquire(&stopping)) return NULL; /* A:stop */
        while (sem_trywait(&asked) == 0) {} /* requests that came together are one */
        if (fdr_load_acquire(&stopping)) return NULL; /* A:stop */
        uint64_t now = fdr_clock_ns(CLOCK_MONOTONIC);
        if (last && now - last < fdri_view.holdoff_ns) continue;
        last = now;
        take("signal", true);
    }
}

static int start_dumper(void)
{
    sigset_t all, old;
    stopping = false;
    sem_init(&asked, 0, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* the application's signals are not ours to take */
    int e = pthread_create(&dumper, NULL, dump_loop, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (e) return -e;
    pthread_setname_np(dumper, "fdr-dumper");
    have_dumper = true;
    return 0;
}

static void install(void)
{
    struct sigaction now, ours;
    installed = 0;
    if (!fdri_view.signal || sigaction(fdri_view.signal, NULL, &now)) return;
    if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN) return; /* ignored stays ignored */
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    previous = now;
    if (sigaction(fdri_view.signal, &ours, NULL) == 0) installed = fdri_view.signal;
}

int fdri_export_start(const struct fdri_export_view *view)
{
    pthread_mutex_lock(&lock);
    fdri_view = *view;
    fdri_files_reset();
    active = true;
    pthread_mutex_unlock(&lock);
    if (!fdri_view.signal) return 0;
    int e = start_dumper();
    if (!e) install();
    return e;
}

static void uninstall(void)
{
    struct sigaction now;
    if (installed && sigaction(installed, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
        sigaction(installed, &previous, NULL);
    installed = 0;
}

void fdri_export_stop(void)
{
    uninstall();
    if (have_dumper) {
        fdr_store_release(&stopping, true); /* R:stop */
        sem_post(&asked);
        pthread_join(dumper, NULL);
        have_dumper = false;
    }
    pthread_mutex_lock(&lock);
    while (running) pthread_cond_wait(&done, &lock);
    active = false;
    pthread_mutex_unlock(&lock);
}

void fdri_export_fork(int phase)
{
    if (phase == 3) {
        pthread_mutex_init(&lock, NULL);
        return;
    }
    if (phase == 0) {
        pthread_mutex_lock(&lock);
        return;
    }
    if (phase == 2) { /* no dumper here, and nothing to dump; a signal does what it did before fdr */
        uninstall();
        active = running = have_dumper = false;
        last_path[0] = 0;
        pthread_cond_init(&done, NULL);
    }
    pthread_mutex_unlock(&lock);
}
