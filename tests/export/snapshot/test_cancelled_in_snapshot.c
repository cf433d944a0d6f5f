/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P10 wrap=pwrite
 * P10: a thread is cancelled while fdr writes a snapshot for it. It leaves no lock on which other threads would wait.
 * Also, a final snapshot that is requested during another snapshot holds the end of the recording. */
#define _GNU_SOURCE
#include <semaphore.h>
#include <unistd.h>

#include "tests/support/api_fixture.h"

static enum { NOTHING, CANCEL, WAIT } at_first_write;
static sem_t writing, go_on;

ssize_t __real_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off)
{
    int what = at_first_write;
    at_first_write = NOTHING;
    if (what == CANCEL) {
        pthread_cancel(pthread_self());
        pthread_testcancel(); /* pwrite is a cancellation point */
    }
    if (what == WAIT) {
        sem_post(&writing);
        sem_wait(&go_on);
        usleep(50000); /* the thread that waits for this snapshot has reached its wait */
    }
    return __real_pwrite(fd, bytes, count, off);
}

static void *take_one(void *result)
{
    *(int *)result = fdr_snapshot("under way");
    pthread_testcancel();
    return NULL;
}

static void P10_cancelled_in_a_snapshot(void **state)
{
    pthread_t t;
    void *ended;
    int result = 1;
    (void)state;
    begin(NULL);
    at_first_write = CANCEL;
    assert_int_equal(pthread_create(&t, NULL, take_one, &result), 0);
    pthread_join(t, &ended);
    assert_ptr_equal(ended, PTHREAD_CANCELED);
    assert_int_equal(result, 0); /* the cancellation took effect after the snapshot */
    assert_int_equal(fdr_snapshot("the next one"), 0);
    fdr_finalize();
}

static void *begin_one(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self());
    begin(NULL);
    pthread_testcancel();
    return NULL;
}

static void P10_cancelled_in_init(void **state)
{
    pthread_t t;
    void *ended;
    (void)state;
    assert_int_equal(pthread_create(&t, NULL, begin_one, NULL), 0);
    pthread_join(t, &ended);
    assert_ptr_equal(ended, PTHREAD_CANCELED);
    assert_int_equal(fdr_snapshot("of what it began"), 0);
    fdr_finalize();
    begin(NULL);
    fdr_finalize();
}

static void the_end_is_in_the_snapshot_of_the_end(void **state)
{
    pthread_t t;
    int result = 1;
    char message[200];
    struct fdr_file *f;
    (void)state;
    begin(&(struct fdr_config){.finalize = "snapshot"});
    sem_init(&writing, 0, 0);
    sem_init(&go_on, 0, 0);
    at_first_write = WAIT;
    assert_int_equal(pthread_create(&t, NULL, take_one, &result), 0);
    sem_wait(&writing);
    FDR_REGION("behind the cut") {}
    sem_post(&go_on);
    fdr_finalize();
    pthread_join(t, NULL);
    assert_int_equal(result, 0);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    assert_string_equal(fdr_file_info(f)->reason_kind, "finalize");
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    bool seen = false;
    while (fdr_iter_next(it, &e)) {
        const struct fdr_definition *d = e.kind == FDR_ENTER ? fdr_definition(f, FDR_REGION_DEFINITION, e.id) : NULL;
        seen |= d && strcmp(d->name, "behind the cut") == 0;
    }
    assert_true(seen);
    fdr_iter_close(it);
    fdr_file_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_cancelled_in_a_snapshot),
                                       cmocka_unit_test(P10_cancelled_in_init),
                                       cmocka_unit_test(the_end_is_in_the_snapshot_of_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
