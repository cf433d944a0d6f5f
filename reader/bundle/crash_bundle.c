/* SPDX-License-Identifier: MIT */
/* Parses the crash section, entry by entry: a wrong entry costs only itself. Also reads the notes. */
#include "base/bits.h"
#include "base/system/helper_threads.h"
#include "format/arena/arena.h"
#include "format/arena/crash_section.h"
#include "reader/bundle/crash_bundle.h"
#include "reader/file/file.h"
#include "reader/symbol/symbols.h"

#include <fdr/reader.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- notes ---- */

static const char *copy_text(struct fdr_file *f, const char *from, size_t most)
{
    size_t n = strnlen(from, most);
    char *to = fdri_file_alloc(f, n + 1);
    if (!to) return "";
    for (size_t i = 0; i < n; i++) { /* a program's text must not steer a terminal */
        bool plain = (unsigned char)from[i] >= 0x20 && from[i] != 0x7f;
        to[i] = plain || from[i] == '\n' || from[i] == '\t' ? from[i] : ' ';
    }
    return to;
}

static void add_note(struct fdr_file *f, const struct fdri_arena_note_entry *n)
{
    uint32_t which = FDRI_ARENA_NOTE_WHICH(n->state);
    if (which < 1 || which > 2 || !n->key[0]) return;
    if (!fdri_file_grow(&f->note, f->note_count, &f->note_room, sizeof *f->note)) return;
    f->note[f->note_count++] = (struct fdr_note_info){copy_text(f, n->key, sizeof n->key),
                                                      copy_text(f, n->value[which - 1], sizeof n->value[0])};
}

void fdri_bundle_notes(struct fdr_file *f)
{
    uint64_t *block = NULL, off = f->sb.notes_off; /* the chain goes from new to old */
    size_t blocks = 0, room = 0;
    struct fdri_file_chain chain = {0};
    while (off && fdri_file_grow(&block, blocks, &room, sizeof *block)) {
        if (fdri_file_goes_round(&chain, off)) {
            fdri_file_damage(f, "the blocks of notes form a loop");
            break;
        }
        const struct fdri_arena_notes_block *b = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_NOTES,
                                                                                 UINT32_MAX, sizeof *b);
        if (!b) {
            fdri_file_damage(f, "a block of notes is missing");
            break;
        }
        block[blocks++] = off;
        off = b->next;
    }
    while (blocks) {
        const struct fdri_arena_notes_block *b = (const void *)(f->bytes + block[--blocks]);
        for (uint32_t i = 0; i < b->used && i < FDRI_ARENA_NOTES_PER_BLOCK; i++) add_note(f, &b->note[i]);
    }
    free(block);
}

size_t fdr_notes(const struct fdr_file *f, const struct fdr_note_info **rows)
{
    *rows = f->note;
    return f->note_count;
}

/* ---- entries ---- */

static void add_cause(struct fdr_file *f, const uint8_t *bytes, uint32_t count)
{
    struct fdri_bundle *b = f->bundle;
    struct fdri_arena_crash_cause c;
    if (count < sizeof c || !fdri_file_grow(&b->cause, b->cause_count, &b->cause_room, sizeof *b->cause)) return;
    memcpy(&c, bytes, sizeof c);
    b->cause[b->cause_count++] = (struct fdr_crash_cause_info){c.signal,
                                                               c.code,
                                                               c.error,
                                                               c.tid,
                                                               c.addr,
                                                               fdri_file_full_ns(&f->clock, c.tick),
                                                               c.realtime_ns,
                                                               c.sender_pid,
                                                               c.sender_uid,
                                                               c.flags & FDRI_ARENA_CAUSE_SENT,
                                                               c.flags & FDRI_ARENA_CAUSE_ALSO,
                                                               c.flags & FDRI_ARENA_CAUSE_BEFORE,
                                                               c.flags & FDRI_ARENA_CAUSE_HANDLER};
}

/* Copies an array out of an entry and moves *at to its end. */
static void *copy_array(struct fdr_file *f, const uint8_t **at, uint64_t bytes)
{
    void *to = fdri_file_alloc(f, bytes);
    if (to && bytes) memcpy(to, *at, bytes);
    *at += bytes;
    return to;
}

