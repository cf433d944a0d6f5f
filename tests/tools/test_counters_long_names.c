/* SPDX-License-Identifier: MIT */
/* ctest: label=tools timeout=60
 * Counters at the edges of calls whose names first differ behind byte 27, as those of processors do. `fdr counters`
 * must show each of them as a counter of its own. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/counters.h>
#include <fdr/fdr.h>

enum { CALLS = 100, FEW = 3, MANY = 70 };
static const char *const names[] = {"OFFCORE_RESPONSE_0:DMND_DATA_RD:ANY_RESPONSE",
                                    "OFFCORE_RESPONSE_0:DMND_DATA_RD:L3_MISS"};
static uint64_t counts[2];

static size_t probe(struct fdr_counter_info *out, size_t most)
{
    for (size_t i = 0; i < 2 && i < most; i++) {
        out[i] = (struct fdr_counter_info){.kind = FDR_METRIC_COUNTER, .per_thread = 1, .works = 1};
        snprintf(out[i].name, sizeof out[i].name, "%s", names[i]);
    }
    return 2;
}
static size_t choose(const char *list, struct fdr_counter_info *out, size_t most)
{
    (void)list;
    return probe(out, most);
}
static void *open_set(void) { return counts; }
static int read_set(void *set, uint64_t *values)
{
    memcpy(values, set, sizeof counts);
    return 0;
}
static void close_set(void *set) { (void)set; }

static void record(const char *folder)
{
    struct fdr_counter_provider pair = {.size = offsetof(struct fdr_counter_provider, overflow_choose),
                                        .name = "pair",
                                        .probe = probe,
                                        .choose = choose,
                                        .open = open_set,
                                        .read = read_set,
                                        .close = close_set};
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .name = "long",
                           .buffer = "4M",
                           .arena = "anonymous",
                           .signal = "none",
                           .papi = "both",
                           .dir = folder};
    assert(fdr_counter_provide(&pair) == 0);
    assert(fdr_init(&c) == 0);
    fdr_region region = fdr_region_define("counted", NULL, 0);
    for (int i = 0; i < CALLS; i++) {
        fdr_enter(region);
        counts[0] += MANY;
        counts[1] += FEW;
        fdr_leave(region);
    }
    assert(fdr_snapshot("end") == 0);
}

static int told(const char *fdr, const char *what, uint64_t amount)
{
    char command[1024], line[4096], want[32];
    snprintf(command, sizeof command, "%s counters --by call --counter '%s' '%s'", fdr, what, fdr_last_snapshot());
    snprintf(want, sizeof want, " %llu ", (unsigned long long)amount);
    FILE *out = popen(command, "r");
    int found = 0;
    assert(out);
    while (fgets(line, sizeof line, out)) found += strstr(line, "counted") && strstr(line, want);
    assert(pclose(out) == 0);
    if (!found) fprintf(stderr, "%s: not told, or not %llu\n", what, (unsigned long long)amount);
    return found;
}

int main(void)
{
    char fdr[512], folder[] = "/tmp/fdr-test-long-XXXXXX";
    const char *build = getenv("FDR_BUILD");
    snprintf(fdr, sizeof fdr, "%s/bin/fdr", build ? build : ".");
    if (access(fdr, X_OK) != 0) return 77;
    assert(mkdtemp(folder));
    record(folder);
    int found = told(fdr, names[0], (uint64_t)CALLS * MANY) & told(fdr, names[1], (uint64_t)CALLS * FEW);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    rmdir(folder);
    return !found;
}
