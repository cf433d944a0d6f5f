/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P3
 * P3: a snapshot of a thread that went on recording. A call that was open at the cut has its name if the copied stack
 * has it. Otherwise it is marked as not over, never as reduced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fdr/reader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/arena/arena.h"
#include "tests/support/arena_builder.c"

/* An image with a tail. Its location went on; its stack was copied at `cut` with `depth` calls. */
static struct fdr_file *moving(struct builder *b, uint32_t location, uint64_t cut, uint32_t depth)
{
    size_t bytes;
    struct fdr_file *f = NULL;
    char message[200];
    builder_raw(b, location)->depth = depth;
    const uint8_t *image = builder_image(b, &bytes);
    struct {
        struct fdri_arena_tail head;
        struct fdri_arena_tail_entry entry;
    } tail = {{.magic = FDRI_ARENA_TAIL_MAGIC, .count = 1},
              {.location = location, .presented = 1000, .cut_tick = cut, .end_tick = cut + 1000}};
    static uint8_t *file; /* stays until the next call */
    free(file);
    file = malloc(bytes + sizeof tail);
    memcpy(file, image, bytes);
    memcpy(file + bytes, &tail, sizeof tail);
    assert_true(fdr_file_open_memory(file, bytes + sizeof tail, &f, message, sizeof message) <= FDR_DAMAGED);
    assert_non_null(f);
    return f;
}

/* Writes events as text: a letter enters (? reduced, ! not over), ) leaves, * is a point. */
static void shown(struct fdr_file *f, char *text)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    uint64_t now = 0;
    while (fdr_iter_next(it, &e)) {
        assert_true(e.time_ns >= now);
        now = e.time_ns;
        if (e.kind == FDR_ENTER) *text++ = e.not_over ? '!' : e.reduced ? '?' : (char)('a' + e.id - 1);
        else *text++ = e.kind == FDR_LEAVE ? ')' : '*';
    }
    *text = 0;
    fdr_iter_close(it);
}

/* The calls a, b and c are open at 140; all later events came after the cut. */
static struct builder *example(uint32_t *location)
{
    struct builder *b = builder_new(&(struct builder_options){0});
    uint64_t value = 1;
    for (int i = 0; i < 4; i++) builder_define(b, FDRI_ARENA_DEF_REGION, (char[]){(char)('a' + i), 0}, "", 0);
    *location = builder_location(b, "main");
    builder_enter(b, *location, 1, 100);
    builder_enter(b, *location, 2, 110);
    builder_enter(b, *location, 3, 120);
    builder_enter(b, *location, 4, 125);
    builder_leave(b, *location, 130);
    builder_point(b, *location, FDRI_ARENA_CLASS_MARKER, 1, 140, &value, 1);
    return b;
}

static void P3_calls_that_were_open(void **state)
{
    static const struct {
        uint32_t depth;
        const char *shown;
    } cases[] = {{3, "abcd)*)))"}, {2, "ab!d)*)))"}, {1, "a!!d)*)))"}, {0, "!!!d)*)))"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        uint32_t location;
        struct builder *b = example(&location);
        struct fdr_file *f = moving(b, location, 140, cases[i].depth);
        shown(f, text);
        assert_string_equal(text, cases[i].shown);
        fdr_file_close(f);
        builder_free(b);
    }
}

/* A call that has neither record nor frame is over if a later call began at its depth: it is reduced, not open. Of two
 * open frames the outer one may have a record by now. The inner one was open all the same. */
static void P3_calls_that_were_over(void **state)
{
    char text[64];
    uint32_t location;
    (void)state;
    struct builder *b = example(&location);
    builder_leave_lost(b, location, 150);
    builder_enter(b, location, 4, 160);
    builder_leave(b, location, 170);
    struct fdr_file *f = moving(b, location, 180, 2);
    shown(f, text);
    assert_string_equal(text, "ab?d))*d)))");
    fdr_file_close(f);
    builder_free(b);

    b = example(&location);
    builder_leave_lost(b, location, 150);
    builder_leave(b, location, 160);
    f = moving(b, location, 140, 3);
    shown(f, text);
    assert_string_equal(text, "abcd)*)))");
    fdr_file_close(f);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_calls_that_were_open),
        cmocka_unit_test(P3_calls_that_were_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
