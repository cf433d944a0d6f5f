#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house,slow timeout=300
# The intervals of `fdr samples` contain the true times as often as they claim. Synthetic programs are sampled at random
# moments of each period: short, long and uneven regions, stretches without running, thinned samples. All moments come
# from a generator with a fixed seed, so the machine's load does not matter.
import json
import os
import shutil
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr = f"{build}/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-sample-shares-")
RUNS = 25
bad = 0

PROGRAM = r"""
#include <fdr/fdr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { REGIONS = 8, PERIOD = 1000000 };
static uint64_t state;
static double uniform(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}
static double length(const char *kind, int region)
{
    if (!strcmp(kind, "short")) return PERIOD * 0.13 * (0.5 + uniform());
    if (!strcmp(kind, "steep")) return PERIOD * 0.004 * (1 << region) * (0.5 + uniform());
    if (!strcmp(kind, "long")) return PERIOD * 40 * uniform();
    return PERIOD * 1.5 * uniform() * uniform();
}
int main(int argc, char **argv)
{
    const char *kind = argv[1];
    double periods = !strcmp(kind, "thinned") ? 60000 : 1000, now = 0, exact[REGIONS] = {0};
    int stalls = !strcmp(kind, "stalled");
    fdr_region r[REGIONS];
    state = strtoull(argv[2], NULL, 10) * 7919 + (uint64_t)kind[0];
    if (argc != 3 || fdr_init(NULL)) return 2;
    for (int k = 0; k < REGIONS; k++) {
        char name[] = {'r', (char)('0' + k), 0};
        r[k] = fdr_region_define(name, "synthetic", (unsigned)k);
    }
    struct fdr_sampled *s = fdr_sampled_open(1, "synthetic", FDR_BY_WALL_TIME, PERIOD);
    double moment = PERIOD * uniform(); /* of the next stretch */
    uint64_t stretch = 0, weight = 0;
    for (int k = 0; now < periods * PERIOD; k = (k + 1) % REGIONS) {
        double end = now + length(kind, k);
        int held = stalls && uniform() < 0.1; /* no signal comes through before it ends */
        if (held) end = now + PERIOD * (2 + 20 * uniform());
        if (end > periods * PERIOD) end = periods * PERIOD;
        exact[k] += end - now;
        while (moment < end) {
            double at = moment;
            weight++;
            moment = PERIOD * ((double)++stretch + uniform());
            if (held && moment < end) continue;
            struct fdr_look look = {.weight = weight, .pc = 0x400000, .path = &r[k], .path_count = 1};
            if (fdr_sample_at(s, &look, (uint64_t)at)) weight = 0;
        }
        now = end;
    }
    if (fdr_snapshot("shares")) return 3;
    for (int k = 0; k < REGIONS; k++) printf("%.17g\n", exact[k] / now);
    puts(fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
"""


def check(good, what, *more):
    global bad
    print("ok:" if good else "FAIL:", what, *more)
    bad += not good


def one(kind, seed):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": work, "FDR_ARENA": "anonymous", "FDR_STRATEGY": "whole", "FDR_TIMER": "monotonic",
            "FDR_BUFFER": "256K" if kind == "thinned" else "4M", "FDR_BIN": "1K"}
    done = subprocess.run([f"{work}/program", kind, str(seed)], env=env, capture_output=True, text=True, check=True)
    *exact, file = done.stdout.split()
    out = subprocess.run([fdr, "samples", "--json", "--by", "region", "--limit", "0", file], capture_output=True, check=True)
    os.unlink(file)
    return [float(x) for x in exact], json.loads(out.stdout)


def coverage(kind):
    inside = total = heavy = 0
    ratio = []
    for seed in range(RUNS):
        exact, told = one(kind, seed)
        period = told["streams"][0]["period"]
        heavy += told["weight"] / period > 1.5 * told["samples"]
        rows = {row["name"]: row["self"] for row in told["rows"]}
        for k, share in enumerate(exact):
            row = rows.get(f"r{k}")
            if not row:
                continue
            total += 1
            inside += row["low"] <= share <= row["high"]
            p, n = row["share"], told["samples"]
            ratio.append((row["high"] - row["low"]) / (2 * 1.96 * (p * (1 - p) / n) ** 0.5) if 0 < p < 1 else 1)
    return 100 * inside / total, total, sum(ratio) / len(ratio), heavy


try:
    with open(f"{work}/program.c", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-std=gnu11", f"-I{source}/include", f"{work}/program.c", "-o", f"{work}/program",
                    f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr"], check=True)
    pooled = count = 0
    for kind in "short", "steep", "uneven", "long", "stalled", "thinned":
        percent, total, width, heavy = coverage(kind)
        pooled += percent * total
        count += total
        check(percent >= 90, f"{kind}: {percent:.1f} % of {total} region-runs inside, {width:.2f} of the binomial width")
        if kind in ("short", "steep"):
            check(percent < 99 and 0.85 < width < 1.1, f"{kind}: no wider than it must be")
        if kind in ("long", "stalled"):
            check(width < 0.75, f"{kind}: samples that say the same as their neighbours count for more")
        if kind in ("stalled", "thinned"):
            check(heavy == RUNS, f"{kind}: samples stand for several periods")
    check(pooled / count >= 93, f"{pooled / count:.1f} % of all {count} inside")
finally:
    shutil.rmtree(work)
sys.exit(bad > 0)
