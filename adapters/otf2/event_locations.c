/* SPDX-License-Identifier: MIT */
/* Which thread records the events of an event writer. fdr has one location for each thread, and a location has one
 * order of events. So a thread of the program records for the first writer that it writes to. Events of other writers
 * go through a queue to a thread of their own. So do those of a writer that several threads write to in turn. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapters/otf2/otf2_adapter.h"

enum { PLACES = 256 };
struct fdri_otf2_queue {
    struct fdri_otf2_record item[PLACES];
    uint32_t in, out; /* of the program's thread; of the queue's own */
    sem_t filled, empty;
    pthread_t thread;
    struct fdri_otf2_writer *writer;
};
enum { END = UINT32_MAX }; /* a kind */

__thread struct fdri_otf2_writer *fdri_otf2_mine;
__thread uint32_t fdri_otf2_inside;

static void down(sem_t *s)
{
    while (sem_wait(s) != 0 && errno == EINTR) {}
}

static void *run(void *queue)
{
    struct fdri_otf2_queue *q = queue;
    fdri_otf2_inside++; /* for ever */
    fdr_thread_name(q->writer->name);
    for (;;) {
        down(&q->filled);
        const struct fdri_otf2_record *r = &q->item[q->out++ % PLACES];
        if (r->kind == END) return NULL;
        fdri_otf2_record(q->writer, r);
        sem_post(&q->empty);
    }
}

/* Signals of the program are for its own threads. */
static bool start(struct fdri_otf2_queue *q)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&q->thread, NULL, run, q);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !error;
}

static void make_queue(struct fdri_otf2_writer *w)
{
    struct fdri_otf2_queue *q = calloc(1, sizeof *q);
    if (!q) return;
    q->writer = w;
    sem_init(&q->filled, 0, 0);
    sem_init(&q->empty, 0, PLACES);
    if (start(q)) w->queue = q;
    else free(q);
}

static void push(struct fdri_otf2_queue *q, const struct fdri_otf2_record *r)
{
    down(&q->empty);
    q->item[q->in++ % PLACES] = *r;
    sem_post(&q->filled);
}

static void bind(struct fdri_otf2_writer *w)
{
    if (!w->bound && !fdri_otf2_mine) {
        fdri_otf2_mine = w;
        fdr_thread_name(w->name);
    } else {
        make_queue(w);
    }
    w->bound = true;
}

void fdri_otf2_submit(struct fdri_otf2_writer *w, const struct fdri_otf2_record *r)
{
    if (fdri_otf2_mine != w && !w->queue) bind(w);
    if (w->queue) push(w->queue, r);
    else if (fdri_otf2_mine == w) fdri_otf2_record(w, r);
    else w->not_kept++;
}

void fdri_otf2_finish(struct fdri_otf2_writer *w)
{
    struct fdri_otf2_queue *q = w->queue;
    for (int i = 0; q && i < PLACES; i++) down(&q->empty);
    for (int i = 0; q && i < PLACES; i++) sem_post(&q->empty);
}

void fdri_otf2_end_queue(struct fdri_otf2_writer *w)
{
    static const struct fdri_otf2_record end = {.kind = END};
    if (!w->queue) return;
    push(w->queue, &end);
    pthread_join(w->queue->thread, NULL);
    sem_destroy(&w->queue->filled);
    sem_destroy(&w->queue->empty);
    free(w->queue);
    w->queue = NULL;
}
