/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P10 without=tsan (it does not follow children of threads)
 * P10: the recorder leaves its host alone: errno, the allocator during signal handlers, threads that fork. It survives
 * arguments such as null pointers, a configuration without its size, and more names than fit. */
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/codec/record_codec.h"
#include "tests/support/api_fixture.h"

/* ---- the program's allocator: fdr must not call it within a handler ---- */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(FDRI_ATOMIC_TSAN)
#define INSTRUMENTED 1 /* it would count the sanitizer's own calls */
#else
#define INSTRUMENTED 0
#endif
static __thread volatile bool in_handler; /* fdr's own threads may allocate */
static volatile unsigned asked_in_handler;
#if !INSTRUMENTED
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t n) { return asked_in_handler += in_handler, __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return asked_in_handler += in_handler, __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return asked_in_handler += in_handler, __libc_realloc(p, n); }
void free(void *p) { asked_in_handler += in_handler && p, __libc_free(p); }
#endif

/* ---- errno ---- */

static void *records(void *unused)
{
    (void)unused;
    errno = 4711;
    FDR_REGION("first of its thread") {}
    if (errno != 4711) return (void *)"a thread that attaches and defines";
    fdr_enter_address((const void *)(uintptr_t)&records);
    fdr_leave_address((const void *)(uintptr_t)&records);
    /* an address in no module, so that fdr looks through all modules */
    fdr_enter_address((const void *)0x7f0000001234), fdr_leave_address((const void *)0x7f0000001234);
    if (errno != 4711) return (void *)"a code address seen first";
    for (int i = 0; i < 300000; i++) FDR_REGION("many") fdr_marker(1, (uint64_t)i * 7777777);
    if (errno != 4711) return (void *)"a full buffer";
    fdr_thread_name("named"), fdr_note("key", "value"), fdr_rewind_mark(), fdr_rewind(), fdr_modules_changed();
    fdr_metric_u64(fdr_metric_define("m", "1", FDR_U64, FDR_METRIC_GAUGE), 1);
    fdr_usage();
    int heard = dup(2); /* discards messages */
    close(2);
    errno = 4711;
    static const struct fdr_field fields[FDRI_CODEC_FIELDS_MAX + 1] = {{"field", FDR_U64, 0}};
    fdr_event_define("too many fields", fields, FDRI_CODEC_FIELDS_MAX + 1); /* fdr reports this */
    bool same = errno == 4711;
    dup2(heard, 2);
    close(heard);
    errno = 4711;
    if (!same) return (void *)"a line that cannot be said";
    return errno == 4711 ? NULL : (void *)"the rest";
}

static void P10_errno_stays(void **state)
{
    static const struct fdr_config sampled = {.buffer = "1M", .sample = "200Hz"}, plain = {.buffer = "1M"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        pthread_t t;
        void *wrong;
        begin(i % 2 ? &sampled : &plain);
        pthread_create(&t, NULL, records, NULL);
        pthread_join(t, &wrong);
        if (wrong) print_message("errno was changed by %s\n", (const char *)wrong);
        assert_null(wrong);
        fdr_finalize();
    }
}

/* ---- handlers ---- */

enum { MOST = 6000 };
static volatile unsigned defined, defined_wrong, limit = MOST;

static void define_some(int unused)
{
    (void)unused;
    in_handler = true;
    for (int i = 0; i < 20 && defined < limit; i++) {
        char name[24] = "region ";
        unsigned n = defined % MOST;
        for (int k = 0; k < 6; k++, n /= 10) name[12 - k] = (char)('0' + n % 10);
        fdr_region r = fdr_region_define(name, __FILE__, 1);
        fdr_enter(r);
        fdr_leave(r);
        defined_wrong += r == 0;
        defined++;
        const void *code = (const void *)(uintptr_t)(0x500000 + 16 * (defined % MOST));
        fdr_enter_address(code);
        fdr_leave_address(code);
    }
    in_handler = false;
}

static void every(uint32_t us)
{
    struct itimerval t = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &t, NULL);
}

static void P10_regions_defined_in_a_handler(void **state)
{
    (void)state;
    struct sigaction a = {.sa_handler = define_some, .sa_flags = SA_RESTART}, old;
    begin(&(struct fdr_config){.buffer = "16M"});
    fdr_region own = fdr_region_define("own", NULL, 0);
    sigaction(SIGALRM, &a, &old);
    defined = defined_wrong = asked_in_handler = 0;
    every(2000);
    uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 60000000000u;
    for (unsigned i = 0; defined < MOST && fdri_clock_ns(CLOCK_MONOTONIC) < until; i++) {
        char name[24];
        snprintf(name, sizeof name, "beside %u", i % 1000);
        fdr_enter(own);
        assert_true(fdr_region_define(name, NULL, i % 1000) != 0);
        void *volatile p = malloc(i % 4096 + 1); /* a lock for which no handler may wait */
        free(p);
        fdr_leave(own);
    }
    every(0);
    sigaction(SIGALRM, &old, NULL);
    assert_true(defined >= MOST);
    assert_int_equal(defined_wrong, 0);
    assert_int_equal(asked_in_handler, 0);
    struct fdr_file *f = take();
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, own)->name, "own");
    assert_int_equal(fdr_file_info(f)->lost_unattached, 0);
    balance(f);
    end(f);
}

