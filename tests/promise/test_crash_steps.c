/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=240 promise=P7
 * ctest: without=asan,tsan (kills at every store, also at theirs)
 * P7: SIGKILL comes at every store of a process with one thread (tests/support/kill_at_every_store.h). The file that
 * stays is opened, verified and compared with the presented events. FDR_TEST_STEPS=N records longer. The last test
 * kills a process with threads and a larger arena at random moments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "tests/support/kill_at_every_store.h"

/* ---- the presented events: a fixed plan ---- */

struct step {
    uint8_t kind;
    uint32_t id, depth; /* of a call */
};
enum { STEPS_MAX = 20000 };
static struct step plan[STEPS_MAX];
static uint32_t planned, deepest; /* deepest: deeper calls are only counted */
struct shared {
    volatile uint32_t done;
};
static struct shared *shared;

/* Regions 1 to 5 and marker 1: nested calls of several depths and bands, with points between them. */
static void make_plan(uint32_t most)
{
    uint32_t open[16], depth = 0, random = 12345;
    planned = 0;
    while (planned < most) {
        random = random * 1664525u + 1013904223u;
        uint32_t dice = random >> 24;
        if (dice < 40) plan[planned++] = (struct step){FDR_MARKER, 1, 0};
        else if (depth < 12 && (dice < 140 || depth == 0)) {
            open[depth++] = 1 + (random >> 12) % 5;
            plan[planned++] = (struct step){FDR_ENTER, open[depth - 1], depth};
        } else if (depth) {
            plan[planned++] = (struct step){FDR_LEAVE, open[depth - 1], depth};
            depth--;
        }
    }
}

static void present(bool endless)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++) fdr_region_define(names[i], NULL, 0);
    fdr_marker_define("m");
    do {
        for (uint32_t i = 0; i < planned; i++) {
            if (plan[i].kind == FDR_ENTER) fdr_enter(plan[i].id);
            else if (plan[i].kind == FDR_LEAVE) fdr_leave(plan[i].id);
            else fdr_marker(1, i);
            shared->done = i + 1;
        }
    } while (endless);
}

/* ---- the file has these events, up to the operation under way ---- */

/* The next event of the plan that is stored, from n on. */
static uint32_t stored_from(uint32_t n)
{
    while (n < planned && plan[n].depth > deepest) n++;
    return n;
}

static const char *prefix(struct fdr_file *f, uint32_t done)
{
    static char text[160];
    struct fdr_select all = {0};
    struct fdr_iter *it = fdr_iter_open(f, &all);
    struct fdr_read_event e;
    uint32_t n = stored_from(0);
    const char *wrong = NULL;
    while (fdr_iter_next(it, &e) && !wrong) {
        if (e.repaired && e.kind == FDR_LEAVE) continue; /* the reader makes leaves for open calls */
        if (n > done || e.kind != plan[n].kind || e.id != plan[n].id || (e.kind == FDR_MARKER && e.field[0] != n)) {
            snprintf(text, sizeof text, "event %u is kind %u id %u; done %u", n, e.kind, e.id, done);
            wrong = text;
        }
        n = stored_from(n + 1);
    }
    fdr_iter_close(it);
    if (!wrong && n < done) {
        snprintf(text, sizeof text, "%u events of %u", n, done);
        wrong = text;
    }
    return wrong;
}

/* After reductions the file has some of the events, in order. Markers carry their number in the plan. */
static const char *some(struct fdr_file *f, uint32_t done)
{
    static char text[160];
    struct fdr_select markers = {.classes = 1u << FDR_IN_MARKER};
    struct fdr_iter *it = fdr_iter_open(f, &markers);
    struct fdr_read_event e;
    uint64_t last = 0;
    const char *wrong = NULL;
    while (fdr_iter_next(it, &e) && !wrong) {
        if (e.field[0] > done || e.field[0] >= planned || plan[e.field[0]].kind != FDR_MARKER ||
            (last && e.field[0] <= last)) {
            snprintf(text, sizeof text, "marker %llu after %llu; done %u", (unsigned long long)e.field[0],
                     (unsigned long long)last, done);
            wrong = text;
        }
        last = e.field[0];
    }
    fdr_iter_close(it);
    return wrong;
}

