/* SPDX-License-Identifier: MIT */
/* ctest: label=corpus,slow timeout=900 promise=P3,P4,P5,P9 excuse=corpus
 * P3, P4, P5, P9: the oracle over real streams. For each strategy and buffer it compares the shown events, ledger and
 * totals with everything that was presented. Each run is a process of its own; two run at a time. All streams run with
 * half of the settings, three with half of all strategies, buffers and resolutions; of a stream the first 1.5 million
 * records. The environment variable FDR_ORACLE_GRID=1 runs all records of all streams with all settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>

#include "tests/support/corpus_stream.h"
#include "tests/support/oracle.h"

static const char *const all_streams[] = {"npb-cg.r0.t0", "npb-cg.r1.t0", "npb-is.r0.t0",   "npb-is.r1.t0",
                                          "npb-bt.r0.t0", "npb-bt.r1.t0", "npb-bt.r2.t0",   "npb-bt.r3.t0",
                                          "npb-lu.r0.t0", "npb-lu.r1.t0", "lulesh.r0.t0",   "lulesh.r0.t1",
                                          "comd.r0.t0",   "comd.r1.t0",   "lua-json.r0.t0", "sqlite.r0.t0"};
enum { STREAMS = sizeof all_streams / sizeof *all_streams, MOST_RECORDS = 1500000 };

struct setting {
    const char *buffer, *strategy, *resolution, *min_duration, *depth, *reduce, *classes, *bin;
    bool complete;
};

static bool grid_wanted(void)
{
    const char *all = getenv("FDR_ORACLE_GRID");
    return all && !strcmp(all, "1");
}

static uint64_t bytes_of(const char *text)
{
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : n;
}

static uint32_t shift_of(const char *resolution)
{
    if (!resolution) return 0;
    return !strcmp(resolution, "10us") ? 13 : !strcmp(resolution, "1us") ? 9 : 7;
}

/* Defines regions by name, as an application does. Several may share one name, file and line. */
static uint32_t *define_all(const struct stream *s)
{
    uint32_t *id = calloc(s->head->regions + 1, sizeof *id);
    for (uint32_t i = 0; i < s->head->regions; i++)
        id[i] = fdr_region_define(s->strings + s->region[i].name, s->strings + s->region[i].file, s->region[i].line);
    return id;
}

static void present_all(const struct stream *s, struct oracle *o, const uint32_t *id)
{
    uint64_t t = s->head->t0_ns, records = s->head->records;
    if (!grid_wanted() && records > MOST_RECORDS) records = MOST_RECORDS;
    for (uint64_t i = 0; i < records; i++) {
        struct stream_event e;
        if (!stream_event(s, i, &t, &e)) continue;
        const struct stream_param *p = e.param;
        switch (e.kind) {
        case STREAM_ENTER: both_enter(o, id[e.value], t); break;
        case STREAM_LEAVE: both_leave(o, t); break;
        case STREAM_SEND:
        case STREAM_ISEND: both_message(o, true, (uint32_t)p->peer, p->tag, p->comm, p->bytes, t); break;
        case STREAM_RECV:
        case STREAM_IRECV: both_message(o, false, (uint32_t)p->peer, p->tag, p->comm, p->bytes, t); break;
        case STREAM_COLL_BEGIN: both_coll_begin(o, e.value, t); break;
        case STREAM_COLL_END: both_coll_end(o, (uint32_t)p->tag, p->comm, p->peer, p->bytes, p->bytes2, t); break;
        default: break;
        }
    }
}

/* The stream of this name; NULL if there is none. Children inherit the one that was loaded last. */
static const struct stream *loaded(const char *name)
{
    static struct stream in;
    static const char *last;
    if (last && !strcmp(last, name)) return &in;
    if (last) evt_free(&in);
    last = evt_load(&in, name) ? name : NULL;
    if (!last) fprintf(stderr, "%s: no such stream\n", name);
    return last ? &in : NULL;
}

