/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P8 wrap=fdri_file_alloc
 * P8: a crash section may hold any values under a correct check. The reader builds call stacks only from words that the
 * entry has. It neither reads nor writes beyond its memory. */
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "format/arena/crash_section.h"
#include "tests/support/arena_builder.c"

/* ---- memory of the reader, with a pattern after each piece ---- */

enum { BEHIND = 256, PIECES_MAX = 4096, PATTERN = 0x5a };
static const uint8_t *piece_end[PIECES_MAX];
static size_t pieces;

struct fdr_file;
void *__real_fdri_file_alloc(struct fdr_file *f, size_t bytes);
void *__wrap_fdri_file_alloc(struct fdr_file *f, size_t bytes);
void *__wrap_fdri_file_alloc(struct fdr_file *f, size_t bytes)
{
    uint8_t *p = __real_fdri_file_alloc(f, bytes + BEHIND);
    assert_true(p && pieces < PIECES_MAX);
    memset(p + bytes, PATTERN, BEHIND);
    piece_end[pieces++] = p + bytes;
    return p;
}

static void untouched(void)
{
    for (size_t i = 0; i < pieces; i++)
        for (size_t k = 0; k < BEHIND; k++)
            if (piece_end[i][k] != PATTERN) fail_msg("%zu bytes behind a piece of memory something was written", k);
}

/* ---- a bundle of one thread ---- */

#define STACK 0x7f0000001000u
/* Saved frame pointers, each followed by a return address. */
static const uint64_t word[] = {STACK + 16, 0x401000, STACK + 32, 0x401100, 0, 0x401200};
static const uint32_t place[] = {0, 8 + 1, 16, 24 + 1, 32, 40 + 1};
enum { WORDS = sizeof word / sizeof *word, REGISTERS_MAX = 40 };

static uint64_t check_of(const uint8_t *section, size_t bytes)
{
    uint64_t hash = 0x243F6A8885A308D3u, v;
    for (size_t i = sizeof(struct fdri_arena_crash); i + 8 <= bytes; i += 8) {
        memcpy(&v, section + i, 8);
        hash = (hash ^ v) * 0x9E3779B97F4A7C15u;
    }
    return hash;
}

static size_t put(uint8_t *to, size_t at, const void *from, size_t bytes)
{
    memcpy(to + at, from, bytes);
    return at + bytes;
}

static size_t put_section(uint8_t *to, uint32_t machine, uint32_t flags, uint32_t registers)
{
    static const uint64_t none[REGISTERS_MAX];
    struct fdri_arena_crash head = {.magic = FDRI_ARENA_CRASH_MAGIC, .count = 1};
    struct fdri_arena_crash_thread t = {
        .tid = 7, .flags = flags, .sp = STACK, .pc = 0x401050, .machine = machine, .words = WORDS};
    t.registers = registers;
    struct fdri_arena_crash_entry e = {FDRI_ARENA_CRASH_THREAD, (uint32_t)(sizeof t + 8u * registers + 12u * WORDS)};
    size_t at = put(to, sizeof head, &e, sizeof e);
    at = put(to, at, &t, sizeof t);
    at = put(to, at, none, 8u * registers);
    at = put(to, at, word, sizeof word);
    at = put(to, at, place, sizeof place);
    head.bytes = (at + 7) & ~(size_t)7;
    memset(to + at, 0, head.bytes - at);
    head.check = check_of(to, head.bytes);
    put(to, 0, &head, sizeof head);
    return head.bytes;
}

/* The number of frames that the reader shows for the thread. */
static size_t frames(uint32_t machine, uint32_t flags, uint32_t registers)
{
    struct builder_options o = {.arena_bytes = 128u << 10, .bin_bytes = 1024};
    struct builder *b = builder_new(&o);
    size_t bytes;
    char message[256];
    struct fdr_file *f;
    const struct fdr_crash_thread_info *info;
    const struct fdr_crash_frame *row;
    const uint8_t *image = builder_image(b, &bytes);
    uint8_t *bundle = aligned_alloc(64, bytes + 4096);
    memcpy(bundle, image, bytes);
    bytes += put_section(bundle + bytes, machine, flags, registers);
    pieces = 0;
    assert_int_equal(fdr_file_open_memory(bundle, bytes, &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_crash_threads(f, &info), 1);
    assert_int_equal(info[0].register_count, registers);
    size_t n = fdr_crash_frames(f, 0, &row);
    untouched();
    fdr_file_close(f);
    free(bundle);
    builder_free(b);
    return n;
}

static void P8_any_number_of_registers(void **state)
{
    static const uint32_t machine[] = {62, 183, 0, 0xffff};
    (void)state;
    for (int symbols = 0; symbols < 2; symbols++) {
        setenv("FDR_SYMBOLS", symbols ? "1" : "0", 1);
        for (size_t m = 0; m < sizeof machine / sizeof *machine; m++)
            for (uint32_t n = 0; n < REGISTERS_MAX; n++)
                for (uint32_t place_only = 0; place_only < 2; place_only++)
                    assert_true(
                        frames(machine[m], FDRI_ARENA_THREAD_ANSWERED | place_only * FDRI_ARENA_THREAD_PLACE, n) >= 1);
    }
}

/* The bundle ends exactly at the end of its arena. The reader reports the missing section. The recovered file is whole
 * and does not repeat this report. */
static void P8_missing_section_is_reported(void **state)
{
    (void)state;
    struct builder_options o = {.arena_bytes = 128u << 10, .bin_bytes = 1024};
    struct builder *b = builder_new(&o);
    size_t bytes;
    char message[256], path[] = "/tmp/fdr-bundle-XXXXXX";
    struct fdr_file *f;
    close(mkstemp(path));
    builder_location(b, "thread");
    uint8_t *image = builder_image(b, &bytes);
    ((struct fdri_arena_superblock *)image)->state = FDRI_ARENA_STATE_CRASHED;
    ((struct fdri_arena_superblock *)image)->cause_signal = 11;
    pieces = 0;
    /* the process was killed before it began the section */
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_WHOLE);
    assert_true(fdr_file_info(f)->killed_in_handler);
    fdr_file_close(f);
    ((struct fdri_arena_superblock *)image)->section_off = bytes;
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_DAMAGED);
    assert_int_equal(fdr_file_damage_count(f), 1);
    assert_false(fdr_file_info(f)->killed_in_handler);
    assert_non_null(strstr(message, "the crash section is missing"));
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    fdr_file_close(f);
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    assert_string_equal(fdr_file_info(f)->state, "crashed");
    fdr_file_close(f);
    unlink(path);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P8_missing_section_is_reported),
        cmocka_unit_test(P8_any_number_of_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
