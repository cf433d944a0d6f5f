/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 */
/* A thread renames itself while it is already being sampled. Snapshots, and the final recording, must show the new
 * name. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>

static unsigned stage; /* atomic; 1: the thread renames itself, 2: once more, 3: it ends */
static unsigned done;  /* atomic; the stage that the thread has reached */

static void work_until(unsigned wanted)
{
    static _Thread_local volatile double sink;
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) < wanted)
        for (int i = 0; i < 10000; i++) sink = sink * 1.0000001 + 0.1;
}

static void *renames_itself(void *records)
{
    pthread_setname_np(pthread_self(), "before");
    if (records) FDR_REGION("first")
        {
        }
    work_until(1);
    pthread_setname_np(pthread_self(), "after (a while");
    work_until(2);
    pthread_setname_np(pthread_self(), "at the end");
    __atomic_store_n(&done, 1u, __ATOMIC_RELEASE);
    work_until(3);
    return NULL;
}

static bool has_stream(const char *path, const char *name)
{
    const struct fdr_sample_stream *s;
    struct fdr_file *f;
    char message[300] = "";
    bool has = false;
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    for (size_t n = fdr_sample_streams(f, &s); n--; s++) has = has || !strcmp(s->name, name);
    fdr_file_close(f);
    unlink(path);
    return has;
}

/* Waits until a snapshot shows the name. False after 600 snapshots, some 30 s. */
static bool snapshot_has(const char *name)
{
    for (int i = 0; i < 600; i++) {
        usleep(50000);
        assert_int_equal(fdr_snapshot("look"), 0);
        if (has_stream(fdr_last_snapshot(), name)) return true;
    }
    return false;
}

static void renamed(void *records)
{
    char dir[] = "/tmp/fdr-renamed-XXXXXX";
    struct fdr_config c = {.size = sizeof c,
                           .sample = "1kHz",
                           .arena = "anonymous",
                           .buffer = "8M",
                           .finalize = "snapshot",
                           .keep = "8,newest"};
    pthread_t t;
    assert_non_null(c.dir = mkdtemp(dir));
    __atomic_store_n(&stage, 0u, __ATOMIC_RELEASE);
    __atomic_store_n(&done, 0u, __ATOMIC_RELEASE);
    assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(pthread_create(&t, NULL, renames_itself, records), 0);
    assert_true(snapshot_has("before"));
    __atomic_store_n(&stage, 1u, __ATOMIC_RELEASE);
    assert_true(snapshot_has("after (a while"));
    __atomic_store_n(&stage, 2u, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) usleep(1000);
    fdr_finalize(); /* at once, so no periodic look has seen the new name */
    assert_true(has_stream(fdr_last_snapshot(), "at the end"));
    __atomic_store_n(&stage, 3u, __ATOMIC_RELEASE);
    pthread_join(t, NULL);
    assert_int_equal(rmdir(dir), 0);
}

static void recording_thread_is_renamed(void **state) { renamed(state); }
static void silent_thread_is_renamed(void **state) { (void)state, renamed(NULL); }

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recording_thread_is_renamed),
                                       cmocka_unit_test(silent_thread_is_renamed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