static int run(const char *name, const struct setting *s, const char *dir)
{
    static struct oracle o;
    const struct stream *in = loaded(name);
    struct fdr_config c = oracle_config(dir);
    if (!in) return 1;
    c.buffer = s->buffer;
    c.strategy = s->strategy;
    c.resolution = s->resolution;
    c.min_duration = s->min_duration;
    c.depth = s->depth;
    c.reduce = s->reduce;
    c.classes = s->classes;
    c.bin = s->bin;
    struct oracle_rules r = {.buffer = bytes_of(s->buffer), .complete = s->complete};
    r.prefix = s->strategy && !strcmp(s->strategy, "first");
    r.depth = s->depth ? (uint32_t)atoi(s->depth) : 0;
    r.shift = shift_of(s->resolution);
    r.min_duration = s->min_duration ? 1000 : 0;
    if (fdr_init(&c)) return 1;
    uint32_t *id = define_all(in);
    present_all(in, &o, id);
    free(id);
    struct fdr_usage u = fdr_usage();
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(r.buffer, &wrong);
    if (!wrong && fdr_location_count(f) != 1) wrong = "not one location";
    if (!wrong) wrong = oracle_check(&o, &r, f, fdr_location_info(f, 0)->id);
    if (!wrong && fdr_location_info(f, 0)->open_count != o.depth) wrong = "open calls miscounted";
    if (wrong)
        fprintf(stderr, "%s buffer %s bin %s strategy %s resolution %s min %s depth %s reduce %s classes %s: %s\n",
                name, s->buffer, s->bin ? s->bin : "-", s->strategy ? s->strategy : "-",
                s->resolution ? s->resolution : "0", s->min_duration ? s->min_duration : "0", s->depth ? s->depth : "-",
                s->reduce ? s->reduce : "-", s->classes ? s->classes : "-", wrong);
    if (f) fdr_file_close(f);
    fdr_finalize();
    (void)u;
    return wrong != NULL;
}

/* ---- two processes at a time ---- */
static int running, failed, done;

static void reap(int most)
{
    while (running > most) {
        int status;
        if (wait(&status) < 0) break;
        running--;
        done++;
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            failed++;
            if (!WIFEXITED(status)) fprintf(stderr, "a run ended by signal %d\n", WTERMSIG(status));
        }
    }
}

static void start(const char *name, const struct setting *s)
{
    const char *dir = oracle_directory();
    loaded(name);
    reap(1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) _exit(run(name, s, dir));
    assert_true(pid > 0);
    running++;
}

static void finish(const char *what)
{
    reap(0);
    print_message("%s: %d runs, %d wrong\n", what, done, failed);
    int wrong = failed;
    failed = done = 0;
    assert_int_equal(wrong, 0);
}

static void P4_lossless_in_64M_is_what_was_presented(void **state)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++) {
        struct setting s = {.buffer = "64M", .complete = true};
        start(all_streams[i], &s);
    }
    finish("64M lossless");
}

/* Every second setting for one stream, the others for the next one, which is often another rank of that program. */
static void P3_P4_P5_P9_every_stream(void **state)
{
    static const char *const strategies[] = {"whole", "last", "first"};
    (void)state;
    for (int i = 0; i < STREAMS; i++) {
        const char *odd = i & 1 ? "128ns" : NULL, *even = i & 1 ? NULL : "128ns";
        const struct setting settings[] = {
            {.buffer = "1M", .strategy = "telescope", .resolution = odd},
            {.buffer = "1M", .strategy = strategies[i % 3], .resolution = odd},
            {.buffer = "1M", .strategy = "whole", .resolution = even},
            {.buffer = "256K", .strategy = strategies[(i + 1) % 3], .resolution = i & 2 ? "128ns" : NULL},
            {.buffer = "8M", .strategy = strategies[(i + 2) % 3], .min_duration = "1us", .resolution = odd},
            {.buffer = "256K", .strategy = "telescope", .resolution = even},
            {.buffer = "8M", .strategy = "telescope", .resolution = even},
        };
        for (int j = 0; j < 7; j++)
            if (grid_wanted() || (i + j) % 2 == 0) start(all_streams[i], &settings[j]);
    }
    finish("every stream");
}

