/* SPDX-License-Identifier: MIT */
/* One look at a thread from outside. The open calls are read before and after the state. If they are the same, the
 * thread was in that state inside of these calls. If not, it ran meanwhile, and where it ran is unknown. */
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/system/task_look.h"
#include "sampler/samples/look.h"
#include "sampler/samples/sample_target.h"
#include "sampler/samples/samples_view.h"

enum { TRIES = 2, STATES = 256, TEXT_BYTES = 80 };

static fdri_samples_open_calls_of *open_calls_of;

/* ---- names of states, as regions of the recording ---- */

static struct {
    char text[TEXT_BYTES];
    fdr_region region;
} known[STATES];
static uint32_t states;

void fdri_samples_look_begin(fdri_samples_open_calls_of *open_calls)
{
    open_calls_of = open_calls;
    states = 0;
}

static fdr_region state_region(const struct fdri_system_task *task)
{
    char text[TEXT_BYTES] = "[";
    fdri_system_task_describe(task, text + 1, sizeof text - 2);
    memcpy(text + strlen(text), "]", 2);
    for (uint32_t i = 0; i < states; i++)
        if (!strcmp(known[i].text, text)) return known[i].region;
    fdr_region region = fdr_region_define(text, "", 0);
    if (states == STATES) return region;
    memcpy(known[states].text, text, sizeof text);
    known[states++].region = region;
    return region;
}

/* ---- one look ---- */

static bool same(const struct fdri_samples_open_calls *a, const struct fdri_samples_open_calls *b)
{
    if (a->known != b->known) return false;
    return !a->known || (a->whole && b->whole && a->depth == b->depth && a->tick == b->tick && a->made == b->made);
}

/* *calls: the open calls around the state, or those that the thread has at the end if it did not stand still. */
static struct fdri_system_task look_at(const struct fdri_samples_target *t, struct fdri_samples_open_calls *calls)
{
    static struct fdri_samples_open_calls before; /* one thread looks */
    struct fdri_system_task task = {.kind = FDRI_SYSTEM_TASK_UNREAD};
    bool stood = false;
    open_calls_of(t->stream, calls);
    for (int i = 0; i < TRIES && !stood; i++) {
        before = *calls;
        task = fdri_system_task_look(t->tid);
        open_calls_of(t->stream, calls);
        stood = same(&before, calls);
    }
    if (!stood && task.kind != FDRI_SYSTEM_TASK_GONE) task = (struct fdri_system_task){.kind = FDRI_SYSTEM_TASK_RUNS};
    return task;
}

bool fdri_samples_look(struct fdri_samples_target *t, uint64_t weight)
{
    static struct fdri_samples_open_calls calls;
    struct fdri_system_task task = look_at(t, &calls);
    if (task.kind == FDRI_SYSTEM_TASK_GONE) return false;
    fdr_region path[FDRI_SAMPLES_OPEN_MOST + 1];
    memcpy(path, calls.region, calls.count * sizeof *path);
    path[calls.count] = state_region(&task);
    bool moved = calls.known && !calls.whole;
    struct fdr_look look = {.weight = weight,
                            .pc = task.placed ? task.pc : 0,
                            .path = path,
                            .path_count = calls.count + 1,
                            .flags = FDR_LOOK_OUTSIDE | (moved ? (uint32_t)FDR_LOOK_MOVED : 0u) |
                                     (calls.cut ? (uint32_t)FDR_LOOK_CUT : 0u)};
    uint64_t step = fdr_sample(t->stream, &look);
    if (!step) return false;
    t->step = step;
    fdri_atomic_bump_relaxed(&t->taken, 1u);
    return true;
}
