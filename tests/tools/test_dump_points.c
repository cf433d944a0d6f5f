/* SPDX-License-Identifier: MIT */
/* ctest: label=tools timeout=60 promise=P4
 * P4: `fdr dump --tsv` prints points exactly as they were recorded: metrics of every type, markers, messages,
 * collectives and user events. It prints the same after the recording was replayed as a stream. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>

static const char *fdr; /* the command */
static char folder[] = "/tmp/fdr-test-points-XXXXXX";

/* The expected lines of `dump --tsv`, from the time on and without the id. */
static const char *const expected[] = {
    "1000 enter 1 solve ",
    "1100 metric 1 temperature value=36.6 unit=deg_C",
    "1200 metric 1 drift value=-42 unit=um",
    "1300 metric 1 bytes value=18446744073709551615 unit=B kind=counter",
    "1400 marker 1 iteration value=7",
    "1500 send 1 send peer=3 tag=-1 comm=0 bytes=4096 ordinal=?",
    "1600 recv 1 recv peer=2 tag=99 comm=0 bytes=0 ordinal=?",
    "1700 coll_begin 1 Allreduce ordinal=?",
    "1800 coll_end 1 Allreduce comm=0 root=-1 sent=8 received=16 ordinal=?",
    "1900 event 1 step number=12 residual=0.001 shift=-5",
    "2000 leave 1 solve ",
    "2050 event 0 step ",
    "2100 marker 0 iteration value=8",
};
enum { EXPECTED = sizeof expected / sizeof expected[0] };

struct step {
    uint32_t number;
    int64_t shift;
    double residual;
};

static void record(void)
{
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "points",
                                .buffer = "4M",
                                .arena = "anonymous",
                                .signal = "none",
                                .dir = folder};
    static const struct fdr_field fields[] = {{"number", FDR_U32, offsetof(struct step, number)},
                                              {"residual", FDR_F64, offsetof(struct step, residual)},
                                              {"shift", FDR_I64, offsetof(struct step, shift)}};
    struct step step = {12, -5, 0.001};
    assert(fdr_init(&config) == 0);
    fdr_region solve = fdr_region_define("solve", "solve.c", 10);
    fdr_marker_id iteration = fdr_marker_define("iteration");
    fdr_enter_at(solve, 1000);
    fdr_metric_f64_at(fdr_metric_define("temperature", "deg C", FDR_F64, FDR_METRIC_GAUGE), 36.6, 1100);
    fdr_metric_i64_at(fdr_metric_define("drift", "um", FDR_I64, FDR_METRIC_GAUGE), -42, 1200);
    fdr_metric_u64_at(fdr_metric_define("bytes", "B", FDR_U64, FDR_METRIC_COUNTER), UINT64_MAX, 1300);
    fdr_marker_at(iteration, 7, 1400);
    fdr_message_send_at(3, -1, 0, 4096, 1500);
    fdr_message_recv_at(2, 99, 0, 0, 1600);
    fdr_collective_begin_at(13, 1700);
    fdr_collective_end_at(13, 0, -1, 8, 16, 1800);
    fdr_event_type of_step = fdr_event_define("step", fields, 3);
    fdr_event_at(of_step, &step, 1900);
    fdr_leave_at(solve, 2000);
    fdr_event_at(of_step, NULL, 2050);
    fdr_marker_at(iteration, 8, 2100);
    assert(fdr_snapshot("points") == 0);
}

/* "location time kind depth id name attributes" without location and id, tabs as spaces. */
static void shorten(char *line, char *to)
{
    char *field[7], *rest = line;
    for (int i = 0; i < 7; i++) field[i] = strsep(&rest, "\t\n");
    assert(field[6]);
    sprintf(to, "%s %s %s %s %s", field[1], field[2], field[3], field[5], field[6]);
}

static void compare(const char *path)
{
    char command[512], line[512], got[512];
    size_t at = 0;
    snprintf(command, sizeof command, "%s dump --tsv %s", fdr, path);
    FILE *dump = popen(command, "r");
    assert(dump && fgets(line, sizeof line, dump)); /* the header */
    while (fgets(line, sizeof line, dump)) {
        shorten(line, got);
        if (at >= EXPECTED || strcmp(got, expected[at]) != 0) {
            fprintf(stderr, "%s: event %zu is \"%s\", not \"%s\"\n", path, at, got,
                    at < EXPECTED ? expected[at] : "the end");
            exit(1);
        }
        at++;
    }
    assert(pclose(dump) == 0 && at == EXPECTED);
}

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
    char arguments[512], command[700];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    snprintf(command, sizeof command, "%s %s", fdr, arguments);
    if (system(command) == 0) return;
    fprintf(stderr, "failed: %s\n", command);
    exit(1);
}

static void python(const char *script, const char *path)
{
    char command[1024];
    snprintf(command, sizeof command, "python3 -c '%s' %s", script, path);
    if (system(command) == 0) return;
    fprintf(stderr, "failed: %s\n", command);
    exit(1);
}

