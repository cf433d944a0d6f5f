/* SPDX-License-Identifier: MIT */
/* Makes the recordings of a job of many ranks, as files that fdr itself writes. Their clock is their own: seconds of a
 * run cost nothing. Each rank is a process of 256 KiB. Its calls come from an event stream, if one is given, shifted
 * and perturbed for each rank. Its counters of MPI are those that libfdr-mpi keeps. In the middle of the run one rank
 * goes wrong, and the snapshots are taken 40 s later.
 *
 *     bench_scale RANKS DIR HOW [CULPRIT [PERCENT_MISSING [STREAM.evt]]]
 *
 * HOW: healthy slow compute pair circle mismatch root ended dead killed missing. */
#include <fdr/fdr.h>
#include <fdr/tally.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

#define MS     1000000u
#define SECOND 1000000000u
#define PERIOD (100u * MS)
enum { ROUNDS = 40, EVENTS_A_ROUND = 500, REGIONS_MOST = 4096 };
/* Words of FORMAT.md, 13.4. */
enum { WAITS_RECEIVE = 2, WAITS_COLLECTIVE = 5, WAITS_FINALIZE = 10, BARRIER = 10, BCAST = 11, ALLREDUCE = 13 };
#define WORLD           1u
#define ORDINAL_UNKNOWN 0xffffffffffffu

static struct {
    uint32_t ranks, culprit, missing;
    const char *folder, *how;
    struct stream stream;
    bool has_stream;
} job;

/* ---- the clock ---- */

static uint64_t now_ns; /* since 1970, and since the start of the machine */

/* Takes the place of the C library's function, for the recorder, too. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    uint64_t now = __atomic_load_n(&now_ns, __ATOMIC_RELAXED);
    (void)clock;
    *t = (struct timespec){(time_t)(now / SECOND), (long)(now % SECOND)};
    return 0;
}

static void pass(uint64_t ns) { __atomic_add_fetch(&now_ns, ns, __ATOMIC_RELAXED); }
static void pass_until(uint64_t moment)
{
    if (moment > now_ns) __atomic_store_n(&now_ns, moment, __ATOMIC_RELAXED);
}

static uint32_t random_below(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

/* ---- one rank ---- */

struct rank {
    uint32_t rank, round;
    uint64_t seed, begin_ns; /* of the run */
    fdr_region solve, mpi, of_stream[REGIONS_MOST];
    fdr_tally collectives, call, wait;
    uint64_t calls;    /* of MPI */
    uint64_t at, time; /* in the stream */
};

static bool is(const char *how) { return strcmp(job.how, how) == 0; }
static bool is_culprit(const struct rank *r) { return r->rank == job.culprit; }

static fdr_region region_of(struct rank *r, uint32_t id)
{
    const struct stream *s = &job.stream;
    if (id >= s->head->regions || id >= REGIONS_MOST) return r->solve;
    if (!r->of_stream[id]) r->of_stream[id] = fdr_region_define(s->strings + s->region[id].name, NULL, 0);
    return r->of_stream[id];
}

/* Calls of the stream, with times that differ by up to a fifth; without a stream, calls of one function. */
static void work(struct rank *r, uint64_t until_ns)
{
    uint32_t depth = 0;
    struct stream_event e = {0};
    for (int n = 0; n < EVENTS_A_ROUND && now_ns < until_ns; n++) {
        uint64_t before = r->time;
        if (!job.has_stream) {
            fdr_enter(r->solve), pass(MS / 20), fdr_leave(r->solve);
            continue;
        }
        if (r->at == job.stream.head->records) r->at = 0;
        stream_event(&job.stream, r->at++, &r->time, &e);
        uint64_t step = (r->time - before) * (80 + random_below(&r->seed, 41)) / 100;
        pass(step < MS ? step : MS);
        if (e.kind == STREAM_ENTER) fdr_enter(region_of(r, e.value)), depth++;
        if (e.kind == STREAM_LEAVE && depth) depth--, fdr_leave(region_of(r, e.value));
    }
    while (depth) depth--, fdr_leave(r->solve);
    pass_until(until_ns);
}

