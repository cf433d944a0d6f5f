#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
"""Several files are one job: what dump, stats, tree, samples, info and counters say of two files together is what they
say of each, under one name for each region. The files number their definitions differently. A damaged file, and one that
cannot be read, cost one line each and no other file."""
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["FDR_SOURCE"], os.environ["FDR_BUILD"]
FDR = os.path.join(BUILD, "bin/fdr")
PROGRAM = r"""
#include <fdr/fdr.h>
#include <stdlib.h>
static fdr_region work, step;
static int calls(const char *text)
{
    int n = 0;
    for (int i = 0; i < 300; i++) {
        fdr_enter(step);
        FDR_REGION("inner") n += text[0] == i % 256;
        fdr_leave(step);
    }
    return n;
}
int main(int argc, char **argv)
{
    int rank = atoi(argv[1]);
    uint32_t members[] = {0, 1};
    struct fdr_field field[] = {{"a", FDR_U64}, {"b", FDR_F64}};
    struct { uint64_t a; double b; } payload = {(uint64_t)rank, 0.5};
    if (argc < 2 || fdr_init(NULL)) return 1;
    for (int i = 0; i < rank; i++) { /* so that ids differ */
        fdr_region_define("only here", "a.c", 1);
        fdr_metric_define("of one", "B", FDR_METRIC_COUNTER, FDR_U64);
        fdr_comm_define("other", members, 1);
    }
    work = fdr_region_define("work", "a.c", 2);
    step = fdr_region_define("step", "a.c", 3);
    fdr_metric_id size = fdr_metric_define("size", "B", FDR_METRIC_GAUGE, FDR_U64);
    fdr_marker_id mark = fdr_marker_define("mark");
    fdr_event_type type = fdr_event_define("pair", field, 2);
    fdr_comm_id both = fdr_comm_define("both", members, 2);
    fdr_enter(work);
    int n = calls(argv[1]);
    fdr_metric_u64(size, 100u + (unsigned)rank);
    fdr_marker(mark, 7);
    fdr_event(type, &payload);
    fdr_message_send((uint32_t)!rank, 5, both, 64);
    fdr_collective_begin(10);
    fdr_collective_end(10, both, 0, 1, 2);
    fdr_leave(work);
    fdr_enter(work); /* open at the end */
    fdr_snapshot("test");
    return n < 0;
}
"""
bad = []


def fail(text):
    bad.append(text)


def fdr(*words, status=0):
    done = subprocess.run([FDR, *words], capture_output=True, text=True, check=False)
    if done.returncode != status:
        fail(f"fdr {' '.join(words)}: status {done.returncode}: {done.stderr[-400:]}")
    return done


def table(*files, options=()):
    """The events as texts without the ids that a file gives its definitions."""
    lines = fdr("dump", "--tsv", *options, *files).stdout.splitlines()[1:]
    rows = []
    for line in lines:
        location, time, kind, depth, _, name, attributes = line.split("\t")
        words = [w for w in attributes.split(" ") if not w.startswith("comm=")]
        rows.append((int(time), location, kind, depth, name, " ".join(words)))
    return rows


def events_agree(files):
    one = [[(t, f"{rank}:{where}", *rest) for t, where, *rest in table(path)] for rank, path in enumerate(files)]
    both = table(*files)
    if sorted(both) != sorted(sum(one, [])):
        fail(f"dump of both: {len(both)} events, each: {[len(o) for o in one]}")
    if [row[0] for row in both] != sorted(row[0] for row in both):
        fail("dump of both is not in order of time")
    for rank, rows in enumerate(one):
        if [row for row in both if row[1].startswith(f"{rank}:")] != rows:
            fail(f"dump of both: the events of rank {rank} changed their order")
        chosen = table(*files, options=("--location", f"{rank}:*"))
        if chosen != rows or table(*files, options=("--location", f"{rank}:0")) != [r for r in rows
                                                                                    if r[1] == f"{rank}:0"]:
            fail(f"--location {rank}:* gives {len(chosen)} of {len(rows)} events")
    steps = [r for r in both if r[4] == "step"]
    if table(*files, options=("--region", "step")) != steps or len(steps) != 1200:
        fail(f"--region step: not its {len(steps)} events")
    comms = {a["attributes"]["comm"] for a in json.loads(fdr("dump", "-j", "--class", "message", *files).stdout)}
    if len(comms) != 1:
        fail(f"both ranks used one communicator, the job has {comms}")


def ranks_are_chosen(files, folder):
    """--rank of files read as one, and of those that an export reads one by one."""
    both = table(*files)
    for ranks, shown in (("1", "1"), ("0,1", "01"), ("0..1", "01"), ("1..7", "1"), ("5", "")):
        if table(*files, options=("--rank", ranks)) != [r for r in both if r[1][0] in shown]:
            fail(f"--rank {ranks} is not {shown}")
    if table(files[1], options=("--rank", "0")) or table(files[1], options=("--rank", "1")) != table(files[1]):
        fail("--rank of one file")
    for wrong in ("", "a", "1..", "2..1", "1,", "-1"):
        fdr("dump", "--rank", wrong, *files, status=64)
    def exported(*words):
        out = os.path.join(folder, "out.csv")
        fdr("export", "--to", "csv", *words, "-o", out)
        with open(out, encoding="utf-8") as f:
            return [line.split(",", 1)[1] for line in f.read().splitlines()[1:]]
    one = exported(files[1])
    for options in (("--rank", "1"), ("--location", "1:0")):
        if not one or exported(*options, *files) != one:
            fail(f"export {options}")
    fdr("export", "--to", "csv", "--rank", "5", *files, "-o", os.path.join(folder, "none.csv"), status=2)


