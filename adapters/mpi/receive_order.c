/* SPDX-License-Identifier: MIT */
/* The order of receives. The number of a receive is how many earlier ones, in the order of posting, got a message of
 * its envelope. While an earlier receive from any source or with any tag is open and could match, nobody knows. Such
 * receives wait here, in the order of posting. A receive that completes meanwhile is recorded with a token; when its
 * number is known, a resolution says it.
 *
 * Receives that no open one can match take their number at once and never come here. All others share one lock, which
 * is never held around MPI. */
#include <pthread.h>
#include <string.h>
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

enum { PLACES = 4096, WAITING_MOST = 512 }; /* in all, of one communicator */
static struct waiting {
    const struct fdri_mpi_members *group;
    uint32_t peer, next; /* next: 1 + place */
    int tag;
    bool any_source, any_tag, posting, ambiguous, numbered, completed;
    bool cancelling; /* it may be cancelled; its completion will tell */
    uint64_t token;
    struct fdri_mpi_number number;
} places[PLACES];
static uint32_t free_place = 0, used; /* free_place: 1 + the first of the free ones, beside those never used */
static uint64_t tokens;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct waiting *at(uint32_t place) { return place ? &places[place - 1] : NULL; }

static uint32_t new_place(void)
{
    uint32_t place = free_place;
    if (place) free_place = at(place)->next;
    else if (used < PLACES) place = ++used;
    return place;
}

static bool is_open(const struct waiting *w) { return w->any_source || w->any_tag; }

/* Is it not known whether it takes a message, or which? */
static bool is_unsettled(const struct waiting *w) { return is_open(w) || w->cancelling; }

/* May one message match both? */
static bool meet(const struct waiting *a, const struct waiting *b)
{
    return (a->any_source || b->any_source || a->peer == b->peer) && (a->any_tag || b->any_tag || a->tag == b->tag);
}

static void unlist(struct fdri_mpi_order *o, uint32_t before, uint32_t place)
{
    struct waiting *w = at(place);
    if (before) at(before)->next = w->next;
    else o->first = w->next;
    if (o->last == place) o->last = before;
    fdri_atomic_store_relaxed(&o->count, o->count - 1);
    w->next = 0;
}

static void give_place(uint32_t place)
{
    fdri_mpi_members_leave(at(place)->group);
    at(place)->next = free_place;
    free_place = place;
}

static uint32_t before_place(const struct fdri_mpi_order *o, uint32_t place)
{
    uint32_t before = 0;
    for (uint32_t p = o->first; p && p != place; p = at(p)->next) before = p;
    return before;
}

static uint64_t ordinal_of(const struct waiting *w)
{
    struct fdri_mpi_number n = w->number;
    if (w->ambiguous && n.state == FDRI_MPI_NUMBERED) n.state = FDRI_MPI_AMBIGUOUS;
    return fdri_mpi_number_ordinal(&n);
}

static bool waits(const struct fdri_mpi_order *o, uint32_t place)
{
    const struct waiting *w = at(place);
    if (o->lost) return false;
    for (uint32_t p = o->first; p != place; p = at(p)->next)
        if (is_unsettled(at(p)) && meet(at(p), w)) return true;
    return false;
}

/* Numbers all that no longer wait, in order; tells the numbers of those that are recorded already. */
static void settle(struct fdri_mpi_order *o)
{
    for (uint32_t p = o->first, before = 0, next; p; p = next) {
        struct waiting *w = at(p);
        next = w->next;
        if (!w->numbered && !is_unsettled(w) && !waits(o, p)) {
            if (!o->lost) w->number = fdri_mpi_number_take(FDRI_MPI_RECEIVED, w->group, w->peer, w->tag, false);
            w->numbered = true;
            if (w->token) fdr_message_resolve(w->token, ordinal_of(w));
        }
        if (!w->numbered || w->posting) {
            before = p;
            continue;
        }
        unlist(o, before, p);
        if (w->completed) give_place(p);
    }
}

static void lose(struct fdri_mpi_order *o)
{
    o->lost = true;
    settle(o);
}