static bool looks_whole;
static void look(const uint8_t *bytes, size_t count)
{
    struct fdr_file *f;
    char message[256] = "";
    uint32_t done = shared->done;
    if (fdr_file_open_memory(bytes, count, &f, message, sizeof message) != FDR_WHOLE)
        fail_msg("after %u: %s", done, message);
    const char *wrong = death_check(f);
    if (!wrong) wrong = looks_whole ? prefix(f, done) : some(f, done);
    if (wrong) fail_msg("after %u: %s", done, wrong);
    fdr_file_close(f);
}

enum { UNLIMITED = 64 };
static void step_through(const char *buffer, const char *resolution, uint32_t depth, uint32_t steps, bool whole)
{
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    int status;
    c.buffer = buffer;
    c.bin = "512";
    c.resolution = resolution;
    char limit[12];
    snprintf(limit, sizeof limit, "%u", deepest = depth);
    if (depth < UNLIMITED) c.depth = limit;
    make_plan(steps);
    shared->done = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        death_child();
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        if (fdr_init(&c)) _exit(1);
        raise(SIGSTOP);
        present(false);
        raise(SIGKILL);
    }
    looks_whole = whole;
    struct killed_run run = killed_at_every_store(pid, p->live, look);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!run.traced) skip(); /* this machine allows no ptrace */
    print_message("%s: %llu instructions, %llu of them changed the arena\n", buffer,
                  (unsigned long long)run.instructions, (unsigned long long)run.changes);
    assert_true(run.changes > steps);
}

static uint32_t steps_wanted(uint32_t usual)
{
    const char *v = getenv("FDR_TEST_STEPS");
    uint32_t n = v ? (uint32_t)atoi(v) : usual;
    return n < STEPS_MAX ? n : STEPS_MAX;
}

static void P7_killed_at_every_store(void **state)
{
    (void)state;
    step_through("192K", NULL, UNLIMITED, steps_wanted(120), true);
}
/* All calls have length 0. A kill may come after the commit of a record and before its call has ended. The reader must
 * not show that call twice. */
static void P7_killed_at_every_store_of_one_tick(void **state)
{
    (void)state;
    step_through("192K", "500s", UNLIMITED, steps_wanted(120), true);
}
static void P7_killed_at_every_store_of_calls_that_are_only_counted(void **state)
{
    (void)state;
    step_through("192K", NULL, 2, steps_wanted(200), true);
}
static void P7_killed_at_every_store_of_reductions(void **state)
{
    (void)state;
    step_through("72K", NULL, UNLIMITED, steps_wanted(400), false);
}

/* ---- real kills at random moments ---- */

static void *endless(void *unused)
{
    present(true);
    return unused;
}
static void four_threads(void)
{
    pthread_t t;
    for (int i = 0; i < 3; i++) pthread_create(&t, NULL, endless, NULL);
    endless(NULL);
}

static void P7_killed_at_random(void **state)
{
    (void)state;
    static const char *const strategies[] = {"whole", "last", "first", "telescope"};
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    make_plan(5000);
    for (int i = 0; i < 120; i++) {
        c.strategy = strategies[i % 4];
        c.buffer = i % 8 < 4 ? "1M" : "4M";
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            death_child();
            if (fdr_init(&c)) _exit(1);
            four_threads();
        }
        usleep(5000 + (useconds_t)(i * 7919 % 40000));
        kill(pid, SIGKILL);
        int status;
        waitpid(pid, &status, 0);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            fail_msg("kill %d, %s: it had ended before: %x", i, c.strategy, status);
        const char *left = death_file(p->live);
        if (*left) {
            struct fdr_file *f;
            char message[256] = "";
            if (fdr_file_open(left, &f, message, sizeof message) != FDR_WHOLE) fail_msg("kill %d: %s", i, message);
            const char *wrong = death_check(f);
            if (wrong) fail_msg("kill %d, %s: %s", i, c.strategy, wrong);
            fdr_file_close(f);
        }
        death_clear(p->live);
    }
}

static int begin(void **state)
{
    (void)state;
    setenv("FDR_SYMBOLS", "0", 1);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P7_killed_at_every_store), cmocka_unit_test(P7_killed_at_every_store_of_one_tick),
        cmocka_unit_test(P7_killed_at_every_store_of_calls_that_are_only_counted),
        cmocka_unit_test(P7_killed_at_every_store_of_reductions), cmocka_unit_test(P7_killed_at_random)};
    return cmocka_run_group_tests(tests, begin, death_place_leave);
}
