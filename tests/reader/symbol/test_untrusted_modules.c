/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P8
 * P8: the reader does not trust the modules and functions that a recording names. It opens no path that is not a
 * regular file. The time for many modules and functions grows little faster than the size of the file. */
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "reader/file/file.h"
#include "reader/symbol/symbols.h"
#include "tests/support/arena_builder.c"
#include "tests/support/random_numbers.h"

#define BUILD_ID "00112233445566778899aabbccddeeff00112233"

static struct fdr_file *opened(struct builder *b)
{
    size_t bytes;
    char message[256];
    struct fdr_file *f;
    const uint8_t *image = builder_image(b, &bytes);
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_WHOLE);
    return f;
}

static const char *name_of(const struct fdr_file *f, uint32_t region)
{
    return fdr_definition(f, FDR_REGION_DEFINITION, region)->name;
}

/* ---- paths ---- */

/* Opening a pipe without a writer would block the reader. */
static void P8_a_module_that_is_no_file(void **state)
{
    static const char *const path[] = {"/dev/zero", "/dev", "/dev/shm/fdr-test-modules-pipe", "/nowhere"};
    struct builder_options o = {.arena_bytes = 256u << 10};
    struct builder *b = builder_new(&o);
    uint32_t region[sizeof path / sizeof *path];
    char want[64];
    (void)state;
    unlink(path[2]);
    assert_int_equal(mkfifo(path[2], 0600), 0);
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        uint64_t at = 0x10000 * (i + 1);
        region[i] = builder_function(b, at + 0x20, builder_module(b, path[i], BUILD_ID, at, 0x1000));
    }
    struct fdr_file *f = opened(b);
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        assert_int_equal(fdri_symbol_symbols_fd(path[i]), -1);
        snprintf(want, sizeof want, "%s+0x20", strrchr(path[i], '/') + 1);
        assert_string_equal(name_of(f, region[i]), want);
        assert_string_equal(fdr_place(f, 0x10000 * (i + 1) + 0x20, false)->module, path[i]);
    }
    fdr_file_close(f);
    unlink(path[2]);
    builder_free(b);
}

/* ---- many modules and functions ---- */

/* If each module looked through 10,000 functions and each of these through 10,000 modules, that would be 10^12
 * steps. */
static void P8_many_modules_and_functions(void **state)
{
    enum { COUNT = 10000 };
    struct builder_options o = {.arena_bytes = 8u << 20};
    struct builder *b = builder_new(&o);
    char name[32], want[64];
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "/nowhere/lib%u.so", i);
        builder_module(b, name, BUILD_ID, 0x100000ull * (COUNT - i), 0x1000);
    }
    for (uint32_t i = 0; i < COUNT; i++) builder_function(b, 0x100000ull * (COUNT - i) + 16 + i, i + 1);
    uint32_t before = builder_function(b, 0x10, 1), unknown = builder_function(b, 0x20, COUNT + 7),
             none = builder_function(b, 0x30, 0);
    struct fdr_file *f = opened(b);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(want, sizeof want, "lib%u.so+0x%x", i, 16 + i);
        assert_string_equal(name_of(f, i + 1), want);
        fdr_place(f, 0x100000ull * (COUNT - i) + 16 + i, false);
    }
    assert_string_equal(name_of(f, before), "0x10"); /* the address lies before the module that the recording names */
    assert_string_equal(name_of(f, unknown), "0x20");
    assert_string_equal(name_of(f, none), "0x30");
    fdr_file_close(f);
    builder_free(b);
}

/* ---- modules in one place ---- */

static void modules_are(struct fdr_file *f, struct fdri_file_definition *row, size_t count)
{
    f->definitions[FDRI_ARENA_DEF_MODULE] = (struct fdri_file_definitions){.row = row, .count = count};
}

static void P8_a_newer_module_takes_the_place(void **state)
{
    enum { COUNT = 40, ROUNDS = 3000 };
    static struct fdri_file_definition row[COUNT];
    static struct fdr_file f;
    uint64_t seed = 7, seen[2] = {0};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        size_t count = rnd(&seed, COUNT);
        uint32_t most = 1 + rnd(&seed, 60);
        for (size_t i = 0; i < count; i++) {
            row[i].d.address = 1 + rnd(&seed, 400);
            row[i].bytes = 1 + rnd(&seed, most);
        }
        if (count) row[rnd(&seed, (uint32_t)count)].bytes = UINT64_MAX - rnd(&seed, 2);
        modules_are(&f, row, count);
        bool *taken = fdri_symbol_modules_taken(&f);
        for (size_t i = 0; i < count; i++) {
            bool want = false;
            for (size_t k = i + 1; k < count; k++)
                want |= (row[i].d.address >= row[k].d.address ? row[i].d.address - row[k].d.address < row[k].bytes
                                                              : row[k].d.address - row[i].d.address < row[i].bytes);
            assert_int_equal(taken[i], want);
            seen[want]++;
        }
        free(taken);
    }
    assert_true(seen[0] > ROUNDS && seen[1] > ROUNDS);
}

static void P8_many_modules_in_places_of_others(void **state)
{
    enum { COUNT = 1000000 };
    struct fdri_file_definition *row = calloc(COUNT, sizeof *row);
    static struct fdr_file f;
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        row[i].d.address = 0x1000 * (1 + i / 2);
        row[i].bytes = 0x1000;
    }
    modules_are(&f, row, COUNT);
    bool *taken = fdri_symbol_modules_taken(&f);
    for (size_t i = 0; i < COUNT; i++) n += taken[i];
    assert_int_equal(n, COUNT / 2);
    free(taken);
    free(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P8_a_module_that_is_no_file),
        cmocka_unit_test(P8_many_modules_and_functions),
        cmocka_unit_test(P8_a_newer_module_takes_the_place),
        cmocka_unit_test(P8_many_modules_in_places_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