/* Two threads post at once: MPI may take either first. */
static void see_others(struct fdri_mpi_order *o, struct waiting *w)
{
    if (fdri_atomic_load_relaxed(&o->posting) > 1) w->ambiguous = true; /* one that does not wait here */
    for (uint32_t p = o->first; p; p = at(p)->next)
        if (at(p)->posting && meet(at(p), w)) at(p)->ambiguous = w->ambiguous = true;
}

static void wait_here(struct fdri_mpi_receive *r)
{
    struct fdri_mpi_order *o = r->group->order;
    pthread_mutex_lock(&lock);
    uint32_t place = o->lost || o->count >= WAITING_MOST ? 0 : new_place();
    if (!place) {
        lose(o);
    } else {
        struct waiting *w = at(place);
        *w = (struct waiting){.group = r->group,
                              .peer = r->peer,
                              .tag = r->tag,
                              .any_source = r->any_source,
                              .any_tag = r->tag < 0,
                              .posting = true};
        fdri_mpi_members_use(r->group);
        see_others(o, w);
        if (o->last) at(o->last)->next = place;
        else o->first = place;
        o->last = place;
        fdri_atomic_store_relaxed(&o->count, o->count + 1);
        if (is_open(w)) fdri_atomic_store_relaxed(&o->wild, o->wild + 1);
        settle(o);
    }
    r->place = place;
    pthread_mutex_unlock(&lock);
}

void fdri_mpi_receive_posts(struct fdri_mpi_receive *r, bool blocking)
{
    if (r->group && !fdri_mpi_numbers_count(r->group)) fdri_mpi_numbers_uncounted(FDRI_MPI_RECEIVED);
    if (!fdri_mpi_numbers_count(r->group)) return;
    struct fdri_mpi_order *o = r->group->order;
    r->place = 0, r->later = r->counted = false;
    r->number = (struct fdri_mpi_number){.state = FDRI_MPI_UNNUMBERED};
    if (o->lost) return;
    bool open = r->any_source || r->tag < 0, threads = fdri_mpi_numbers_threads();
    if (threads) fdri_atomic_add_relaxed(&o->posting, 1u);
    r->wild = fdri_atomic_load_relaxed(&o->wild);
    if (fdri_atomic_load_relaxed(&o->count) || (open && (!blocking || threads)) || (threads && r->wild)) {
        wait_here(r);
        if (threads) fdri_atomic_sub_relaxed(&o->posting, 1u); /* it is seen in the list */
    } else if (open) {
        r->later = true; /* nothing else is posted before it has its message */
    } else {
        r->counted = threads;
        r->number = fdri_mpi_number_take(FDRI_MPI_RECEIVED, r->group, r->peer, r->tag, true);
    }
}

static void end_posting(struct fdri_mpi_receive *r)
{
    struct fdri_mpi_order *o = r->group->order;
    if (!r->place) {
        fdri_mpi_number_posted(&r->number);
        if (!r->counted) return;
        r->counted = false;
        fdri_atomic_sub_relaxed(&o->posting, 1u);
        if (fdri_atomic_load_relaxed(&o->wild) != r->wild && r->number.state == FDRI_MPI_NUMBERED)
            r->number.state = FDRI_MPI_AMBIGUOUS;
        return;
    }
    pthread_mutex_lock(&lock);
    at(r->place)->posting = false;
    settle(o);
    pthread_mutex_unlock(&lock);
}

void fdri_mpi_receive_posted(struct fdri_mpi_receive *r, bool failed)
{
    if (!fdri_mpi_numbers_count(r->group)) return;
    end_posting(r);
    if (failed) fdri_mpi_receive_cancelled(r);
}

/* The order of the communicator is lost: its messages are counted, and no ordinal of the envelope is sure. */
static void count_only(const struct fdri_mpi_receive *r, uint32_t peer, int tag, uint64_t bytes)
{
    const struct fdri_mpi_number number = fdri_mpi_number_take(FDRI_MPI_RECEIVED, r->group, peer, tag, false);
    fdri_mpi_number_stop(&number);
    fdri_mpi_number_bytes(&number, bytes);
}