static void P3_P4_P5_P9_every_strategy_and_buffer(void **state)
{
    static const char *const three[] = {"npb-lu.r0.t0", "lua-json.r0.t0", "sqlite.r0.t0"};
    static const char *const buffers[] = {"256K", "1M", "8M", "256M"};
    static const char *const strategies[] = {"whole", "last", "first", "telescope"};
    const bool grid = grid_wanted();
    const char *const *streams = grid ? all_streams : three;
    (void)state;
    for (int i = 0; i < (grid ? STREAMS : 3); i++)
        for (int b = 0; b < 4; b++)
            for (int k = 0; k < 4; k++)
                for (int how = 0; how < 3; how++) {
                    if (!grid && b == 3 && (k || how == 2)) continue;
                    if (!grid && b < 3 && (i + b + k + how) % 2) continue;
                    struct setting s = {.buffer = buffers[b],
                                        .strategy = strategies[k],
                                        .resolution = how ? "128ns" : NULL,
                                        .min_duration = how == 2 ? "1us" : NULL};
                    start(streams[i], &s);
                }
    finish("strategies and buffers");
}

static void P3_P9_depth_filter_chains_and_classes(void **state)
{
    static const char *const chains[] = {
        "depth,duration,class,epoch", "class,duration", "epoch", "duration,epoch", "depth", "class,epoch,depth"};
    static const char *const orders[] = {NULL, "region", "collective,message", "message,region,collective"};
    static const char *const bins[] = {"512", "64K", NULL, "1K"};
    static const char *const streams[] = {"npb-lu.r1.t0", "comd.r0.t0", "lua-json.r0.t0"};
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct setting s = {.buffer = i % 3 ? "512K" : "2M",
                            .reduce = chains[i % 6],
                            .classes = orders[i % 4],
                            .bin = bins[(i / 2) % 4],
                            .strategy = "whole",
                            .resolution = i % 2 ? "128ns" : NULL};
        if (s.bin && !strcmp(s.bin, "64K")) s.buffer = "4M";
        start(streams[i % 3], &s);
        s.depth = i % 3 == 2 ? "22" : "5";
        s.min_duration = i % 4 == 0 ? "1us" : NULL;
        s.strategy = i % 4 == 1 ? "last" : i % 4 == 2 ? "whole" : "telescope";
        start(streams[(i + 1) % 3], &s);
    }
    finish("depth, chains, classes");
}

/* One run, to examine a failure: STREAM BUFFER STRATEGY RESOLUTION MIN DEPTH REDUCE CLASSES BIN; "-" for none. */
static int one(char **a, int n)
{
    const char *v[9] = {0};
    for (int i = 0; i < 9 && i < n; i++) v[i] = strcmp(a[i], "-") ? a[i] : NULL;
    struct setting s = {.buffer = v[1],
                        .strategy = v[2],
                        .resolution = v[3],
                        .min_duration = v[4],
                        .depth = v[5],
                        .reduce = v[6],
                        .classes = v[7],
                        .bin = v[8]};
    return run(v[0], &s, oracle_directory());
}

int main(int argc, char **argv)
{
    if (argc > 2) return one(argv + 1, argc - 1);
    struct stream any;
    if (!evt_load(&any, all_streams[0])) {
        print_message("skipped: no corpus in %s (FDR_CORPUS says where)\n", evt_folder());
        return 77;
    }
    evt_free(&any);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P4_lossless_in_64M_is_what_was_presented),
        cmocka_unit_test(P3_P4_P5_P9_every_stream),
        cmocka_unit_test(P3_P4_P5_P9_every_strategy_and_buffer),
        cmocka_unit_test(P3_P9_depth_filter_chains_and_classes),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
