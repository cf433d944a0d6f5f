/* SPDX-License-Identifier: MIT */
/* Stacks of a running process, in the form in which a crash section has those of a dead one. */
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/stack/registers.h"
#include "base/system/helper_threads.h"
#include "base/system/task_state.h"
#include "format/arena/crash_section.h"
#include "reader/bundle/crash_bundle.h"
#include "reader/file/file.h"

static bool have_bundle(struct fdr_file *f)
{
    if (!f->bundle) f->bundle = fdri_file_calloc(1, sizeof *f->bundle);
    return f->bundle;
}

static char *copy(struct fdr_file *f, const char *text)
{
    char *to = fdri_file_alloc(f, strlen(text) + 1);
    return to ? strcpy(to, text) : NULL;
}

bool fdri_bundle_add_text(struct fdr_file *f, const char *name, const char *text)
{
    struct fdri_bundle *b = have_bundle(f) ? f->bundle : NULL;
    if (!b || !fdri_file_grow(&b->text, b->text_count, &b->text_room, sizeof *b->text)) return false;
    struct fdri_bundle_text t = {copy(f, name), copy(f, text), strlen(text)};
    if (!t.name || !t.text) return false;
    b->text[b->text_count++] = t;
    return true;
}

/* A word in a module may be a return address; the unwinder needs no more to find frame pointers. */
static void fill(struct fdr_file *f, struct fdri_bundle_thread *t, const uint64_t *stack)
{
    for (uint32_t i = 0; i < t->raw.words; i++) {
        t->word[i] = stack[i];
        t->place[i] = i * 8 | (fdri_bundle_module_at(f, stack[i] - 1) != NULL);
    }
}

bool fdri_bundle_add_live(struct fdr_file *f, uint32_t tid, const char *name, const struct fdri_system_call *place,
                          const uint64_t *stack, uint32_t words, bool cut)
{
    struct fdri_bundle *b = have_bundle(f) ? f->bundle : NULL;
    struct fdri_bundle_thread t = {0};
    if (!b || !fdri_file_grow(&b->thread, b->thread_count, &b->thread_room, sizeof *b->thread) ||
        !fdri_file_grow(&b->info, b->thread_count, &b->info_room, sizeof *b->info))
        return false;
    t.raw = (struct fdri_arena_crash_thread){.tid = tid,
                                             .machine = FDRI_STACK_MACHINE,
                                             .registers = FDRI_STACK_REGISTERS,
                                             .words = words,
                                             .scanned_bytes = words * 8,
                                             .sp = place->sp,
                                             .pc = place->pc,
                                             .flags = FDRI_ARENA_THREAD_ANSWERED | FDRI_ARENA_THREAD_PLACE |
                                                      (cut ? FDRI_ARENA_THREAD_CUT : 0)};
    t.registers = fdri_file_alloc(f, FDRI_STACK_REGISTERS * sizeof *t.registers);
    t.word = fdri_file_alloc(f, words * sizeof *t.word + 1);
    t.place = fdri_file_alloc(f, words * sizeof *t.place + 1);
    if (!t.registers || !t.word || !t.place) return false;
    fdri_stack_registers_place(t.registers, place->sp, place->pc);
    fill(f, &t, stack);
    b->info[b->thread_count] = (struct fdr_crash_thread_info){.tid = tid,
                                                              .name = copy(f, name),
                                                              .answered = true,
                                                              .machine = t.raw.machine,
                                                              .pc = place->pc,
                                                              .sp = place->sp,
                                                              .register_count = t.raw.registers,
                                                              .registers = t.registers,
                                                              .own = fdri_system_is_helper(name),
                                                              .cut = cut,
                                                              .kept_words = words,
                                                              .kept_bytes = words * 8ull};
    b->thread[b->thread_count++] = t;
    return b->info[b->thread_count - 1].name;
}