/* JSON objects have distinct keys, also if two fields have the same name. */
static void same_names(void)
{
    static const struct fdr_field fields[] = {{"n", FDR_U32, 0}, {"n", FDR_U32, 4}, {"n", FDR_U32, 8}};
    static const uint32_t values[] = {5, 6, 7};
    char path[64];
    fdr_event_at(fdr_event_define("same", fields, 3), values, 2200);
    assert(fdr_snapshot("same names") == 0);
    snprintf(path, sizeof path, "%s/same.json", folder);
    run("dump --json %s >%s", fdr_last_snapshot(), path);
    python("import sys; assert \"\\\"n\\\": 5, \\\"n#2\\\": 6, \\\"n#3\\\": 7\" in open(sys.argv[1]).read()", path);
    run("dump --tsv %s >%s", fdr_last_snapshot(), path);
    python("import sys; assert \"\\tn=5 n#2=6 n#3=7\\n\" in open(sys.argv[1]).read()", path);
    run("export --to chrome %s -o %s", fdr_last_snapshot(), path);
    python("import sys; assert \"\\\"n\\\":5,\\\"n#2\\\":6,\\\"n#3\\\":7\" in open(sys.argv[1]).read()", path);
}

/* A sum beyond 64 bits is shown as the bound, with a mark. Single values of this size are shown as they are. */
static void large_sums(void)
{
    fdr_metric_id time = fdr_metric_define("time of day", "ns", FDR_U64, FDR_METRIC_GAUGE);
    fdr_metric_id depth = fdr_metric_define("depth", "m", FDR_I64, FDR_METRIC_GAUGE);
    char path[64];
    for (int i = 0; i < 20; i++)
        fdr_metric_u64_at(time, 1795527986911608032u, 2300), fdr_metric_i64_at(depth, INT64_MIN, 2300);
    assert(fdr_snapshot("large") == 0);
    snprintf(path, sizeof path, "%s/large.json", folder);
    run("stats --json --by class %s >%s", fdr_last_snapshot(), path);
    python("import json,sys; k={x[\"name\"]:x for c in json.load(open(sys.argv[1])) for x in c[\"kinds\"]}; "
           "assert [n for n in k if k[n][\"saturated\"]]==[\"time of day\", \"depth\"], k; "
           "assert k[\"time of day\"][\"sum\"]==k[\"bytes\"][\"max\"]==2**64-1 and k[\"depth\"][\"sum\"]==-2**63, k",
           path);
    run("stats %s >%s", fdr_last_snapshot(), path);
    python("import sys; t=open(sys.argv[1]).read(); "
           "assert \"(gauge, ns)  [the sum is that or more: it overflowed 64 bits]\\n\" in t, t; "
           "assert \"(gauge, m)  [the sum is beyond that: it overflowed 64 bits]\\n\" in t, t; "
           "assert t.count(\"64 bits\")==2, t",
           path);
}

/* Two markers in five calls, all too short to be stored. A replay cannot place the markers there, and reports it. */
static void without_calls(void)
{
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "short",
                                .buffer = "4M",
                                .arena = "anonymous",
                                .signal = "none",
                                .min_duration = "1us",
                                .dir = folder};
    char path[64];
    uint64_t now = 1000;
    fdr_finalize();
    assert(fdr_init(&config) == 0);
    fdr_region r = fdr_region_define("short", NULL, 0);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 5; i++) fdr_enter_at(r, now += 10);
        fdr_marker_at(fdr_marker_define("deep"), 1, now += 10);
        for (int i = 0; i < 5; i++) fdr_leave_at(r, now += 10);
    }
    assert(fdr_snapshot("short") == 0);
    snprintf(path, sizeof path, "%s/short.txt", folder);
    run("replay %s >/dev/null 2>%s", fdr_last_snapshot(), path);
    python("import sys; t=open(sys.argv[1]).read(); "
           "assert \"calls around 2 events without duration were given back\" in t, t",
           path);
}

int main(void)
{
    static char command[512], again[64], chrome[64];
    const char *build = getenv("FDR_BUILD");
    snprintf(command, sizeof command, "%s/bin/fdr", build ? build : ".");
    fdr = command;
    if (access(fdr, X_OK) != 0) return 77;
    assert(mkdtemp(folder));
    record();
    compare(fdr_last_snapshot());
    snprintf(again, sizeof again, "%s/again.fdr", folder);
    run("replay %s -o %s >/dev/null", fdr_last_snapshot(), again);
    compare(again);
    snprintf(chrome, sizeof chrome, "%s/chrome.json", folder);
    run("export --to chrome %s -o %s", again, chrome);
    python("import json,sys; e=json.load(open(sys.argv[1]))[\"traceEvents\"]; "
           "assert [x[\"args\"] for x in e if x[\"ph\"]==\"C\"] == [{\"deg "
           "C\":36.6},{\"um\":-42},{\"B\":2**64-1}], e; "
           "assert len([x for x in e if x[\"ph\"]==\"i\"]) == 8, e",
           chrome);
    run("dump %s >/dev/null", again);
    snprintf(chrome, sizeof chrome, "%s/stats.txt", folder);
    run("stats %s >%s", again, chrome);
    python("import sys; assert [str(2**64-1)] * 3 in [l.split()[1:4] for l in open(sys.argv[1])]", chrome);
    snprintf(chrome, sizeof chrome, "%s/class.json", folder);
    run("stats --json --by class %s >%s", again, chrome);
    python("import json,sys; k={x[\"name\"]:x for c in json.load(open(sys.argv[1])) for x in c[\"kinds\"]}; "
           "assert k[\"drift\"][\"sum\"]==-42 and k[\"temperature\"][\"max\"]==36.6, k; "
           "assert k[\"send\"][\"sum\"]==4096 and k[\"iteration\"][\"events\"]==2, k",
           chrome);
    same_names();
    large_sums();
    without_calls();
    fdr_finalize();
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? 0 : 1;
}