/* ---- the counters of MPI ---- */

static void make_rows(struct rank *r)
{
    const struct {
        uint64_t identity;
        uint32_t comm, rest[3];
    } world = {.identity = WORLD};
    const struct {
        uint32_t tid, rest[5];
    } thread = {.tid = (uint32_t)syscall(SYS_gettid)};
    const uint8_t all[FDR_TALLY_KEY_BYTES] = "messages";
    fdr_tally row;
    fdr_tally_make(FDR_TALLY_MPI, all, &row);
    fdr_tally_make(FDR_TALLY_COLLECTIVES, &world, &r->collectives);
    fdr_tally_make(FDR_TALLY_CALL, &thread, &r->call);
    fdr_tally_make(FDR_TALLY_WAIT, &thread, &r->wait);
}

static void note_number(const char *key, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    fdr_note(key, text);
}

struct wait {
    uint32_t kind, operation, peer, tag, comm;
    uint64_t ordinal;
};

static void wait_in(struct rank *r, const char *call, struct wait w)
{
    r->mpi = fdr_region_define(call, "mpi:coll", 0);
    fdr_enter(r->mpi);
    uint64_t number = r->calls & 0xffff;
    const uint64_t words[] = {r->calls << 20 | r->mpi,
                              (now_ns & ~(uint64_t)0xffff) | number,
                              (uint64_t)w.comm << 40 | (uint64_t)w.kind << 32 | number,
                              (uint64_t)w.tag << 32 | number,
                              w.ordinal << 16 | number,
                              (uint64_t)w.peer << 32 | (uint64_t)w.operation << 16 | number};
    const fdr_tally rows[] = {r->call, r->wait};
    fdr_tally_set_all(rows, 2, words);
}

static void begin_collective(struct rank *r, const char *call, uint32_t operation, uint32_t root)
{
    uint64_t ordinal = 0;
    fdr_tally_add(r->collectives, 0, 1, &ordinal);
    wait_in(r, call, (struct wait){WAITS_COLLECTIVE, operation, root, 0, 0, ordinal});
}

static void end_collective(struct rank *r)
{
    fdr_tally_add(r->collectives, 1, 1, NULL);
    fdr_tally_set(r->call, 0, ++r->calls << 20);
    fdr_leave(r->mpi);
}

/* ---- a run ---- */

static uint64_t end_of_round(const struct rank *r) { return r->begin_ns + (uint64_t)(r->round + 1) * PERIOD; }

/* All ranks have come before the end of a round. */
static void go_round(struct rank *r)
{
    uint64_t end = end_of_round(r);
    work(r, end - PERIOD / 10 - random_below(&r->seed, PERIOD / 2));
    begin_collective(r, "MPI_Allreduce", ALLREDUCE, UINT32_MAX);
    pass_until(end);
    end_collective(r);
    r->round++;
}

static void receive_from(struct rank *r, uint32_t from)
{
    wait_in(r, "MPI_Recv", (struct wait){WAITS_RECEIVE, 0, from, 7, 0, 0});
}

static void die(struct rank *r, int signal)
{
    static const struct rlimit none = {0, 0};
    fdr_enter(r->solve);
    pass(SECOND / 2);
    setrlimit(RLIMIT_CORE, &none);
    raise(signal);
}

/* The rank to blame does something else than the next collective. False: this rank does the same as all. */
static bool goes_wrong(struct rank *r)
{
    uint32_t next = (job.culprit + 1) % job.ranks;
    if (is("circle")) return receive_from(r, (r->rank + 1) % job.ranks), true;
    if (is("pair") && r->rank == next) return receive_from(r, job.culprit), true;
    if (!is_culprit(r) || is("healthy") || is("missing")) return false;
    if (is("slow")) work(r, r->begin_ns + (uint64_t)ROUNDS * PERIOD + 40ull * SECOND);
    if (is("slow") || is("compute")) return fdr_enter(r->solve), true;
    if (is("pair")) return receive_from(r, next), true;
    if (is("mismatch")) return begin_collective(r, "MPI_Barrier", BARRIER, UINT32_MAX), true;
    if (is("ended"))
        return wait_in(r, "MPI_Finalize", (struct wait){WAITS_FINALIZE, 0, UINT32_MAX, 0, 0xffffff, ORDINAL_UNKNOWN}),
               true;
    if (is("dead")) die(r, SIGSEGV);
    if (is("killed")) die(r, SIGKILL);
    return false;
}

