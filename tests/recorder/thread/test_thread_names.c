/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120
 * A thread that names itself after its first event has that name in snapshots, after its end, and in the file that a
 * kill leaves. A name that the program gave by fdr_thread_name stays. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "recorder/recording.h"
#include "recorder/thread/thread.h"

static sem_t came, go_on;

/* As a function with the compiler's hook: its first event comes before its first statement. */
static void *hooked(void *unused)
{
    FDR_REGION("hooked")
    {
        pthread_setname_np(pthread_self(), "bio_close_file");
        sem_post(&came);
        sem_wait(&go_on);
    }
    return unused;
}

static void *named_by_program(void *unused)
{
    FDR_REGION("hooked")
    {
        fdr_thread_name("given by the program");
        pthread_setname_np(pthread_self(), "of the kernel");
        sem_post(&came);
        sem_wait(&go_on);
    }
    return unused;
}

static bool file_has(const char *path, const char *name)
{
    struct fdr_file *f;
    char message[300] = "";
    bool has = false;
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    for (size_t i = 0; i < fdr_location_count(f); i++) has |= !strcmp(fdr_location_info(f, i)->name, name);
    fdr_file_close(f);
    return has;
}

static bool arena_has(const char *name)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    bool has = false;
    for (uint32_t off = a->super->location_first; off;) {
        const struct fdri_arena_location *l = (const void *)(a->base + off);
        has |= !strcmp(l->name, name);
        off = l->next;
    }
    return has;
}

static char dir[64];

static void begin(pthread_t *t, void *(*body)(void *))
{
    /* without the dumper thread, which looks by itself */
    struct fdr_config c = {.size = sizeof c, .arena = "anonymous", .buffer = "8M", .dir = dir, .signal = "none"};
    snprintf(dir, sizeof dir, "/tmp/fdr-names-XXXXXX");
    assert_non_null(mkdtemp(dir));
    sem_init(&came, 0, 0);
    sem_init(&go_on, 0, 0);
    assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(pthread_create(t, NULL, body, NULL), 0);
    sem_wait(&came);
}

static void finish(void)
{
    fdr_finalize();
    rmdir(dir);
}

static bool snapshot_has(const char *name)
{
    assert_int_equal(fdr_snapshot("look"), 0);
    bool has = file_has(fdr_last_snapshot(), name);
    unlink(fdr_last_snapshot());
    return has;
}

static void snapshot_shows_the_newest_name(void **state)
{
    pthread_t t;
    (void)state;
    begin(&t, hooked);
    assert_true(snapshot_has("bio_close_file"));
    pthread_setname_np(t, "later");
    assert_true(snapshot_has("later"));
    assert_false(snapshot_has("bio_close_file"));
    sem_post(&go_on);
    pthread_join(t, NULL);
    finish();
}

static void ended_thread_keeps_its_last_name(void **state)
{
    pthread_t t;
    (void)state;
    begin(&t, hooked);
    assert_false(arena_has("bio_close_file"));
    sem_post(&go_on);
    pthread_join(t, NULL);
    assert_true(arena_has("bio_close_file"));
    finish();
}

/* Nobody takes a snapshot. On a clock of the test: the first look comes soon, later ones come every 5 s. */
static void live_recording_gets_the_name_by_itself(void **state)
{
    uint64_t now = 1ull << 40, next;
    pthread_t t;
    (void)state;
    begin(&t, hooked);
    next = fdri_thread_poll_names(now);
    assert_true(next > now && next - now <= 1000000000u);
    assert_int_equal(fdri_thread_poll_names(next - 1), next); /* not yet */
    assert_true(fdri_thread_poll_names(next) > next);
    assert_true(arena_has("bio_close_file"));
    for (int i = 0; i < 20; i++) {
        now = next;
        next = fdri_thread_poll_names(now);
    }
    assert_true(next - now == 5000000000u);
    sem_post(&go_on);
    pthread_join(t, NULL);
    finish();
}

static void name_given_by_the_program_stays(void **state)
{
    pthread_t t;
    (void)state;
    begin(&t, named_by_program);
    assert_true(snapshot_has("given by the program"));
    assert_false(snapshot_has("of the kernel"));
    sem_post(&go_on);
    pthread_join(t, NULL);
    assert_true(snapshot_has("given by the program"));
    finish();
}

/* Threads name themselves by both ways while others read their names. */
static void *renames(void *given)
{
    for (int i = 0; i < 300; i++) {
        char text[20];
        snprintf(text, sizeof text, "kernel %d", i);
        pthread_setname_np(pthread_self(), text);
        FDR_REGION("renames")
        {
            if (given) fdr_thread_name(i % 2 ? "odd odd odd odd odd odd" : "even");
        }
    }
    sem_post(&came);
    sem_wait(&go_on);
    return NULL;
}

static void names_change_while_read(void **state)
{
    pthread_t t[2];
    (void)state;
    begin(&t[0], hooked);
    sem_post(&go_on);
    pthread_join(t[0], NULL);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, renames, i ? dir : NULL), 0);
    for (int i = 0; i < 2;) {
        fdri_thread_look_at_names();
        i += !sem_trywait(&came);
    }
    assert_true(snapshot_has("kernel 299"));
    assert_true(snapshot_has("odd odd odd odd odd odd"));
    sem_post(&go_on);
    sem_post(&go_on);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshot_shows_the_newest_name), cmocka_unit_test(ended_thread_keeps_its_last_name),
        cmocka_unit_test(live_recording_gets_the_name_by_itself), cmocka_unit_test(name_given_by_the_program_stays),
        cmocka_unit_test(names_change_while_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
