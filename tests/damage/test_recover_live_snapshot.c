/* SPDX-License-Identifier: MIT */
/* ctest: label=threads,slow timeout=120 promise=P3
 * P3: recovery of a snapshot that was taken while threads recorded. The recovered file claims no more than the
 * snapshot. If bins were given back during the copy, no epoch counts as complete at their depth. If the tail is lost,
 * no location ends earlier than in the snapshot. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { SNAPSHOTS = SANITIZED ? 2 : 12, THREADS = 2, REGIONS = 64 };

static char directory[] = "/tmp/fdr-moving-XXXXXX";
static fdr_region region[REGIONS];
static int stop;
static unsigned epochs, unlike, earlier;

static void call(uint64_t *seed, uint32_t depth, uint32_t deepest)
{
    fdr_region r = region[rnd(seed, REGIONS)];
    fdr_enter(r);
    for (uint32_t i = rnd(seed, 3) + 1; depth < deepest && i-- > 0;) call(seed, depth + 1, deepest);
    for (volatile uint32_t work = rnd(seed, 50) ? 0 : 2000; work > 0;) work--;
    fdr_leave(r);
}

static void *record(void *own)
{
    uint64_t seed = (uintptr_t)own;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) call(&seed, 1, 6 + rnd(&seed, 4));
    return own;
}

static bool claims_no_more_than_original(const struct fdr_epoch_info *a, const struct fdr_epoch_info *b)
{
    bool good = b->from_ns == a->from_ns && b->calls == a->calls && b->kept_events == a->kept_events;
    for (int band = 0; band < 4; band++) good = good && b->complete_depth[band] <= a->complete_depth[band];
    if (!good)
        print_message("location %u epoch %u: complete down to %u, recovered %u; kept %llu, %llu\n", a->location,
                      a->index, a->complete_depth[0], b->complete_depth[0], (unsigned long long)a->kept_events,
                      (unsigned long long)b->kept_events);
    return good;
}

/* Does any location of the recovered file end earlier? */
static bool ends_earlier(struct fdr_file *shown, struct fdr_file *recovered)
{
    size_t n = fdr_location_count(shown);
    assert_int_equal(fdr_location_count(recovered), n);
    for (size_t i = 0; i < n; i++) {
        uint64_t was = fdr_location_info(shown, i)->to_ns, is = fdr_location_info(recovered, i)->to_ns;
        if (is >= was) continue;
        print_message("location %zu: recovered without %llu ns\n", i, (unsigned long long)(was - is));
        return true;
    }
    return false;
}

static void without_tail(const char *path)
{
    char message[300] = "", out[64];
    struct fdri_arena_superblock super;
    struct fdr_file *f, *g;
    const uint8_t none[4096] = {0};
    snprintf(out, sizeof out, "%s/recovered.fdr", directory);
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &super, sizeof super, 0), sizeof super);
    assert_int_equal(pwrite(fd, none, sizeof none, (off_t)super.arena_bytes), sizeof none);
    close(fd);
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_DAMAGED);
    assert_int_equal(fdr_file_recover(f, out, message, sizeof message), 0);
    assert_int_equal(fdr_file_open(out, &g, message, sizeof message), FDR_WHOLE);
    earlier += ends_earlier(f, g);
    fdr_file_close(g);
    fdr_file_close(f);
    unlink(out);
}

static void compare(const char *path)
{
    char message[300] = "", out[64];
    struct fdr_file *f, *g;
    const struct fdr_epoch_info *was, *is;
    snprintf(out, sizeof out, "%s/recovered.fdr", directory);
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_file_recover(f, out, message, sizeof message), 0);
    assert_int_equal(fdr_file_open(out, &g, message, sizeof message), FDR_WHOLE);
    size_t n = fdr_epochs(f, &was);
    assert_int_equal(fdr_epochs(g, &is), n);
    for (size_t i = 0; i < n; i++) unlike += !claims_no_more_than_original(&was[i], &is[i]);
    epochs += (unsigned)n;
    assert_int_equal(fdr_file_verify(g), FDR_WHOLE);
    fdr_file_close(g);
    fdr_file_close(f);
    unlink(out);
    without_tail(path);
    unlink(path);
}

static void P3_recovered_epochs_claim_no_more(void **state)
{
    pthread_t thread[THREADS];
    char path[64], message[300] = "";
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "512K",
                           .signal = "none",
                           .crash = "0",
                           .keep = "32",
                           .arena = "anonymous"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    c.dir = c.live_dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    for (unsigned i = 0; i < REGIONS; i++) {
        snprintf(path, sizeof path, "r%u", i);
        region[i] = fdr_region_define(path, NULL, 0);
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, record, (void *)(i * 7919 + 12345)), 0);
    for (int i = 0; i < SNAPSHOTS; i++) {
        usleep(100000); /* until memory is full */
        assert_int_equal(fdr_snapshot("moving"), 0);
        compare(fdr_last_snapshot());
        snprintf(path, sizeof path, "%s/outside.fdr", directory);
        assert_int_equal(fdr_process_snapshot((uint32_t)getpid(), path, NULL, message, sizeof message), 0);
        compare(path);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    fdr_finalize();
    rmdir(directory);
    print_message("%u epochs in %d snapshots\n", epochs, 2 * SNAPSHOTS);
    assert_true(epochs > SNAPSHOTS);
    assert_int_equal(unlike, 0);
    assert_int_equal(earlier, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_recovered_epochs_claim_no_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