static bool start(struct rank *r)
{
    char text[16];
    bool mapped = is_culprit(r) && (is("dead") || is("killed"));
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .name = "scale",
                           .buffer = "256K",
                           .dir = job.folder,
                           .live_dir = job.folder,
                           .live_force = "1",
                           .arena = mapped ? "mapped" : "anonymous",
                           .timer = "monotonic",
                           .signal = "none",
                           .crash_deadline = "60s"};
    snprintf(text, sizeof text, "%u", r->rank);
    setenv("OMPI_COMM_WORLD_RANK", text, 1);
    if (fdr_init(&c)) return false;
    fdr_note("mpi.library", "none");
    fdr_note("mpi.job", "scale");
    note_number("mpi.rank", r->rank);
    note_number("mpi.size", job.ranks);
    r->solve = fdr_region_define("solve", NULL, 0);
    fdr_enter(fdr_region_define("main", NULL, 0));
    make_rows(r);
    return true;
}

/* The process of a rank. Its exit code. */
static int run(uint32_t number)
{
    static struct rank r;
    r = (struct rank){.rank = number, .seed = number + 1};
    r.begin_ns = now_ns;
    if (job.has_stream) r.at = random_below(&r.seed, (uint32_t)job.stream.head->records);
    pass(random_below(&r.seed, MS)); /* processes begin one after the other */
    if (!start(&r)) return 1;
    while (r.round < ROUNDS) go_round(&r);
    if (!goes_wrong(&r)) {
        work(&r, end_of_round(&r) - PERIOD / 10 - random_below(&r.seed, PERIOD / 2));
        if (is("root")) begin_collective(&r, "MPI_Bcast", BCAST, is_culprit(&r));
        else begin_collective(&r, "MPI_Allreduce", ALLREDUCE, UINT32_MAX);
    }
    uint64_t look = end_of_round(&r) + (is("healthy") ? 0 : 40ull * SECOND);
    pass_until(look + random_below(&r.seed, SECOND / 2)); /* files of different moments */
    return fdr_snapshot("a look at the job") != 0;
}

/* ---- all ranks ---- */

static bool has_file(uint32_t rank, uint64_t *seed)
{
    bool lacks = random_below(seed, 100) < job.missing;
    if (rank == job.culprit) return !is("missing");
    return !lacks || (is("pair") && rank == (job.culprit + 1) % job.ranks);
}

static int read_arguments(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s RANKS DIR HOW [CULPRIT [PERCENT_MISSING [STREAM.evt]]]\n", argv[0]);
        return 64;
    }
    job.ranks = (uint32_t)strtoul(argv[1], NULL, 10);
    job.folder = argv[2], job.how = argv[3];
    job.culprit = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 1;
    job.missing = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 0;
    job.has_stream = argc > 6;
    if (job.ranks < 2 || job.culprit >= job.ranks) {
        fprintf(stderr, "%s: %s ranks, of which %u is to blame: at least two, and one of them\n", argv[0], argv[1],
                job.culprit);
        return 64;
    }
    return job.has_stream && !stream_open(&job.stream, argv[6]) ? 2 : 0;
}

int main(int argc, char **argv)
{
    uint64_t seed = 42;
    int wrong = read_arguments(argc, argv);
    now_ns = 1700000000ull * SECOND;
    for (uint32_t rank = 0; !wrong && rank < job.ranks; rank++) {
        if (!has_file(rank, &seed)) continue;
        pid_t child = fork();
        if (child == 0) _exit(run(rank));
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status))) {
            fprintf(stderr, "%s: rank %u: %s\n", argv[0], rank, child < 0 ? strerror(errno) : "no recording");
            wrong = 1;
        }
    }
    return wrong;
}