static void add_thread(struct fdr_file *f, const uint8_t *bytes, uint32_t count)
{
    struct fdri_bundle *b = f->bundle;
    struct fdri_bundle_thread t = {0};
    if (count < sizeof t.raw || !fdri_file_grow(&b->thread, b->thread_count, &b->thread_room, sizeof *b->thread) ||
        !fdri_file_grow(&b->info, b->thread_count, &b->info_room, sizeof *b->info))
        return;
    memcpy(&t.raw, bytes, sizeof t.raw);
    if (sizeof t.raw + 8ull * t.raw.registers + 12ull * t.raw.words > count) return;
    const uint8_t *at = bytes + sizeof t.raw;
    t.registers = copy_array(f, &at, 8ull * t.raw.registers);
    t.word = copy_array(f, &at, 8ull * t.raw.words);
    t.place = copy_array(f, &at, 4ull * t.raw.words);
    if (!t.registers || !t.word || !t.place) return;
    b->info[b->thread_count] = (struct fdr_crash_thread_info){.tid = t.raw.tid,
                                                              .name = copy_text(f, t.raw.name, sizeof t.raw.name),
                                                              .faulting = t.raw.flags & FDRI_ARENA_THREAD_FAULTING,
                                                              .answered = t.raw.flags & FDRI_ARENA_THREAD_ANSWERED,
                                                              .machine = t.raw.machine,
                                                              .pc = t.raw.pc,
                                                              .sp = t.raw.sp,
                                                              .fp = t.raw.fp,
                                                              .register_count = t.raw.registers,
                                                              .registers = t.registers,
                                                              .cut = t.raw.flags & FDRI_ARENA_THREAD_CUT,
                                                              .kept_words = t.raw.words,
                                                              .kept_bytes = fdri_bundle_kept_bytes(&t)};
    b->info[b->thread_count].own = fdri_system_is_helper(b->info[b->thread_count].name);
    b->thread[b->thread_count++] = t;
}

/* Demangles an exception's type name. Demanglers want a whole symbol, so this uses the symbol of the type's
 * typeinfo. */
static void name_type(struct fdr_file *f, struct fdri_bundle_text *t)
{
    static const char prefix[] = "typeinfo for ";
    char *mangled = fdri_file_malloc(t->bytes + sizeof "_ZTI");
    if (!mangled) return;
    snprintf(mangled, t->bytes + sizeof "_ZTI", "_ZTI%s", t->text);
    char *plain = fdri_symbol_demangle(mangled);
    if (plain && strncmp(plain, prefix, sizeof prefix - 1) == 0) {
        t->text = copy_text(f, plain + sizeof prefix - 1, strlen(plain));
        t->bytes = strlen(t->text);
    }
    free(plain);
    free(mangled);
}

static void add_text(struct fdr_file *f, const uint8_t *bytes, uint32_t count)
{
    struct fdri_bundle *b = f->bundle;
    size_t name = strnlen((const char *)bytes, count);
    char *copy = fdri_file_alloc(f, (size_t)count + 1);
    if (name == count || !copy || !fdri_file_grow(&b->text, b->text_count, &b->text_room, sizeof *b->text)) return;
    memcpy(copy, bytes, count);
    struct fdri_bundle_text t = {copy, copy + name + 1, count - name - 1};
    if (strcmp(t.name, "exception") == 0) name_type(f, &t);
    b->text[b->text_count++] = t;
}

static bool checksum_matches(const struct fdri_arena_crash *head, const uint8_t *from)
{
    uint64_t hash = 0x243F6A8885A308D3u;
    for (uint64_t i = sizeof *head; i + 8 <= head->bytes; i += 8) {
        uint64_t v;
        memcpy(&v, from + i, 8);
        hash = (hash ^ v) * 0x9E3779B97F4A7C15u;
    }
    return hash == head->check;
}

void fdri_bundle_read(struct fdr_file *f)
{
    struct fdri_arena_crash head;
    uint64_t off = f->has_crash ? f->end : f->sb.section_off;
    bool promised = f->sb.state == FDRI_ARENA_STATE_CRASHED && off == f->sb.arena_bytes && !f->has_crash;
    if (promised && !f->spare.chunk_count && f->size > f->end) fdri_file_damage(f, "crash section: cut off");
    if (!off || promised) return;
    if (off < f->end || off % 8 || off > f->size || f->size - off < sizeof head) {
        if (!f->has_crash) fdri_file_damage(f, "crash section: cut off");
        return;
    }
    const uint8_t *from = f->bytes + off;
    memcpy(&head, from, sizeof head);
    if (head.magic != FDRI_ARENA_CRASH_MAGIC || head.bytes > f->size - off || head.bytes > FDRI_ARENA_CRASH_MAX_BYTES ||
        head.bytes < sizeof head) {
        fdri_file_damage(f, "crash section: cut off");
        return;
    }
    f->section_end = off + head.bytes;
    if (!checksum_matches(&head, from)) {
        fdri_file_damage(f, "crash section: its check is wrong");
        return;
    }
    if (!(f->bundle = fdri_file_calloc(1, sizeof *f->bundle))) return;
    uint64_t at = sizeof head;
    for (uint32_t i = 0; i < head.count; i++) {
        struct fdri_arena_crash_entry e;
        if (head.bytes - at < sizeof e) break;
        memcpy(&e, from + at, sizeof e);
        at += sizeof e;
        if (e.bytes > head.bytes - at) break;
        if (e.kind == FDRI_ARENA_CRASH_CAUSE) add_cause(f, from + at, e.bytes);
        if (e.kind == FDRI_ARENA_CRASH_THREAD) add_thread(f, from + at, e.bytes);
        if (e.kind == FDRI_ARENA_CRASH_TEXT) add_text(f, from + at, e.bytes);
        at += (e.bytes + 7ull) & ~7ull;
        if (at > head.bytes) break;
    }
}

