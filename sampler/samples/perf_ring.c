/* SPDX-License-Identifier: MIT */
/* Samples taken by the kernel, of threads that never called fdr. Nothing is known about their stacks, so no handler
 * runs there if the kernel can sample. It writes into a small ring, which the helper reads every few milliseconds. */
#define _GNU_SOURCE
#include <errno.h>
#include <fdr/fdr.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/fd/descriptor.h"
#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "sampler/samples/frame_walk.h"
#include "sampler/samples/sample_setting.h"
#include "sampler/samples/sample_source.h"
#include "sampler/samples/sample_target.h"
#include "sampler/samples/sampler.h"

enum { DATA_PAGES = 8, STACK_BYTES = 8 };

static int open_ring(uint32_t tid, bool kernel)
{
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.size = sizeof a;
    a.type = fdri_samples_sampler.settings.events ? fdri_samples_sampler.settings.type : PERF_TYPE_SOFTWARE;
    a.config = fdri_samples_sampler.settings.events ? fdri_samples_sampler.settings.config : PERF_COUNT_SW_TASK_CLOCK;
    a.sample_period = fdri_samples_sampler.settings.period_ns;
    a.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
                    PERF_SAMPLE_STACK_USER;
    a.sample_stack_user = STACK_BYTES;
    a.exclude_kernel = !kernel;
    a.exclude_hv = 1;
    a.exclude_callchain_kernel = 1;
    a.use_clockid = 1;
    a.clockid = CLOCK_MONOTONIC;
    return fdri_fd_perf_open(&a, (int)tid, -1);
}

bool fdri_samples_ring_open(struct fdri_samples_target *t)
{
    long page = sysconf(_SC_PAGESIZE);
    if (!fdri_fd_budget_take(1)) return false;
    int fd = open_ring(t->tid, fdri_samples_sampler.perf_kernel);
    if (fd < 0) {
        fdri_fd_budget_give(1);
        return false;
    }
    t->ring_bytes = (uint64_t)(DATA_PAGES * page);
    t->ring = mmap(NULL, t->ring_bytes + (uint64_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (t->ring == MAP_FAILED) {
        t->ring = NULL;
        close(fd);
        fdri_fd_budget_give(1);
        return false;
    }
    madvise(t->ring, t->ring_bytes + (uint64_t)page, MADV_DONTFORK);
    fdri_samples_sampler.fds++;
    t->fd = fd;
    t->event = fdri_fd_perf_id(fd);
    t->source = FDRI_SAMPLES_BY_RING;
    t->periods_accounted = 0;
    t->missed_cpu_ns = 0;
    t->opened_ns = fdri_samples_source_cpu_ns(t->tid);
    if (t->step > 1) fdri_samples_source_rate(t);
    return true;
}

void fdri_samples_ring_close(struct fdri_samples_target *t)
{
    fdri_samples_ring_drain(t);
    munmap(t->ring, t->ring_bytes + (uint64_t)sysconf(_SC_PAGESIZE));
    t->ring = NULL;
    if (fdri_samples_source_there(t)) close(t->fd);
    t->fd = -1;
    fdri_samples_sampler.fds--;
    fdri_fd_budget_give(1);
}

/* ---- reading ---- */

static void copy_out(const struct fdri_samples_target *t, uint64_t at, void *to, uint64_t bytes)
{
    const uint8_t *data = (const uint8_t *)t->ring + sysconf(_SC_PAGESIZE);
    uint64_t from = at % t->ring_bytes, first = t->ring_bytes - from;
    if (first > bytes) first = bytes;
    memcpy(to, data + from, first);
    memcpy((uint8_t *)to + first, data, bytes - first);
}

/* Takes a sample: ip, time, clock value, number of frames, frames. Frames above -4096 are marks (kernel, user); the
 * first other frame is the ip. Then the size of the copied stack and its lowest word, the return address of a function
 * without a frame. */
static void parse_sample(struct fdri_samples_target *t, const uint64_t *word, uint64_t words)
{
    struct fdri_samples_frames f = {.count = 0};
    uint64_t frames = word[3], pc = 0, units = (word[2] + t->missed_cpu_ns) / fdri_samples_sampler.settings.period_ns;
    if (frames > words - 4) frames = words - 4;
    uint64_t stack = words - 4 - frames >= 2 && word[4 + frames] ? word[5 + frames] : 0;
    for (uint64_t i = 0; i < frames && f.count < FDRI_SAMPLES_FRAMES_MAX; i++) {
        if (word[4 + i] >= (uint64_t)-4096) continue;
        if (!pc) {
            pc = word[4 + i];
            if (stack && fdri_samples_walk_is_caller(&t->calls, stack, pc)) f.address[f.count++] = stack;
        } else if (!(f.cut = !fdri_samples_walk_is_code(word[4 + i]))) {
            f.address[f.count++] = word[4 + i];
        } else {
            break; /* the code has no frame pointers, so the kernel followed a wrong one */
        }
    }
    if (!pc) pc = word[0] < 1ull << 47 ? word[0] : 0;
    if (units <= t->periods_accounted) return;
    bool stacks = fdri_samples_sampler.settings.stacks != FDRI_SAMPLES_NO_STACKS;
    struct fdr_look look = {.weight = units - t->periods_accounted,
                            .pc = pc,
                            .stack = f.address,
                            .stack_count = stacks ? f.count : 0,
                            .flags = stacks && f.cut ? FDR_LOOK_CUT : 0};
    uint64_t step = fdr_sample_at(t->stream, &look, word[1]);
    if (!step) return;
    t->periods_accounted = units;
    fdri_atomic_bump_relaxed(&t->taken, 1u);
    if (step == t->step) return;
    t->step = step;
    fdri_samples_source_rate(t);
}

/* The event of the task clock does not count the cost of switching to the thread. That is CPU time (10 us each time in
 * virtual machines). The thread's clock is read before the event: the thread may run in between, and unused time must
 * not be accounted. */
static void look_beside(struct fdri_samples_target *t)
{
    if (fdri_samples_sampler.settings.events || !fdri_samples_source_there(t)) return;
    uint64_t counted, passed = fdri_samples_source_cpu_ns(t->tid) - t->opened_ns;
    if (fdri_system_read(t->fd, &counted, sizeof counted) != sizeof counted || passed <= counted || passed >> 63)
        return;
    t->missed_cpu_ns = fdri_bits_max(t->missed_cpu_ns, passed - counted);
}

void fdri_samples_ring_drain(struct fdri_samples_target *t)
{
    struct perf_event_mmap_page *head = t->ring;
    uint64_t to = fdri_atomic_load_acquire(&head->data_head); /* A:ring - the kernel's release: the records */
    uint64_t at = head->data_tail;
    uint64_t word[FDRI_SAMPLES_FRAMES_MAX + 16];
    if (at < to) look_beside(t);
    while (at < to) {
        struct perf_event_header h;
        copy_out(t, at, &h, sizeof h);
        if (h.size < sizeof h || h.size > to - at) break;
        uint64_t bytes = fdri_bits_min(h.size - sizeof h, sizeof word);
        copy_out(t, at + sizeof h, word, bytes);
        if (h.type == PERF_RECORD_SAMPLE && bytes >= 4 * sizeof word[0]) parse_sample(t, word, bytes / sizeof word[0]);
        at += h.size;
    }
    fdri_atomic_store_release(&head->data_tail, to); /* R:ring - the records were read: the kernel may overwrite them */
}
