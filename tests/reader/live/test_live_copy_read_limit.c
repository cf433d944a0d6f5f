/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P8
 * P8: a copy from outside makes a bounded number of reads. A batch of bins is believed after its third reading. If the
 * reads end earlier, the copy holds no bin of the batch. The test includes the source of the copy to set the bound. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define fdri_live_external_get  copy_of_get
#define fdri_live_external_put  copy_of_put
#define fdri_live_external_copy copy_of_copy
#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "reader/live/external_copy.c"
#include "reader/live/external_copy.h"
#include "reader/live/find_process.h"

#include <fdr/fdr.h>
#include <sys/mman.h>

enum { CALLS = 2000 };

/* The number of bins that the copy has of the first batch if `reads_left` reads are left. */
static uint32_t bins_after(uint64_t gets, uint64_t *dropped)
{
    struct fdri_live_process p;
    char message[512] = "";
    if (!fdri_live_process_find((uint32_t)getpid(), &p, message, sizeof message)) fail_msg("%s", message);
    struct copy *c = calloc(1, sizeof *c);
    assert_true(c && make_room(c));
    c->process = &p;
    c->fd = memfd_create("copy", MFD_CLOEXEC);
    c->super = p.super;
    c->bytes = p.super.arena_bytes;
    c->chunk_list = (struct fdri_arena_chunk_list){
        .chunk = c->chunks, .log2 = FDRI_ARENA_CHUNK_LOG2_LEAST, .most = FDRI_ARENA_CHUNKS_MOST};
    c->reads_left = gets;
    uint32_t bytes = p.super.bin_bytes, bins = 0;
    uint8_t *all = calloc(1, bytes);
    assert_non_null(all);
    copy_slots(c, p.super.bins_off, bytes);
    assert_true(pread(c->fd, all, bytes, (off_t)p.super.bins_off) >= 0);
    for (uint32_t at = 0; at < bytes; at += FDRI_ARENA_BIN_MIN_BYTES)
        bins += ((const struct fdri_arena_bin *)(const void *)(all + at))->magic == FDRI_ARENA_BIN_MAGIC;
    *dropped = c->dropped;
    free(all);
    close(c->fd);
    give_room(c);
    fdri_live_process_close(&p);
    return bins;
}

static void P8_number_of_reads_is_limited(void **state)
{
    const struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .arena = "anonymous", .buffer = "1M", .signal = "none"};
    uint64_t dropped;
    (void)state;
    assert_int_equal(fdr_init(&c), 0);
    fdr_region region = fdr_region_define("region", NULL, 0);
    for (unsigned i = 0; i < CALLS; i++) {
        fdr_enter(region);
        fdr_leave(region);
    }
    uint32_t bins = bins_after(3, &dropped);
    assert_true(bins > 0);
    assert_int_equal(dropped, 0);
    assert_int_equal(bins_after(2, &dropped), 0);
    assert_int_equal(dropped, bins); /* the copy counts them as dropped */
    assert_int_equal(bins_after(1, &dropped), 0);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_number_of_reads_is_limited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
