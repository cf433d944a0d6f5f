/* SPDX-License-Identifier: MIT */
/* P8: any bytes. Everything the reader can be asked is asked; every event is looked at for nesting and time. */
#include <fdr/reader.h>
#include <stdlib.h>
#include <string.h>

#include "format/arena.h"
#include "format/crash.h"

/* ---- what is tried ---- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* The check of a crash section is made right again: else next to nothing gets past it. Half of what is tried, so that
 * wrong ones come as well. */
static void check_crash(uint8_t *data, size_t size)
{
    struct fdr_superblock s;
    struct fdr_crash head;
    if (size < sizeof s) return;
    memcpy(&s, data, sizeof s);
    const uint64_t place[] = {s.arena_bytes, s.section_off};
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        if (place[i] > size || size - place[i] < sizeof head) continue;
        uint8_t *at = data + place[i];
        memcpy(&head, at, sizeof head);
        if (head.magic != FDR_CRASH_MAGIC || head.bytes > size - place[i]) continue;
        head.check = 0x243F6A8885A308D3u;
        for (uint64_t k = sizeof head, v; k + 8 <= head.bytes; k += 8) {
            memcpy(&v, at + k, 8);
            head.check = (head.check ^ v) * 0x9E3779B97F4A7C15u;
        }
        memcpy(at, &head, sizeof head);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 2) check_crash(data, size);
    return size;
}

/* ---- what is asked ---- */

static void walk(struct fdr_file *f, const struct fdr_select *select)
{
    struct fdr_iter *it = fdr_iter_open(f, select);
    struct fdr_read_event e;
    uint64_t newest = 0, count = 0;
    if (!it) return;
    while (fdr_iter_next(it, &e)) {
        if (e.time_ns < newest && !(select && select->one_location_after_another)) abort();
        newest = e.time_ns;
        if (++count > 20000000u) abort(); /* an event needs at least a bit */
    }
    fdr_iter_close(it);
}

static void crash(struct fdr_file *f)
{
    const struct fdr_crash_cause_info *cause;
    const struct fdr_crash_thread_info *thread;
    const struct fdr_crash_frame *frame;
    const struct fdr_note_info *note;
    const char *name;
    size_t bytes;
    volatile uint64_t seen = 0; /* all of what is handed out is there */
    fdr_notes(f, &note);
    fdr_crash_causes(f, &cause);
    for (size_t i = 0, n = fdr_crash_threads(f, &thread); i < n; i++) {
        for (size_t k = 0; k < thread[i].register_count; k++) seen += thread[i].registers[k];
        for (size_t k = 0, frames = fdr_crash_frames(f, i, &frame); k < frames; k++)
            seen += strlen(frame[k].function) + strlen(frame[k].file) + strlen(frame[k].module);
    }
    for (size_t i = 0; (name = fdr_crash_text_name(f, i)); i++) {
        const char *text = fdr_crash_text(f, name, &bytes);
        for (size_t k = 0; k < bytes; k++) seen += (uint8_t)text[k];
    }
    (void)seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fdr_file *f;
    char message[256];
    setenv("FDR_SYMBOLS", "0", 1);
    if (fdr_file_open_memory(data, size, &f, message, sizeof message) == FDR_UNREADABLE) return 0;
    const struct fdr_ledger_row *ledger;
    const struct fdr_total *totals;
    const struct fdr_reduction_info *reductions;
    walk(f, NULL); /* before and after bins are known to be good */
    fdr_file_verify(f);
    fdr_ledger(f, &ledger);
    fdr_totals(f, &totals);
    fdr_reductions(f, &reductions);
    struct fdr_select some = {
        .depth_min = 2, .depth_max = 5, .from_ns = 1000, .min_duration_ns = 3, .one_location_after_another = true};
    walk(f, NULL);
    walk(f, &some);
    for (uint32_t kind = 0; kind < 9; kind++) fdr_definition(f, (enum fdr_definition_kind)kind, 3);
    crash(f);
    fdr_file_close(f);
    return 0;
}
