/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P8 wrap=fdri_live_process_read
 * P8: memory changes hands between two readings of a copy from outside. The test changes the bytes that were read, as
 * the process would have. Cases: a bin taken again, so that its payload is another's; a meta piece that becomes a bin;
 * a slab that serves another location. The copy is whole and holds none of these. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/arena/arena.h"
#include "reader/live/find_process.h"

enum { CALLS = 20000, NEW_REGIONS = 400, SOMEBODY_ELSE = 12345, JUNK = 0xa5 };
static fdr_region region;
static uint64_t place;                   /* offset of the oldest bin of a partition */
static uint32_t bytes_of_it, next_of_it; /* 0: not found yet */
static unsigned reading;                 /* number of readings of its batch */
static void (*happened)(uint8_t *bin);
static uint64_t slab;
static bool slabs_come;

static void new_slab(void)
{
    char name[16];
    for (unsigned i = 0; i < NEW_REGIONS; i++) { /* new totals need memory */
        snprintf(name, sizeof name, "new%u", i);
        fdr_region r = fdr_region_define(name, NULL, 0);
        fdr_enter(r);
        fdr_leave(r);
    }
}

/* The first reading of a slab covers its head only. */
static void slab_of_another(uint64_t off, void *read, size_t count)
{
    struct fdri_arena_meta_head head;
    memcpy(&head, read, sizeof head);
    if (head.magic != FDRI_ARENA_META_MAGIC || head.kind != FDRI_ARENA_META_SLAB) return;
    if (!slab && count == sizeof(struct fdri_arena_slab)) slab = off;
    if (slab == off) head.location = SOMEBODY_ELSE;
    memcpy(read, &head, sizeof head);
}

/* A bin that was given away has left its list. */
static void list_without_it(void *read)
{
    uint64_t head;
    memcpy(&head, read, sizeof head);
    if ((uint32_t)head == place) head = ((head >> 32) + 1) << 32 | next_of_it;
    memcpy(read, &head, sizeof head);
}

int __real_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count);
int __wrap_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count);
int __wrap_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count)
{
    bool batch = bytes_of_it && off <= place && off + count >= place + bytes_of_it;
    int e = __real_fdri_live_process_read(p, off, to, count);
    reading += batch;
    if (batch && happened) happened((uint8_t *)to + (place - off));
    if (!batch && happened && reading && count == sizeof(uint64_t)) list_without_it(to);
    if (batch && slabs_come && reading == 1) new_slab(); /* the meta blocks are copied by now */
    if (slabs_come && reading && count >= sizeof(struct fdri_arena_slab)) slab_of_another(off, to, count);
    return e;
}

/* ---- changed bytes of the place ---- */

static void scribble(uint8_t *bin) { memset(bin + FDRI_ARENA_BIN_HEADER, JUNK, bytes_of_it - FDRI_ARENA_BIN_HEADER); }

static void make_piece(uint8_t *bin)
{
    const struct fdri_arena_slab s = {.head = {.magic = FDRI_ARENA_META_MAGIC,
                                               .kind = FDRI_ARENA_META_SLAB,
                                               .bytes = bytes_of_it,
                                               .location = SOMEBODY_ELSE},
                                      .in_bins = 1};
    memcpy(bin, &s, sizeof s);
}

static void bin_is_taken_again(uint8_t *bin)
{
    struct fdri_arena_bin *b = (void *)bin;
    if (reading >= 2) scribble(bin);
    if (reading == 3) b->generation += 2;
}

static void bin_is_taken_by_another(uint8_t *bin)
{
    struct fdri_arena_bin *b = (void *)bin;
    if (reading >= 2) scribble(bin);
    if (reading == 3) b->check ^= 1; /* the check covers the bin's partition */
}

static void piece_is_a_bin_at_once(uint8_t *bin)
{
    if (reading == 1) make_piece(bin);
    if (reading >= 2) scribble(bin);
}

static void piece_is_a_bin_in_the_end(uint8_t *bin)
{
    if (reading <= 2) make_piece(bin);
    if (reading >= 2) scribble(bin);
}

/* ---- the copy ---- */

