/* SPDX-License-Identifier: MIT */
/* ctest: label=tools,threads timeout=120
 * The fdr command on many threads, many metrics and odd notes. Each thread gives its own metrics, more of them than any
 * small table holds. The notes have keys that are not UTF-8, or that end within a character. On a terminal the command
 * shows the threads that live, however many have ended. */
#include <assert.h>
#include <pthread.h>
#include <pty.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "tests/support/command_path.h"

enum { LIVE = 3, ENDED = 60, METRICS = 300 };
static const char *const names[LIVE] = {"alpha", "beta", "gamma"};
static const char *command;
static char folder[] = "/tmp/fdr-test-told-XXXXXX", all[1 << 18];
static long tid[LIVE];
static fdr_metric_id value;
static fdr_region outer;
static pthread_barrier_t there, over;
static int wrong;

static void *live(void *which)
{
    uintptr_t i = (uintptr_t)which;
    tid[i] = syscall(SYS_gettid);
    fdr_thread_name(names[i]);
    fdr_enter(outer);
    for (unsigned k = 0; k < 10; k++) fdr_metric_u64(value, i * 100 + k);
    pthread_barrier_wait(&there);
    pthread_barrier_wait(&over);
    fdr_leave(outer);
    return NULL;
}

static void *ends(void *unused)
{
    fdr_enter(outer);
    fdr_leave(outer);
    return unused;
}

static const char *output_of(const char *verb, const char *what)
{
    char line[1400];
    snprintf(line, sizeof line, "%s %s %s 2>&1", command, verb, what);
    FILE *out = popen(line, "r");
    assert(out);
    all[fread(all, 1, sizeof all - 1, out)] = 0;
    pclose(out);
    return all;
}

static void expect(const char *where, const char *text, const char *what)
{
    if (strstr(text, what)) return;
    fprintf(stderr, "%s: nowhere is: %s\n", where, what);
    wrong++;
}

static void metrics_by_thread(const char *path)
{
    char want[120];
    output_of("counters --by thread --json", path);
    for (int i = 0; i < LIVE; i++) {
        snprintf(want, sizeof want, "\"thread\":%ld,\"name\":\"%s\"", tid[i], names[i]);
        expect("counters --by thread --json", all, want);
    }
    output_of("counters --by thread", path);
    for (int i = 0; i < LIVE; i++) {
        snprintf(want, sizeof want, "%ld %s\n", tid[i], names[i]);
        expect("counters --by thread", all, want);
    }
}

static void many_metrics(const char *path)
{
    char want[40];
    static const char *const verbs[] = {"counters", "counters --json", "stats --by metric"};
    for (int v = 0; v < 3; v++) {
        output_of(verbs[v], path);
        for (int i = 0; i < METRICS; i++) {
            snprintf(want, sizeof want, "gauge %03d", i);
            expect(verbs[v], all, want);
        }
    }
}

/* 38 bytes and a character of two bytes: the key ends in the middle of it. */
static void odd_notes(const char *path)
{
    output_of("info --json", path);
    expect("info --json", all, "\"Name of the input of this calculation.\":\"17\"");
    expect("info --json", all, "\"key \xef\xbf\xbd\":\"one\"");
    expect("info --json", all, "\"key \xef\xbf\xbd.2\":\"two\"");
}

static void top_on_a_terminal(void)
{
    int terminal;
    char pid[16];
    size_t n = 0;
    ssize_t got;
    snprintf(pid, sizeof pid, "%d", getpid());
    pid_t child = forkpty(&terminal, NULL, NULL, &(struct winsize){.ws_row = 24, .ws_col = 100});
    assert(child >= 0);
    if (child == 0) {
        execl(command, command, "top", pid, "-n", "1", (char *)NULL);
        _exit(127);
    }
    while (n < sizeof all - 1 && (got = read(terminal, all + n, sizeof all - 1 - n)) > 0) n += (size_t)got;
    all[n] = 0;
    waitpid(child, NULL, 0);
    close(terminal);
    for (int i = 0; i < LIVE; i++) expect("top", all, names[i]);
    if (strstr(all, " more")) fprintf(stderr, "top: leaves something out\n"), wrong++;
}

static void record(void)
{
    static char name[METRICS][16];
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "told",
                                .buffer = "16M",
                                .signal = "none",
                                .arena = "anonymous",
                                .dir = folder};
    assert(fdr_init(&config) == 0);
    outer = fdr_region_define("outer", NULL, 0);
    value = fdr_metric_define("value", "1", FDR_U64, FDR_METRIC_GAUGE);
    for (int i = 0; i < ENDED; i++) {
        pthread_t t;
        assert(pthread_create(&t, NULL, ends, NULL) == 0);
        pthread_join(t, NULL);
    }
    for (int i = 0; i < METRICS; i++) {
        snprintf(name[i], sizeof name[i], "gauge %03u", (unsigned)i % 1000);
        fdr_metric_u64(fdr_metric_define(name[i], "1", FDR_U64, FDR_METRIC_GAUGE), (uint64_t)i);
    }
    fdr_note("Name of the input of this calculation.\303\274ber", "17");
    fdr_note("key \377", "one");
    fdr_note("key \376", "two");
}

int main(void)
{
    pthread_t t[LIVE];
    command = command_path();
    if (access(command, X_OK) != 0) return 77;
    assert(mkdtemp(folder));
    pthread_barrier_init(&there, NULL, LIVE + 1);
    pthread_barrier_init(&over, NULL, LIVE + 1);
    record();
    for (uintptr_t i = 0; i < LIVE; i++) assert(pthread_create(&t[i], NULL, live, (void *)i) == 0);
    pthread_barrier_wait(&there);
    assert(fdr_snapshot("told") == 0);
    const char *path = fdr_last_snapshot();
    metrics_by_thread(path);
    many_metrics(path);
    odd_notes(path);
    top_on_a_terminal();
    pthread_barrier_wait(&over);
    for (int i = 0; i < LIVE; i++) pthread_join(t[i], NULL);
    unlink(path);
    fdr_finalize();
    rmdir(folder);
    return wrong != 0;
}