/* Is the end of the section known? If a section exists but is not found, its end is unknown. */
static bool section_known(const struct fdr_file *f)
{
    return f->section_end || (!f->has_crash && (!f->sb.section_off || f->without_section));
}

void fdri_bundle_bytes_behind(struct fdr_file *f)
{
    const struct fdri_arena_spare *s = &f->spare;
    uint64_t own = fdri_bits_max(f->sb.arena_bytes, f->section_end),
             checks = s->chunk_count * sizeof(struct fdri_arena_chunk);
    if (!s->magic || (f->has_tail && !s->chunk_count) || !section_known(f)) return;
    own = fdri_bits_max(own, f->sb.arena_bytes + s->tail_bytes);
    if (checks && s->chunks_off <= f->size) own = fdri_bits_max(own, s->chunks_off + checks);
    if (f->size > own)
        fdri_file_damage(f, "%llu bytes after the recording do not belong to it", (unsigned long long)(f->size - own));
}

void fdri_bundle_free(struct fdr_file *f)
{
    struct fdri_bundle *b = f->bundle;
    if (!b) return;
    fdri_bundle_unwind_end(b);
    for (size_t i = 0; i < b->thread_count; i++) free(b->thread[i].frame);
    free(b->cause);
    free(b->thread);
    free(b->info);
    free(b->text);
    free(b);
}

/* ---- for callers ---- */

size_t fdr_crash_causes(const struct fdr_file *f, const struct fdr_crash_cause_info **rows)
{
    *rows = f->bundle ? f->bundle->cause : NULL;
    return f->bundle ? f->bundle->cause_count : 0;
}

size_t fdr_crash_threads(const struct fdr_file *f, const struct fdr_crash_thread_info **rows)
{
    *rows = f->bundle ? f->bundle->info : NULL;
    return f->bundle ? f->bundle->thread_count : 0;
}

const char *fdr_crash_text(const struct fdr_file *f, const char *name, size_t *bytes)
{
    for (size_t i = 0; f->bundle && i < f->bundle->text_count; i++) {
        if (strcmp(f->bundle->text[i].name, name)) continue;
        if (bytes) *bytes = f->bundle->text[i].bytes;
        return f->bundle->text[i].text;
    }
    return NULL;
}

const char *fdr_crash_text_name(const struct fdr_file *f, size_t index)
{
    return f->bundle && index < f->bundle->text_count ? f->bundle->text[index].name : NULL;
}

const char *fdr_crash_text_at(const struct fdr_file *f, size_t index, size_t *bytes)
{
    if (!fdr_crash_text_name(f, index)) return NULL;
    if (bytes) *bytes = f->bundle->text[index].bytes;
    return f->bundle->text[index].text;
}

const char *fdr_crash_register_name(uint32_t machine, size_t index)
{
    static const char *const x86[] = {"r8",  "r9",     "r10",    "r11", "r12",    "r13",     "r14", "r15",
                                      "rdi", "rsi",    "rbp",    "rbx", "rdx",    "rax",     "rcx", "rsp",
                                      "rip", "eflags", "csgsfs", "err", "trapno", "oldmask", "cr2"};
    static const char *const arm[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",     "x7",           "x8",
                                      "x9",  "x10", "x11", "x12", "x13", "x14", "x15",    "x16",          "x17",
                                      "x18", "x19", "x20", "x21", "x22", "x23", "x24",    "x25",          "x26",
                                      "x27", "x28", "x29", "x30", "sp",  "pc",  "pstate", "fault_address"};
    if (machine == 62 && index < sizeof x86 / sizeof *x86) return x86[index];
    if (machine == 183 && index < sizeof arm / sizeof *arm) return arm[index];
    return NULL;
}
