/* SPDX-License-Identifier: MIT */
/* ctest: label=tools timeout=60 promise=P8
 * P8: control characters in the names of a recording never reach the terminal, and no name breaks a line of the output.
 * The test records names with escapes and line breaks, and looks for them in the output of each verb. An open region
 * with an empty name is shown, too. */
#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fdr/fdr.h>

static const char *fdr; /* the command */
static char folder[] = "/tmp/fdr-test-names-XXXXXX";
static int wrong;

/* Part of every recorded name: an escape, a line break and DEL. U+009B, which some terminals take for an escape. U+202E
 * and U+2066, which change the direction of text. One byte that is not UTF-8, and one valid character. */
#define BAD "\033[31mX\n\177\302\233Y\342\200\256\342\201\246\377\303\266"

/* Records events of all kinds and leaves a call open. */
static void record(void)
{
    static const struct fdr_field field[] = {{"field" BAD, FDR_F64, 0}};
    double value = 1;
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "names",
                                .buffer = "4M",
                                .arena = "anonymous",
                                .signal = "none",
                                .triggers = "t\033[31m: api; other: api",
                                .dir = folder};
    assert(fdr_init(&config) == 0);
    fdr_thread_name("thread" BAD);
    fdr_note("key" BAD, "value" BAD);
    fdr_region region = fdr_region_define("region" BAD, "file" BAD, 1);
    fdr_enter(region);
    fdr_enter(fdr_region_define("", NULL, 0));
    fdr_enter(region);
    fdr_marker(fdr_marker_define("marker" BAD), 1);
    fdr_metric_f64(fdr_metric_define("metric" BAD, "unit" BAD, FDR_F64, FDR_METRIC_COUNTER), 1);
    fdr_event(fdr_event_define("event" BAD, field, 1), &value);
    fdr_leave(region);
    usleep(20000);
}

/* The output of the verb must contain `text`. */
static void expect(const char *verb, const char *path, const char *text)
{
    char command[1024];
    static char all[1 << 16];
    snprintf(command, sizeof command, "%s %s %s 2>&1", fdr, verb, path);
    FILE *out = popen(command, "r");
    assert(out);
    all[fread(all, 1, sizeof all - 1, out)] = 0;
    pclose(out);
    if (strstr(all, text)) return;
    fprintf(stderr, "%s: nowhere is: %s\n", verb, text);
    wrong++;
}

static bool plain(const char *c)
{
    const unsigned char *u = (const unsigned char *)c;
    bool turns = u[0] == 0xe2 && ((u[1] == 0x80 && u[2] == 0xae) || (u[1] == 0x81 && u[2] == 0xa6));
    return u[0] >= 0x20 && u[0] != 0x7f && u[0] != 0xff && !(u[0] == 0xc2 && u[1] < 0xa0) && !turns;
}

/* Looks for control characters in the output. A name that broke a line would leave its DEL in the next line. */
static void look(const char *verb, const char *path)
{
    char command[1024], line[8192];
    snprintf(command, sizeof command, "%s %s %s 2>&1", fdr, verb, path);
    FILE *out = popen(command, "r");
    assert(out);
    while (fgets(line, sizeof line, out)) {
        size_t end = strcspn(line, "\n");
        line[end] = 0;
        const char *c = line;
        while (*c && plain(c)) c++;
        if (!*c) continue;
        fprintf(stderr, "%s: character %d in: %.*s\n", verb, *c, (int)(c - line), line);
        wrong++;
    }
    int status = pclose(out);
    int worst = strncmp(verb, "hang", 4) ? 1 : 3; /* 3: undecided */
    if (!WIFEXITED(status) || WEXITSTATUS(status) > worst) fprintf(stderr, "%s: status %d\n", verb, status), wrong++;
}

static void look_all(const char *path)
{
    static const char *const verbs[] = {"info --ledger --config",
                                        "dump",
                                        "stats",
                                        "stats --by path",
                                        "stats --by location",
                                        "stats --by metric",
                                        "stats --by epoch",
                                        "tree",
                                        "counters",
                                        "counters --by thread",
                                        "counters --by region",
                                        "counters --by call",
                                        "samples",
                                        "hang --for 1ms",
                                        "crash",
                                        "check",
                                        "export --to folded -o -",
                                        "export --to chrome -o -",
                                        "info --json",
                                        "dump --json",
                                        "stats --json",
                                        "tree --json",
                                        "crash --json"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) look(verbs[i], path);
}

/* Leaves a bundle: its report shows threads, calls, events and metrics. */
static void die(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    record();
    abort();
}

int main(void)
{
    static char command[512], path[128], pid[16];
    const char *build = getenv("FDR_BUILD");
    snprintf(command, sizeof command, "%s/bin/fdr", build ? build : ".");
    fdr = command;
    if (access(fdr, X_OK) != 0) return 77;
    assert(mkdtemp(folder));
    pid_t child = fork();
    if (child == 0) die();
    int status;
    assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    snprintf(path, sizeof path, "%s/names.*.crash.fdr", folder);
    look_all(path);
    expect("crash", path, "  \"\", for ");
    record();
    assert(fdr_snapshot("reason" BAD) == 0);
    look_all(fdr_last_snapshot());
    snprintf(path, sizeof path, "snapshot -o '%s/out\033[31m'", folder);
    snprintf(pid, sizeof pid, "%d", getpid());
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* lets the command, a child, read this process */
    look(path, pid);
    expect("info", fdr_last_snapshot(), " > \"\"");
    snprintf(path, sizeof path, "%s %s/names.*.crash.fdr", fdr_last_snapshot(), folder);
    look("hang --for 1ms", path); /* merges several files */
    look("crash --all", path);
    look("list", folder);
    fdr_finalize();
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) wrong++;
    return wrong != 0;
}
