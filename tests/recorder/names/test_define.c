/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P10
 * P10: definitions in odd situations. Two of them share a name but differ; the recording cannot hold all; libraries
 * come and go between two recordings. Each definition keeps its own meaning, and the surplus is counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/names/names.h"
#include "tests/support/api_fixture.h"

static uint64_t field_of(struct fdr_file *f, size_t at, size_t field)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    uint64_t value = UINT64_MAX;
    for (size_t i = 0; fdr_iter_next(it, &e); i++)
        if (i == at && field < e.field_count) value = e.field[field];
    fdr_iter_close(it);
    return value;
}

struct narrow {
    uint32_t x, y;
};
struct wide {
    uint64_t x;
    char between[4096];
    uint64_t y;
};

/* A program and its plugin give their events the same name. A definition of one of them must not change the other. */
static void one_name_and_two_layouts(void **state)
{
    const struct fdr_field first[] = {{"x", FDR_U32, offsetof(struct narrow, x)},
                                      {"y", FDR_U32, offsetof(struct narrow, y)}};
    const struct fdr_field second[] = {{"x", FDR_U64, offsetof(struct wide, x)},
                                       {"y", FDR_U64, offsetof(struct wide, y)}};
    const struct narrow a = {1, 2};
    const struct wide b = {.x = 3, .y = 4};
    (void)state;
    begin(NULL);
    fdr_event_type narrow = fdr_event_define("io", first, 2), wide = fdr_event_define("io", second, 2);
    assert_int_not_equal(narrow, wide);
    assert_int_equal(fdr_event_define("io", first, 2), narrow);
    fdr_event(narrow, &a);
    fdr_event(wide, &b);
    struct fdr_file *f = take();
    for (size_t i = 0; i < 4; i++) assert_int_equal(field_of(f, i / 2, i % 2), i + 1);
    end(f);
}

/* Each place that records an event of a type may define it again. */
static void *define_again(void *stop)
{
    static const struct fdr_field fields[] = {{"x", FDR_U32, offsetof(struct narrow, x)},
                                              {"y", FDR_U32, offsetof(struct narrow, y)}};
    static char name[] = "again";
    do fdr_event_define(name, fields, 2);
    while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED));
    return NULL;
}

/* ThreadSanitizer would report a second write to the data that fdr_event reads. */
static void defined_again_while_events_come(void **state)
{
    const struct narrow a = {1, 2};
    bool stop = true;
    pthread_t t;
    (void)state;
    begin(NULL);
    define_again(&stop);
    fdr_event_type type = fdri_life_recording.arena.super->def_count[FDRI_ARENA_DEF_EVENT];
    stop = false;
    assert_int_equal(pthread_create(&t, NULL, define_again, &stop), 0);
    for (int i = 0; i < 10000; i++) fdr_event(type, &a);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    struct fdr_file *f = take();
    for (size_t i = 0; i < 2; i++) assert_int_equal(field_of(f, 9999, i), i + 1);
    end(f);
}

static void P10_more_kinds_than_there_can_be(void **state)
{
    enum { EVENTS = 255, METRICS = 4095, MORE = 45 };
    static const struct fdr_field field = {"n", FDR_U64, 0};
    char name[32];
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M"});
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    uint32_t events = s->def_count[FDRI_ARENA_DEF_EVENT], metrics = s->def_count[FDRI_ARENA_DEF_METRIC];
    uint32_t e = 0, m = 0;
    for (uint32_t i = 0; i < EVENTS + MORE; i++) {
        snprintf(name, sizeof name, "event %u", i);
        e += fdr_event_define(name, &field, 1) != 0;
    }
    for (uint32_t i = 0; i < METRICS + MORE; i++) {
        snprintf(name, sizeof name, "metric %u", i);
        m += fdr_metric_define(name, "1", FDR_U64, FDR_METRIC_GAUGE) != 0;
    }
    assert_int_equal(e + events, EVENTS);
    assert_int_equal(m + metrics, METRICS);
    assert_int_equal(s->def_count[FDRI_ARENA_DEF_EVENT], EVENTS);
    assert_int_equal(s->def_count[FDRI_ARENA_DEF_METRIC], METRICS);
    assert_int_equal(s->lost_definitions, 2 * MORE + events + metrics);
    uint64_t n = 7;
    fdr_event(fdr_event_define("event 0", &field, 1), &n); /* existing definitions still work */
    struct fdr_file *f = take();
    assert_int_equal(field_of(f, 0, 0), 7);
    end(f);
}

/* Too many ranks; the size of some of these lists overflows 32 or 64 bits. fdr must refuse them without reading. */
static void a_group_of_too_many(void **state)
{
    static const uint32_t ranks[] = {1, 2};
    (void)state;
    begin(NULL);
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    assert_int_equal(fdr_comm_define("all", ranks, (16u << 20) + 1), 0);
    assert_int_equal(fdr_comm_define("all", ranks, 1u << 30), 0);
    assert_int_equal(fdr_comm_define("all", ranks, SIZE_MAX / 4 + 2), 0);
    assert_int_equal(s->def_count[FDRI_ARENA_DEF_COMM], 0);
    assert_int_equal(s->lost_definitions, 3);
    assert_int_not_equal(fdr_comm_define("all", ranks, 2), 0);
    end(take());
}

