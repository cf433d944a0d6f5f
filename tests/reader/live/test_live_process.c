/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,signals,threads timeout=120 promise=P6,P7,P8 */
/* P6, P7, P8: fdr reads a process from outside, without its help: running, stopped, or blocking all signals, with a
 * mapped or an anonymous arena. The process and its files stay unchanged. */
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/wait_for_snapshots.h"
#include "tests/support/observed_process.h"
#include "tests/support/sanitized.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>

#include <fdr/reader.h>

struct kind {
    const char *arena;
    bool deaf, scribble, rounds;
};

static __thread volatile unsigned long sink;
static void *record(void *pause_after)
{
    fdr_region outer = fdr_region_define("outer", NULL, 0), inner = fdr_region_define("inner", NULL, 0);
    fdr_region stuck = fdr_region_define("stuck", NULL, 0);
    fdr_metric_id metric = fdr_metric_define("load", "1", FDR_U64, FDR_METRIC_GAUGE);
    fdr_thread_name(pause_after ? "stuck one" : "busy one");
    for (unsigned long n = 0;; n++) {
        fdr_enter(outer);
        for (int i = 0; i < 100; i++) {
            fdr_enter(inner);
            for (int k = 0; k < 20; k++) sink += (unsigned long)k;
            fdr_leave(inner);
        }
        fdr_metric_u64(metric, n);
        if (pause_after && n == 50) {
            fdr_enter(stuck);
            victim_ready();
            for (;;) pause();
        }
        fdr_leave(outer);
    }
    return NULL;
}

static void scribble(void)
{
    uint32_t x = 12345;
    for (uint64_t i = 4096; i < fdri_life_recording.arena.super->arena_bytes; i += 40) {
        x = x * 1664525u + 1013904223u;
        if ((x >> 20) % 64 == 0) memcpy(fdri_life_recording.arena.base + i, &x, 4);
    }
}

/* The chain of locations leads from a free location to itself. */
static void go_round(void)
{
    struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    struct fdri_arena_location *l = (void *)(fdri_life_recording.arena.base + s->location_first);
    l->flags |= FDRI_ARENA_LOCATION_FREE;
    l->next = s->location_first;
}

static void victim_body(void *context)
{
    const struct kind *kind = context;
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .buffer = "4M",
                                .live_dir = directory,
                                .dir = directory,
                                .arena = kind->arena};
    pthread_t t;
    sigset_t all;
    sigfillset(&all);
    if (kind->deaf) sigprocmask(SIG_SETMASK, &all, NULL);
    if (fdr_init(&config)) _exit(90);
    if (pthread_create(&t, NULL, record, (void *)1)) _exit(91);
    if (kind->scribble) {
        usleep(50000);
        scribble();
        for (;;) pause();
    }
    if (kind->rounds) {
        FDR_REGION("one") go_round();
        victim_ready();
        for (;;) pause();
    }
    record(NULL);
}

