/* SPDX-License-Identifier: MIT */
/* Finds the call stacks of a bundle by unwind tables. If these give nothing, it takes frame pointers, else words that
 * look like return addresses, marked as guessed. */
#include "format/arena/arena.h"
#include "format/arena/crash_section.h"
#include "reader/bundle/crash_bundle.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GUESSES = 24, X86_64 = 62, RBP = 10 /* index in its registers */ };

bool fdri_bundle_word(const struct fdri_bundle_thread *t, uint64_t address, uint64_t *value)
{
    uint64_t distance = address - t->raw.sp;
    uint32_t low = 0, high = t->raw.words;
    if (address < t->raw.sp || distance > UINT32_MAX) return false;
    while (low < high) {
        uint32_t i = low + (high - low) / 2;
        uint64_t there = t->place[i] & ~7u;
        if (there == distance) {
            *value = t->word[i];
            return true;
        }
        if (there < distance) low = i + 1;
        else high = i;
    }
    return false;
}

uint64_t fdri_bundle_kept_bytes(const struct fdri_bundle_thread *t)
{
    if (t->raw.scanned_bytes || !t->raw.words) return t->raw.scanned_bytes;
    return (t->place[t->raw.words - 1] & ~7u) + 8ull;
}

struct fdr_crash_frame *fdri_bundle_frame(struct fdri_bundle_thread *t)
{
    if (t->frame_count >= FDRI_BUNDLE_FRAMES_MAX ||
        !fdri_file_grow(&t->frame, t->frame_count, &t->frame_room, sizeof *t->frame))
        return NULL;
    struct fdr_crash_frame *r = &t->frame[t->frame_count++];
    *r = (struct fdr_crash_frame){.function = "", .file = "", .module = ""};
    return r;
}

const struct fdri_file_definition *fdri_bundle_module_at(const struct fdr_file *f, uint64_t address)
{
    const struct fdri_file_definitions *all = &f->definitions[FDRI_ARENA_DEF_MODULE];
    for (size_t i = all->count; i-- > 0;) /* newest first: it may lie where an older one was unloaded */
        if (address >= all->row[i].d.address && address - all->row[i].d.address < all->row[i].bytes)
            return &all->row[i];
    return NULL;
}

/* Follows rbp or x29: it points to the caller's value, with the return address after it. */
static void by_frame_pointers(struct fdr_file *f, struct fdri_bundle_thread *t)
{
    uint64_t fp = t->raw.fp, next, back;
    for (int i = 0; i < 256 && fdri_bundle_word(t, fp + 8, &back); i++) {
        if (!fdri_bundle_module_at(f, back)) break;
        fdri_bundle_frame_at(f, t, back, true, false);
        if (!fdri_bundle_word(t, fp, &next) || next <= fp) break;
        fp = next;
    }
}

static void by_guess(struct fdr_file *f, struct fdri_bundle_thread *t)
{
    int n = 0;
    for (uint32_t i = 0; i < t->raw.words && n < GUESSES; i++) {
        if (!(t->place[i] & 1)) continue;
        fdri_bundle_frame_at(f, t, t->word[i], true, true);
        n++;
    }
}

/* Of some threads only sp and pc are known. Functions with frame pointers leave a chain of them on the stack.
 * The first pair that looks like a link of the chain gives the frame pointer. */
static void guess_frame_pointer(struct fdri_bundle_thread *t)
{
    uint64_t back, next;
    if (!(t->raw.flags & FDRI_ARENA_THREAD_PLACE) || t->raw.machine != X86_64 || t->raw.registers <= RBP) return;
    for (uint32_t i = 0; i + 1 < t->raw.words; i++) {
        uint64_t at = t->raw.sp + (t->place[i] & ~7u);
        bool pair = t->place[i + 1] == ((t->place[i] & ~7u) + 8) + 1 && fdri_bundle_word(t, at, &next) && next > at &&
                    fdri_bundle_word(t, next + 8, &back);
        if (!pair) continue;
        t->registers[RBP] = t->raw.fp = at;
        return;
    }
}

/* Is the unwound stack usable? If the stored part of the stack ends before the callers, remains of earlier calls in
 * it tell nothing about these callers. */
static bool unwound(const struct fdri_bundle_thread *t)
{
    bool ends_there = t->raw.flags & FDRI_ARENA_THREAD_CUT && t->beyond;
    return t->frame_count > 1 || (t->frame_count && ends_there);
}

static void find_frames(struct fdr_file *f, struct fdri_bundle_thread *t)
{
    guess_frame_pointer(t);
    fdri_bundle_unwind(f, t);
    if (unwound(t)) return;
    t->frame_count = 0;
    fdri_bundle_frame_at(f, t, t->raw.pc, false, false);
    size_t self = t->frame_count;
    by_frame_pointers(f, t);
    if (t->frame_count == self) by_guess(f, t);
}

/* A mapping may go on after the end of a whole stack. So a cut stack marks its last frame only if the frames do not
 * reach the thread's begin. */
static void stack_of(struct fdr_file *f, struct fdri_bundle_thread *t)
{
    if (!(t->raw.flags & FDRI_ARENA_THREAD_ANSWERED)) return;
    find_frames(f, t);
    if (t->raw.flags & FDRI_ARENA_THREAD_CUT && !t->whole && t->frame_count) t->frame[t->frame_count - 1].cut = true;
}

size_t fdr_crash_frames(struct fdr_file *f, size_t thread, const struct fdr_crash_frame **rows)
{
    *rows = NULL;
    if (!f->bundle || thread >= f->bundle->thread_count) return 0;
    struct fdri_bundle_thread *t = &f->bundle->thread[thread];
    pthread_mutex_lock(&f->lock);
    if (!t->unwound) stack_of(f, t);
    t->unwound = true;
    pthread_mutex_unlock(&f->lock);
    *rows = t->frame;
    return t->frame_count;
}