def the_process(files):
    for rank, one in enumerate(json.loads(fdr("info", "--json", *files).stdout)):
        rows = [(t["kind_name"], t["name"], list(t["counters"].values())) for t in one["tallies"]["rows"]]
        if [(p["kind"], p["key"], p["values"]) for p in one["process"]] != rows or one["rank"] != rank or one["world"]:
            fail(f"info: process {one['process']}, rank {one['rank']}, world {one['world']}")
        members = {c["name"]: c["members"] for c in one["communicators"]}
        if members.get("both") != [[0, 1]] or rank and members["other"] != [[0, 0]]:
            fail(f"info: members {members}")


def sums(rows):
    total = collections.Counter()
    for r in rows:
        for key in ("calls", "inclusive_ns", "exclusive_ns", "presented", "kept"):
            total[r["name"], r.get("file"), key] += r.get(key, 0)
    return total


def totals_agree(files):
    for options in ((), ("--events",), ("--by", "depth"), ("--by", "path")):
        load = [json.loads(fdr("stats", "-j", *options, *f).stdout) for f in ([files[0]], [files[1]], files)]
        for rows in load:
            for r in rows:
                r["name"] = r.get("name") or str(r.get("path", r.get("depth")))
        if sums(load[0]) + sums(load[1]) != sums(load[2]):
            fail(f"stats {options}: {sums(load[0])} + {sums(load[1])} != {sums(load[2])}")
    regions = [r["name"] for r in json.loads(fdr("stats", "-j", *files).stdout)]
    if sorted(regions) != sorted(set(regions)):
        fail(f"stats of both has regions twice: {regions}")
    where = {r["location"]: r["name"] for r in json.loads(fdr("stats", "-j", "--by", "location", *files).stdout)}
    if set(where) != {"0:0", "1:0"} or not where["1:0"].startswith("1:"):
        fail(f"stats --by location: {where}")
    trees = [json.loads(fdr("tree", "-j", *f).stdout) for f in ([files[0]], [files[1]], files)]
    step = [next(c for r in t if r["name"] == "work" for c in r["children"] if c["name"] == "step") for t in trees]
    if step[2]["calls"] != 600 or step[0]["inclusive_ns"] + step[1]["inclusive_ns"] != step[2]["inclusive_ns"]:
        fail(f"tree: {[(s['calls'], s['inclusive_ns']) for s in step]}")
    ledger = fdr("info", *files).stdout
    if "1,216" not in ledger or ledger.count("test") < 2:
        fail(f"info of both: {ledger}")
    infos = json.loads(fdr("info", "-j", *files).stdout)
    if [i["file"] for i in infos] != files or any(i["reason"] != "test" for i in infos):
        fail("info -j is not an array of both")
    metrics = json.loads(fdr("stats", "-j", "--by", "metric", *files).stdout)
    if not metrics:
        fail("no metrics of both")


def damage(files, folder):
    whole, cut, none = open(files[1], "rb").read(), os.path.join(folder, "cut.fdr"), os.path.join(folder, "none.fdr")
    with open(cut, "wb") as f:
        f.write(whole[:len(whole) - len(whole) // 3])
    with open(none, "wb") as f:
        f.write(whole[:60])
    done = fdr("stats", "-j", files[0], cut, none, status=2)
    lines = done.stderr.splitlines()
    if not {"work", "step"} <= {r["name"] for r in json.loads(done.stdout)}:
        fail("a damaged file takes the others with it")
    if sum(cut in line for line in lines) != 1 or sum(none in line for line in lines) != 1:
        fail(f"damaged files: {lines}")
    if len(json.loads(fdr("info", "-j", files[0], none, status=2).stdout)) != 1:
        fail("info -j of one readable file and one other")
    twice = fdr("stats", files[0], files[0])
    if twice.stderr.count("both of rank 0") != 1:
        fail(f"one file twice: {twice.stderr}")
    fdr("stats", none, none + "2", status=2)


def main():
    if not os.path.exists(FDR):
        print("skipped: no fdr command")
        return 77
    with tempfile.TemporaryDirectory() as work:
        source, program = os.path.join(work, "p.c"), os.path.join(work, "p")
        with open(source, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        lib = os.path.join(BUILD, "lib")
        flags = os.environ.get("FDR_SANITIZE_FLAGS", "").split()
        subprocess.run(["cc", *flags, "-I", os.path.join(SOURCE, "include"), source, "-L", lib, f"-Wl,-rpath,{lib}",
                        "-lfdr", "-o", program], check=True)
        env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
        env |= {"FDR_BUFFER": "4M", "FDR_DIR": work, "FDR_LIVE_DIR": work, "FDR_LIVE_FORCE": "1"}
        for rank in ("0", "1"):
            subprocess.run([program, rank], env=env | {"PMI_RANK": rank}, check=True)
        files = [glob.glob(f"{work}/*.r{rank}.1.fdr")[0] for rank in "01"]
        events_agree(files)
        totals_agree(files)
        ranks_are_chosen(files, work)
        the_process(files)
        damage(files, work)
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