static void record(const struct fdri_mpi_receive *r, uint32_t peer, int tag, uint64_t bytes, uint64_t ordinal)
{
    fdr_message_recv_nth(peer, tag, r->group->id, bytes, ordinal);
}

/* The lock is held: a resolution never comes before its receive. */
static void complete_waiting(struct fdri_mpi_receive *r, uint32_t peer, int tag, uint64_t bytes)
{
    struct waiting *w = at(r->place);
    w->peer = peer, w->tag = tag;
    w->any_source = w->any_tag = w->cancelling = false;
    settle(r->group->order);
    if (w->numbered) {
        if (r->group->order->lost && !w->number.row) count_only(r, peer, tag, bytes);
        else fdri_mpi_number_bytes(&w->number, bytes);
        record(r, peer, tag, bytes, ordinal_of(w));
        if (!w->posting) give_place(r->place);
        return;
    }
    w->completed = true;
    w->token = ++tokens;
    fdr_message_recv_open(peer, tag, r->group->id, bytes, w->token);
}

void fdri_mpi_receive_completed(struct fdri_mpi_receive *r, uint32_t peer, int tag, uint64_t bytes)
{
    if (r->place) {
        pthread_mutex_lock(&lock);
        complete_waiting(r, peer, tag, bytes);
        pthread_mutex_unlock(&lock);
        return;
    }
    if (r->later) r->number = fdri_mpi_number_take(FDRI_MPI_RECEIVED, r->group, peer, tag, false);
    if (r->group->order->lost && !r->number.row) count_only(r, peer, tag, bytes);
    else fdri_mpi_number_bytes(&r->number, bytes);
    record(r, peer, tag, bytes, fdri_mpi_number_ordinal(&r->number));
}

/* The pending ones behind it move down, those that wait here and those with a number. */
void fdri_mpi_receive_cancelled(struct fdri_mpi_receive *r)
{
    struct fdri_mpi_number number = r->number;
    if (!fdri_mpi_numbers_count(r->group)) return;
    if (r->place) {
        struct fdri_mpi_order *o = r->group->order;
        pthread_mutex_lock(&lock);
        struct waiting *w = at(r->place);
        number = w->number;
        if (!w->numbered) unlist(o, before_place(o, r->place), r->place);
        give_place(r->place);
        settle(o);
        pthread_mutex_unlock(&lock);
    }
    r->place = 0;
    r->number.state = FDRI_MPI_UNNUMBERED;
    if (number.state == FDRI_MPI_UNNUMBERED) return;
    fdri_mpi_requests_move_down(&number);
    fdr_tally_add(number.row, 0, (uint64_t)-1, NULL);
}

void fdri_mpi_receive_forgotten(struct fdri_mpi_receive *r)
{
    if (!r->place) return;
    pthread_mutex_lock(&lock);
    struct waiting *w = at(r->place);
    if (w->numbered) {
        give_place(r->place);
    } else if (is_unsettled(w)) {
        struct fdri_mpi_order *o = r->group->order;
        unlist(o, before_place(o, r->place), r->place);
        give_place(r->place);
        lose(o);
    } else {
        w->completed = true; /* it gets a number that nobody asks for */
    }
    pthread_mutex_unlock(&lock);
}

void fdri_mpi_receive_move_down(struct fdri_mpi_receive *r, const struct fdri_mpi_number *number)
{
    struct fdri_mpi_number *n = r->place ? &at(r->place)->number : &r->number;
    if (n->state != FDRI_MPI_UNNUMBERED && n->row == number->row && n->n > number->n) n->n--;
}

void fdri_mpi_receive_unsure(struct fdri_mpi_receive *r)
{
    if (!fdri_mpi_numbers_count(r->group)) return;
    pthread_mutex_lock(&lock);
    struct waiting *w = at(r->place);
    if (w && !w->numbered) w->cancelling = true;
    else fdri_mpi_number_stop(w ? &w->number : &r->number);
    pthread_mutex_unlock(&lock);
}
