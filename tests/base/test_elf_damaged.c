/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,signals timeout=120 promise=P10
 * P10: damaged ELF files. fdr reads the symbols of the program's files while it runs, so no byte of them may end it or
 * keep it busy. Bytes of a copy of this program are changed at random, and the copy is cut at random. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/elf/elf_file.h"
#include "base/elf/elf_symbols.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"

enum { ROUNDS = SANITIZED ? 150 : 600, CHANGES = 4, SPACE = 32 << 20 };

static struct fdri_elf_space space;
static char copy[4096];
static char *whole;
static size_t bytes;

static char *demangle(const char *name, char *buffer, size_t *length, int *status)
{
    (void)buffer, (void)length;
    *status = 0;
    return strdup(name);
}
static bool every(const char *name) { return name[0] == '_'; }

static void write_file(const void *from, size_t count)
{
    int fd = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, from, count), count);
    close(fd);
}

static void change(size_t at, const void *to, size_t count)
{
    int fd = open(copy, O_WRONLY);
    assert_int_equal(pwrite(fd, to, count, (off_t)at), count);
    close(fd);
}

/* Reads all that the file seems to have. Returns the number of its functions. */
static size_t read_all(const char *build_id)
{
    struct fdri_elf_file f;
    struct fdri_elf_symbols t = {0};
    struct fdri_elf_showing how = {demangle, every, NULL, SIZE_MAX, 0};
    size_t before = space.used, length = 0;
    if (!fdri_elf_open(&f, copy, build_id)) return 0;
    if (fdri_elf_symbols_read(&f, &space, &t) == FDRI_ELF_READ) fdri_elf_symbols_show(&t, &space, &how);
    fdri_elf_close(&f);
    for (size_t i = 0; i < t.count; i++) {
        const struct fdri_elf_symbol *r = &t.row[i], *first = fdri_elf_symbols_find(&t, r->begin);
        assert_true(first && first->begin == r->begin && (i == 0 || t.row[i - 1].begin <= r->begin));
        length += strlen(space.base + r->name) + strlen(space.base + r->shown) + strlen(space.base + r->brief);
    }
    assert_true(space.used <= space.bytes && length < (size_t)16 * SPACE);
    fdri_elf_space_cut(&space, before);
    return t.count;
}

/* A place in a part of the file that the reader looks at. */
static size_t any_place(uint64_t *seed)
{
    ElfW(Ehdr) h;
    memcpy(&h, whole, sizeof h);
    const ElfW(Shdr) *s = (const void *)(whole + h.e_shoff + rnd(seed, h.e_shnum) * sizeof *s);
    switch (rnd(seed, 4)) {
    case 0: return rnd(seed, (uint32_t)sizeof h);
    case 1: return s->sh_type == SHT_NOBITS || !s->sh_size ? 0 : s->sh_offset + rnd(seed, (uint32_t)s->sh_size);
    default: return h.e_shoff + rnd(seed, (uint32_t)(h.e_shnum * sizeof *s));
    }
}

static void P10_changed_bytes(void **state)
{
    uint64_t seed = 0x9E3779B97F4A7C15u, read = 0;
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        size_t at[CHANGES];
        for (int k = 0; k < CHANGES; k++) {
            uint8_t byte = (uint8_t)rnd(&seed, 256);
            at[k] = any_place(&seed);
            if (at[k] < bytes) change(at[k], &byte, 1);
        }
        read += read_all("") > 0;
        for (int k = 0; k < CHANGES; k++)
            if (at[k] < bytes) change(at[k], whole + at[k], 1);
    }
    assert_true(read > ROUNDS / 10); /* else the changes only test the first lines of the reader */
    assert_true(read_all("") > 0);
}

static void P10_cut_files(void **state)
{
    uint64_t seed = 0xD1B54A32D192ED03u;
    (void)state;
    for (int i = 0; i < ROUNDS / 4; i++) {
        assert_int_equal(truncate(copy, (off_t)rnd(&seed, (uint32_t)bytes)), 0);
        read_all("");
    }
    write_file(whole, bytes);
}

static void P10_other_files(void **state)
{
    struct fdri_elf_file f;
    (void)state;
    assert_int_equal(read_all("00112233445566778899aabbccddeeff00112233"), 0); /* another build */
    assert_false(fdri_elf_open(&f, "/dev/zero", ""));
    assert_false(fdri_elf_open(&f, "/proc/self/maps", ""));
    assert_false(fdri_elf_open(&f, "/nowhere", ""));
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(mkfifo(copy, 0600), 0);
    assert_false(fdri_elf_open(&f, copy, "")); /* does not wait for a writer */
    assert_int_equal(unlink(copy), 0);
    write_file(whole, bytes);
}

/* Symbols that need more than the space has. */
static void P10_small_space(void **state)
{
    struct fdri_elf_space large = space;
    (void)state;
    for (size_t most = 4096; most < (size_t)8 << 20; most *= 2) {
        assert_true(fdri_elf_space_make(&space, most));
        read_all("");
    }
    space = large;
    assert_true(read_all("") > 0);
}

static int remove_copy(void **state)
{
    unlink(copy);
    return scratch_remove(state);
}

static int read_self(void **state)
{
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY);
    if (scratch_make(state)) return -1;
    snprintf(copy, sizeof copy, "%s/copy", scratch);
    if (fd < 0 || fstat(fd, &st)) return -1;
    bytes = (size_t)st.st_size;
    whole = malloc(bytes);
    if (!whole || read(fd, whole, bytes) != st.st_size) return -1;
    close(fd);
    write_file(whole, bytes);
    return fdri_elf_space_make(&space, SPACE) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_changed_bytes),
        cmocka_unit_test(P10_cut_files),
        cmocka_unit_test(P10_other_files),
        cmocka_unit_test(P10_small_space),
    };
    return cmocka_run_group_tests(tests, read_self, remove_copy);
}