/* Number of lines on standard error that contain `word`. */
static size_t lines_of(void (*what)(void), const char *word)
{
    char text[8192] = "";
    size_t n = 0;
    int kept = dup(STDERR_FILENO), fd = memfd_create("said", 0);
    assert_true(kept >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    what();
    dup2(kept, STDERR_FILENO);
    assert_true(pread(fd, text, sizeof text - 1, 0) >= 0);
    for (const char *at = text; (at = strstr(at, word)); at++) n++;
    close(kept);
    close(fd);
    return n;
}

static void define_beyond_memory(void)
{
    enum { MORE_THAN_FIT = 1100 };
    char name[32];
    for (int i = 0; i < MORE_THAN_FIT; i++) {
        snprintf(name, sizeof name, "short %d", i);
        fdr_region_define(name, __FILE__, 1);
    }
}

/* The index of names is the only part of a recording that grows outside of the buffer. */
static void P10_no_memory_for_an_index(void **state)
{
    struct rlimit was;
    (void)state;
    begin(&(struct fdr_config){.buffer = "4M"});
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    fdr_region known = fdr_region_define("short 0", __FILE__, 1);
    assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, was.rlim_max}), 0);
    size_t said = lines_of(define_beyond_memory, "no memory for the index");
    fdr_region again = fdr_region_define("short 0", __FILE__, 1);
    assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
    assert_int_equal(said, 1);
    assert_int_equal(again, known);
    assert_true(s->lost_definitions > 0);
    assert_int_not_equal(fdr_region_define("short 1099", __FILE__, 1), 0); /* memory is available again */
    end(take());
}

static void define_odd_events(void)
{
    struct fdr_field many[20];
    const struct fdr_field unknown = {"u", (enum fdr_type)77, 0};
    for (int i = 0; i < 20; i++) many[i] = (struct fdr_field){"f", FDR_U64, 8 * (size_t)i};
    for (int i = 0; i < 5; i++) {
        fdr_event_define("many fields", many, 20);
        fdr_event_define("no such type", &unknown, 1);
    }
}

/* A program may define an event again each time it records one. */
static void P10_odd_events_cost_one_line(void **state)
{
    (void)state;
    assert_int_equal(lines_of(define_odd_events, "event '"), 0); /* no recording: no line */
    begin(NULL);
    assert_int_equal(lines_of(define_odd_events, "event 'many fields' has 20 fields"), 1);
    end(take());
    begin(NULL);
    assert_int_equal(lines_of(define_odd_events, "event 'many fields'"), 0); /* already defined: no further line */
    end(take());
}

static void *library(const char *function)
{
    char command[900], path[400];
    snprintf(path, sizeof path, "%s/lib%s.so", oracle_directory(), function);
    snprintf(command, sizeof command, "echo 'void %s(void); void %s(void) {}' | cc -x c -shared -fPIC -o %s -",
             function, function, path);
    if (access(path, R_OK) != 0 && system(command) != 0) return NULL;
    return dlopen(path, RTLD_NOW);
}

static void call_of(void *library, const char *function)
{
    const void *f = dlsym(library, function);
    assert_non_null(f);
    fdr_enter_address(f);
    fdr_leave_address(f);
}

/* The second recording must not use the addresses of libraries that were unloaded before it began. */
static void another_library_in_the_next_recording(void **state)
{
    (void)state;
    void *first = library("alpha");
    if (!first) {
        print_message("skipped: no compiler makes a shared library here\n");
        skip();
    }
    dlclose(library("bravo")); /* fdr has defined its functions by now */
    begin(NULL);
    call_of(first, "alpha");
    fdr_finalize();
    dlclose(first);
    begin(NULL);
    void *second = library("bravo");
    call_of(second, "bravo");
    struct fdr_file *f = take();
    fdr_file_symbolise(f);
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    assert_true(fdr_iter_next(it, &e));
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, e.id)->name, "bravo");
    fdr_iter_close(it);
    dlclose(second);
    end(f);
}

static void *look_again(void *unused)
{
    for (int i = 0; i < 2000; i++) fdr_modules_changed();
    return unused;
}

/* Two threads close libraries. Neither may treat the library that the other one is about to look up as unloaded. */
static void what_is_loaded_is_not_forgotten(void **state)
{
    pthread_t t;
    (void)state;
    begin(NULL);
    assert_int_not_equal(fdr_region_define_address((const void *)(uintptr_t)look_again), 0);
    fdr_modules_changed();
    uint32_t version = fdri_names_address_version,
             defined = fdri_life_recording.arena.super->def_count[FDRI_ARENA_DEF_MODULE];
    assert_int_equal(pthread_create(&t, NULL, look_again, NULL), 0);
    look_again(NULL);
    pthread_join(t, NULL);
    assert_int_equal(fdri_names_address_version, version);
    assert_int_equal(fdri_life_recording.arena.super->def_count[FDRI_ARENA_DEF_MODULE], defined);
    end(take());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_odd_events_cost_one_line),          cmocka_unit_test(P10_no_memory_for_an_index),
        cmocka_unit_test(another_library_in_the_next_recording), cmocka_unit_test(one_name_and_two_layouts),
        cmocka_unit_test(defined_again_while_events_come),       cmocka_unit_test(a_group_of_too_many),
        cmocka_unit_test(what_is_loaded_is_not_forgotten),       cmocka_unit_test(P10_more_kinds_than_there_can_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