/* A handler defines a region while its thread is inside fork and holds the locks of definitions. */
static void P10_fork_while_handlers_define(void **state)
{
    (void)state;
    pid_t test = fork(); /* a failure hangs: the parent then kills this child */
    assert_true(test >= 0);
    if (!test) {
        struct sigaction a = {.sa_handler = define_some, .sa_flags = SA_RESTART};
        defined = 0;
        limit = UINT32_MAX;
        begin(&(struct fdr_config){.buffer = "16M"});
        sigaction(SIGALRM, &a, NULL);
        every(300);
        /* fork is slow with many pages on a loaded machine; the forks of 20 s suffice */
        uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 20000000000u;
        for (int i = 0; i < 1500 && fdri_clock_ns(CLOCK_MONOTONIC) < until; i++) {
            pid_t child = fork();
            if (!child) _exit(0);
            int status;
            while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        }
        every(0);
        _exit(0);
    }
    int status = 0;
    for (int i = 0; i < 9000 && waitpid(test, &status, WNOHANG) == 0; i++) {
        usleep(10000);
        status = -1;
    }
    if (status == -1) kill(test, SIGKILL), waitpid(test, NULL, 0);
    assert_int_equal(status, 0);
}

/* ---- arguments of callers ---- */

static void P10_null_pointers(void **state)
{
    (void)state;
    begin(NULL);
    for (int i = 0; i < 3; i++) {
        fdr_enter_address(NULL), fdr_leave_address(NULL);
        fdr_enter_address((const void *)(uintptr_t)&every), fdr_leave_address((const void *)(uintptr_t)&every);
    }
    assert_int_equal(fdr_region_define_address(NULL), 0);
    fdr_enter(fdr_region_define(NULL, NULL, 0)), fdr_leave(fdr_region_define(NULL, NULL, 0));
    assert_true(fdr_comm_define(NULL, NULL, 3) > 0);
    assert_true(fdr_event_define(NULL, NULL, 2) > 0);
    fdr_event(fdr_event_define("no payload", NULL, 0), NULL);
    fdr_metric_u64(fdr_metric_define(NULL, NULL, FDR_U64, FDR_METRIC_GAUGE), 1);
    fdr_marker(fdr_marker_define(NULL), 1);
    fdr_thread_name(NULL), fdr_note(NULL, NULL), fdr_note("key", NULL), fdr_phase_begin(NULL), fdr_phase_end(NULL);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 10);
    assert_int_equal(total(f, FDR_IN_REGION, 0)->calls, 3);
    end(f);
}

static void P10_a_configuration_without_its_size(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    c.size = 0;
    c.buffer = "1M";
    fdr_finalize();
    assert_int_equal(fdr_init(&c), -EINVAL);
    assert_int_equal(fdr_usage().buffer_bytes, 0);
}

/* Programs keep ids in static variables. An id means the same region in the next recording, also if not all names
 * fit. */
static void P10_ids_where_the_next_recording_holds_fewer(void **state)
{
    enum { MANY = 60 };
    static char name[MANY][4096];
    static fdr_region id[MANY];
    (void)state;
    begin(&(struct fdr_config){.buffer = "4M"});
    for (int i = 0; i < MANY; i++) { /* long and short names by turns */
        memset(name[i], 'a' + i % 26, sizeof name[i] - 1);
        name[i][i % 2 ? 4000 : 10] = 0;
        id[i] = fdr_region_define(name[i], "ids.c", (unsigned)i);
        assert_true(id[i] != 0);
    }
    fdr_finalize();
    begin(&(struct fdr_config){.buffer = "192K"});
    fdr_region later = fdr_region_define("later", "ids.c", 1000);
    for (int i = 0; i < MANY; i++) fdr_enter(id[i]), fdr_leave(id[i]);
    struct fdr_file *f = take();
    unsigned there = 0;
    for (int i = 0; i < MANY; i++) {
        const struct fdr_definition *d = fdr_definition(f, FDR_REGION_DEFINITION, id[i]);
        assert_true(later != id[i]);
        bool whole = !strcmp(d->name, name[i]);
        assert_true(whole || !strncmp(d->name, name[i], 30));
        there += whole;
    }
    assert_true(there >= 5 && there < MANY); /* else the test tried nothing */
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_ids_where_the_next_recording_holds_fewer), /* first, before other tests define much */
        cmocka_unit_test(P10_errno_stays),
        cmocka_unit_test(P10_regions_defined_in_a_handler),
        cmocka_unit_test(P10_fork_while_handlers_define),
        cmocka_unit_test(P10_null_pointers),
        cmocka_unit_test(P10_a_configuration_without_its_size)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