static struct fdr_file *open_process(pid_t pid, bool events)
{
    struct fdr_file *file = NULL;
    char message[512] = "";
    if (fdr_process_open((uint32_t)pid, events, &file, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    return file;
}

static void check_whole(struct fdr_file *file, bool exact)
{
    const struct fdr_ledger_row *row;
    if (fdr_file_verify(file) != FDR_WHOLE) fail_msg("%s", fdr_file_damage(file, 0));
    size_t n = fdr_ledger(file, &row), i = 0;
    assert_true(n > 0);
    for (size_t at = 0; at < fdr_location_count(file); at++) {
        uint64_t sum = 0, before, after;
        uint32_t id = fdr_location_info(file, at)->id;
        for (; i < n && row[i].location == id; i++) sum += row[i].kept + row[i].filtered + row[i].reduced + row[i].lost;
        fdr_ledger_bounds(file, id, &before, &after);
        bool dropped = fdr_file_info(file)->dropped_bins > 0;
        if (sum > after || (sum < before && !dropped))
            fail_msg("location %u: %llu not in %llu .. %llu", id, (unsigned long long)sum, (unsigned long long)before,
                     (unsigned long long)after);
        if (exact) assert_true(after - before <= 2);
    }
}

static const struct fdr_location_info *stuck_one(const struct fdr_file *file)
{
    for (size_t i = 0; i < fdr_location_count(file); i++)
        if (strcmp(fdr_location_info(file, i)->name, "stuck one") == 0) return fdr_location_info(file, i);
    fail_msg("the stuck thread is missing");
    return NULL;
}

static void check_stuck(const struct fdr_file *file)
{
    const struct fdr_location_info *l = stuck_one(file);
    assert_int_equal(l->open_count, 2);
    assert_string_equal(fdr_definition(file, FDR_REGION_DEFINITION, l->open[0].region)->name, "outer");
    assert_string_equal(fdr_definition(file, FDR_REGION_DEFINITION, l->open[1].region)->name, "stuck");
}

/* Looks at the process while it runs at full speed, then while it is stopped. */
static void look_at(const struct kind *kind)
{
    struct victim v = victim_start(victim_body, (void *)kind);
    victim_wait_ready(&v);
    for (int i = 0; i < (SANITIZED ? 2 : 8); i++) {
        struct fdr_file *file = open_process(v.pid, true);
        check_whole(file, false);
        check_stuck(file);
        assert_string_equal(fdr_file_info(file)->reason, "live");
        fdr_file_close(file);
        file = open_process(v.pid, false);
        check_stuck(file);
        fdr_file_close(file);
    }
    victim_stop(&v);
    struct fdr_file *file = open_process(v.pid, true);
    check_whole(file, true);
    fdr_file_close(file);
    assert_true(WIFSIGNALED(victim_end(&v, SIGKILL)));
}

static void P6_running_and_stopped_mapped(void **state)
{
    (void)state;
    look_at(&(struct kind){.arena = "mapped"});
}
static void P6_running_and_stopped_anonymous(void **state)
{
    (void)state;
    look_at(&(struct kind){.arena = "anonymous"});
}
static void P6_process_that_blocks_signals(void **state)
{
    (void)state;
    look_at(&(struct kind){.arena = "mapped", .deaf = true});
}

static bool find_live(char *path, size_t bytes)
{
    bool found = false;
    DIR *d = opendir(directory);
    for (struct dirent *e; d && !found && (e = readdir(d));)
        if ((found = strstr(e->d_name, ".live.fdr") != NULL)) snprintf(path, bytes, "%s/%s", directory, e->d_name);
    if (d) closedir(d);
    return found;
}

static uint8_t *whole_file(const char *path, size_t *bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    *bytes = (size_t)st.st_size;
    uint8_t *all = malloc(*bytes);
    assert_int_equal(read(fd, all, *bytes), *bytes);
    close(fd);
    return all;
}

/* The process's file has the same bytes before and after. The snapshot can be opened as any other file. */
static void nothing_is_written(void **state)
{
    char live[600], out[600], message[512];
    size_t a_bytes, b_bytes;
    struct stat st;
    (void)state;
    struct victim v = victim_start(victim_body, &(struct kind){.arena = "mapped"});
    victim_wait_ready(&v);
    victim_stop(&v);
    assert_true(find_live(live, sizeof live));
    uint8_t *a = whole_file(live, &a_bytes);
    snprintf(out, sizeof out, "%s/copy.fdr", directory);
    assert_int_equal(fdr_process_snapshot((uint32_t)v.pid, out, "why not", message, sizeof message), 0);
    uint8_t *b = whole_file(live, &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(a, b, a_bytes);
    free(a);
    free(b);
    assert_int_equal(stat(out, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_true((uint64_t)st.st_size <= a_bytes + 65536);
    assert_int_equal(fdr_process_snapshot((uint32_t)v.pid, out, NULL, message, sizeof message), -EEXIST);
    victim_end(&v, SIGKILL);
    struct fdr_file *file = NULL;
    assert_int_equal(fdr_file_open(out, &file, message, sizeof message), FDR_WHOLE);
    assert_string_equal(fdr_file_info(file)->reason, "why not");
    check_whole(file, true);
    fdr_file_close(file);
    unlink(out);
    unlink(live);
}

/* The live file was removed. The mapping is still readable. */
static void P7_removed_live_file(void **state)
{
    char live[600];
    (void)state;
    struct victim v = victim_start(victim_body, &(struct kind){.arena = "mapped"});
    victim_wait_ready(&v);
    assert_true(find_live(live, sizeof live));
    unlink(live);
    struct fdr_file *file = open_process(v.pid, true);
    check_whole(file, false);
    fdr_file_close(file);
    victim_end(&v, SIGKILL);
}

/* P8: whatever bytes its memory holds, the copy ends in bounded time and the reader does not crash. */
static void P8_memory_overwritten(void **state)
{
    struct fdr_file *file = NULL;
    char message[512], live[600];
    (void)state;
    struct victim v = victim_start(victim_body, &(struct kind){.arena = "mapped", .scribble = true});
    victim_wait_ready(&v);
    for (int i = 0; i < 6; i++) {
        usleep(20000);
        fdr_process_open((uint32_t)v.pid, i & 1, &file, message, sizeof message);
        if (file) {
            fdr_file_verify(file);
            fdr_file_close(file);
        }
    }
    victim_end(&v, SIGKILL);
    if (find_live(live, sizeof live)) unlink(live);
}

static void P8_a_chain_that_goes_round(void **state)
{
    struct fdr_file *file = NULL;
    char message[512], live[600];
    (void)state;
    struct victim v = victim_start(victim_body, &(struct kind){.arena = "mapped", .rounds = true});
    victim_wait_ready(&v);
    for (int events = 0; events < 2; events++) {
        fdr_process_open((uint32_t)v.pid, events, &file, message, sizeof message);
        if (file) fdr_file_close(file);
        file = NULL;
    }
    victim_end(&v, SIGKILL);
    if (find_live(live, sizeof live)) unlink(live);
}

static void sleep_on(void *unused)
{
    (void)unused;
    victim_ready();
    for (;;) pause();
}

static void expect_refusal(pid_t pid, const char *word)
{
    struct fdr_file *file = NULL;
    char message[512] = "";
    assert_int_equal(fdr_process_open((uint32_t)pid, true, &file, message, sizeof message), FDR_UNREADABLE);
    assert_null(file);
    if (!strstr(message, word)) fail_msg("'%s' does not say '%s'", message, word);
}

static void clear_refusals(void **state)
{
    (void)state;
    struct victim v = victim_start(sleep_on, NULL);
    victim_wait_ready(&v);
    expect_refusal(v.pid, "records nothing");
    victim_end(&v, SIGKILL);
    expect_refusal(v.pid, "no such process");
}

/* A child of fork no longer maps the arena of its parent. A child of a bare clone maps it if fdr has no crash handlers;
 * then the recording is that of another process. */
static void child_of_clone(void *crash)
{
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .buffer = "4M",
                                .live_dir = directory,
                                .dir = directory,
                                .crash = crash};
    if (fdr_init(&config)) _exit(90);
    fdr_enter(fdr_region_define("parent", NULL, 0));
    pid_t child = _Fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    if (write(victim_pipe, &child, sizeof child) != sizeof child) _exit(92);
    for (;;) pause();
}

static void look_at_a_child_of(void *crash, const char *refusal)
{
    pid_t child;
    char live[600];
    struct victim v = victim_start(child_of_clone, crash);
    assert_int_equal(read(v.ready, &child, sizeof child), sizeof child);
    expect_refusal(child, refusal);
    struct fdr_file *file = open_process(v.pid, true);
    fdr_file_close(file);
    kill(child, SIGKILL);
    victim_end(&v, SIGKILL);
    if (find_live(live, sizeof live)) unlink(live);
}
static void another_ones_recording(void **state)
{
    (void)state;
    look_at_a_child_of("0", "of another process");
    look_at_a_child_of("1", "records nothing");
}

/* Another user may not read the process; root may. */
static void other_users(void **state)
{
    char live[600];
    (void)state;
    if (getuid() != 0) skip();
    struct victim v = victim_start(victim_body, &(struct kind){.arena = "mapped"});
    victim_wait_ready(&v);
    pid_t other = fork();
    if (other == 0) {
        struct fdr_file *file = NULL;
        char message[512] = "";
        if (setgid(65534) || setuid(65534)) _exit(2);
        fdr_process_open((uint32_t)v.pid, true, &file, message, sizeof message);
        _exit(file ? 1 : strstr(message, "ermission") || strstr(message, "not permitted") ? 0 : 3);
    }
    int status = -1;
    waitpid(other, &status, 0);
    assert_int_equal(status, 0);
    victim_end(&v, SIGKILL);
    if (find_live(live, sizeof live)) unlink(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P6_running_and_stopped_mapped),  cmocka_unit_test(P6_running_and_stopped_anonymous),
        cmocka_unit_test(P6_process_that_blocks_signals), cmocka_unit_test(nothing_is_written),
        cmocka_unit_test(P7_removed_live_file),           cmocka_unit_test(P8_memory_overwritten),
        cmocka_unit_test(P8_a_chain_that_goes_round),     cmocka_unit_test(clear_refusals),
        cmocka_unit_test(another_ones_recording),         cmocka_unit_test(other_users)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