static uint8_t *copy(size_t *count)
{
    struct fdri_live_process p;
    char message[512] = "";
    if (!fdri_live_process_find((uint32_t)getpid(), &p, message, sizeof message)) fail_msg("%s", message);
    int fd = memfd_create("copy", MFD_CLOEXEC);
    reading = 0;
    assert_int_equal(fdri_live_external_copy(&p, fd, "torn", FDRI_LIVE_EXTERNAL_FILE), 0);
    fdri_live_process_close(&p);
    *count = (size_t)lseek(fd, 0, SEEK_END);
    uint8_t *bytes = mmap(NULL, *count, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(bytes != MAP_FAILED);
    close(fd);
    return bytes;
}

/* Checks that the file is whole. Returns the number of shown calls. */
static size_t shown(const uint8_t *bytes, size_t count, uint64_t *dropped)
{
    struct fdr_file *f;
    struct fdr_read_event e;
    char message[512] = "";
    size_t n = 0;
    if (fdr_file_open_memory(bytes, count, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    if (fdr_file_verify(f) != FDR_WHOLE) fail_msg("%s", fdr_file_damage(f, 0));
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e)) n += e.kind == FDR_ENTER && e.id == region && !e.reduced;
    fdr_iter_close(it);
    *dropped = fdr_file_info(f)->dropped_bins;
    fdr_file_close(f);
    return n;
}

static void find_place(const uint8_t *bytes)
{
    const struct fdri_arena_superblock *s = (const void *)bytes;
    for (uint64_t off = s->bins_off; off < s->arena_bytes && !bytes_of_it; off += FDRI_ARENA_BIN_MIN_BYTES) {
        const struct fdri_arena_bin *b = (const void *)(bytes + off);
        if (b->magic != FDRI_ARENA_BIN_MAGIC || b->depth != 1 || b->first_index || !b->next) continue;
        place = off;
        bytes_of_it = 1u << b->size_log2;
        next_of_it = b->next;
    }
    assert_true(bytes_of_it > 0);
}

static bool is_empty(const uint8_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at[i]) return false;
    return true;
}

static int start(void **state)
{
    const struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .arena = "anonymous", .buffer = "2M", .signal = "none"};
    size_t count;
    (void)state;
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("region", NULL, 0);
    for (unsigned i = 0; i < CALLS; i++) {
        fdr_enter(region);
        fdr_leave(region);
    }
    uint8_t *bytes = copy(&count);
    find_place(bytes);
    munmap(bytes, count);
    return 0;
}

static void gone(void (*what)(uint8_t *bin), unsigned bins_dropped)
{
    size_t count;
    uint64_t dropped;
    happened = NULL;
    uint8_t *bytes = copy(&count);
    size_t all = shown(bytes, count, &dropped);
    uint32_t records = FDRI_ARENA_COMMIT_RECORDS(
        ((const struct fdri_arena_bin *)(const void *)(bytes + place))->commit);
    assert_int_equal(all, CALLS);
    assert_int_equal(dropped, 0);
    munmap(bytes, count);
    happened = what;
    bytes = copy(&count);
    happened = NULL;
    assert_int_equal(reading, 3);
    assert_true(is_empty(bytes + place, bytes_of_it));
    assert_int_equal(shown(bytes, count, &dropped), all - records);
    assert_int_equal(dropped, bins_dropped);
    munmap(bytes, count);
}

static void P8_a_bin_is_taken_again(void **state)
{
    (void)state;
    gone(bin_is_taken_again, 1);
}

static void P8_a_bin_is_taken_by_another(void **state)
{
    (void)state;
    gone(bin_is_taken_by_another, 1);
}

static void P8_a_piece_is_a_bin_by_the_second_reading(void **state)
{
    (void)state;
    gone(piece_is_a_bin_at_once, 0);
}

static void P8_a_piece_is_a_bin_by_the_third_reading(void **state)
{
    (void)state;
    gone(piece_is_a_bin_in_the_end, 0);
}

static void P8_a_slab_is_of_another_location(void **state)
{
    size_t count;
    (void)state;
    slabs_come = true;
    uint8_t *bytes = copy(&count);
    slabs_come = false;
    assert_true(slab > 0);
    assert_true(is_empty(bytes + slab, sizeof(struct fdri_arena_slab)));
    munmap(bytes, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P8_a_bin_is_taken_again),
        cmocka_unit_test(P8_a_bin_is_taken_by_another),
        cmocka_unit_test(P8_a_piece_is_a_bin_by_the_second_reading),
        cmocka_unit_test(P8_a_piece_is_a_bin_by_the_third_reading),
        cmocka_unit_test(P8_a_slab_is_of_another_location),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
