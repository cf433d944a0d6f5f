#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300
# Samples from a program to the output of each verb: fdr samples by every key, fdr stats --by path without events, fdr
# export --to chrome and folded. By its own CPU clock the program spends three quarters of its time in one function, and
# one quarter in another. The shares in the output must agree.
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
work = tempfile.mkdtemp(prefix="fdr-sample-tools-")
bad = 0

PROGRAM = r"""
#include <fdr/fdr.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "busy_functions.h"
SPIN(hot)
SPIN(warm)
__attribute__((noinline)) static void between(double until)
{
    while (now() < until) {
        hot(), hot(), hot(), warm();
    }
}
__attribute__((noinline)) static void touch(long pages)
{
    char *p = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < pages; i++) p[i * 4096] = 1;
    munmap(p, (size_t)pages * 4096);
    sink = (double)pages;
}
__attribute__((noinline)) static void more(void) { touch(6000); sink = 1; }
__attribute__((noinline)) static void less(void) { touch(2000); sink = 2; }
int main(int argc, char **argv)
{
    if (fdr_init(NULL)) return 2;
    if (argc > 1 && !strcmp(argv[1], "faults")) {
        fdr_marker(fdr_marker_define("here"), 1);
        sleep(1); /* the sampler has seen this thread */
        for (int i = 0; i < 5; i++) more(), less();
        return fdr_snapshot("end") != 0;
    }
    if (argc > 1 && !strcmp(argv[1], "many")) { /* 200,000 periods of 1000 events */
        struct fdr_sampled *s = fdr_sampled_open(1, "simulated", FDR_BY_EVENTS, 1000);
        for (uint64_t i = 0; i < 200000; i++) fdr_sample(s, &(struct fdr_look){.weight = 1, .pc = 0x1000 + i % 999});
        return fdr_snapshot("end") != 0;
    }
    if (argc > 1 && !strcmp(argv[1], "named")) fdr_thread_name("worker one");
    if (argc > 1 && !strcmp(argv[1], "after")) FDR_REGION("phase") { between(now() + 0.1); }
    if (argc > 1 && !strcmp(argv[1], "regions")) {
        FDR_REGION("phase") { between(now() + 1); }
    } else {
        between(now() + 1);
    }
    int bad = fdr_snapshot("end");
    fdr_finalize();
    return bad != 0;
}
"""


def check(good, what, *more):
    global bad
    print("ok:" if good else "FAIL:", what, *(more if not good else ()))
    bad += not good


def run(mode, setting, **more):
    directory = f"{work}/{mode}-{setting.replace(',', '-')}"
    os.makedirs(directory)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": directory, "FDR_ARENA": "anonymous", "FDR_BUFFER": "8M", "FDR_SAMPLE": setting} | more
    done = subprocess.run([f"{work}/program", mode], env=env, capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"{mode}, {setting}: runs", done.stderr)
    return f"{directory}/{os.listdir(directory)[0]}"


def ask(*arguments):
    return json.loads(subprocess.run([fdr, *arguments], capture_output=True, check=True).stdout)


def tables(file, mode, setting):
    by = {what: ask("samples", "--json", "--by", what, file) for what in ("function", "region", "line", "stack", "thread")}
    for what, told in by.items():
        rows, total = told["rows"], told["weight"]
        check(told["samples"] > 20 and abs(sum(r["self"]["weight"] for r in rows) - total) < 1, f"by {what}: all time is somewhere")
        check(all(r["self"]["low"] <= r["self"]["share"] <= r["self"]["high"] for r in rows), f"by {what}: intervals")
    function = {r["name"]: r for r in by["function"]["rows"]}
    hot, warm = function["hot"]["self"], function["warm"]["self"]
    # by wall time the samples include the snapshot, of any duration: hot has a share of the rest
    least = 0 if "wall" in setting else 0.55
    check(least < hot["share"] < 0.9 and 0.6 < hot["weight"] / (hot["weight"] + warm["weight"]) < 0.87,
          f"{setting}: the hot function, and the other", hot, warm)
    check(function["between"]["all"]["weight"] > 0.95 * (hot["weight"] + warm["weight"]), "what called them", function["between"])
    region = {r["name"]: r["self"]["share"] for r in by["region"]["rows"]}
    check(region.get("phase" if mode == "regions" else "[outside]", 0) > 0.8, "by region", region)
    for verb in (["samples"], ["samples", "--folded"], ["stats", "--by", "path"]):
        text = subprocess.run([fdr, *verb, file], capture_output=True, text=True)
        check(text.returncode == 0 and "hot" in text.stdout, f"as text: {' '.join(verb)}", text.stdout)
    told = by["function"]
    check(told["weight"] == told["weight_held"] == told["weight_sampled"], "all that was sampled is held", told)
    check(abs(told["weight_per_sample"] * told["samples"] - told["weight"]) < 1 and told["first_ns"] < told["last_ns"], "what a sample stands for")
    text = subprocess.run([fdr, "samples", file], capture_output=True, text=True).stdout
    check(f" in {told['samples']:,} samples, each for " in text and "# taken from " in text and "sampled in all" not in text,
          "time in all, and how many samples stand behind it", text)
    return told["weight"], hot


def named():
    """A thread is shown under its name from fdr_thread_name. An empty window is not reported as a recording without
    samples."""
    file = run("named", "1kHz")
    told = ask("samples", "--json", "--by", "thread", file)
    streams = [s for s in told["streams"] if s["of"] is not None]
    check(len(streams) == 1 and streams[0]["thread"] == "worker one" and streams[0]["name"] == "program", "the stream", streams)
    check(told["rows"][0]["name"] == f"worker one (program), tid {streams[0]['tid']}", "the row", told["rows"])
    by_name = ask("samples", "--json", "--location", "worker one", file)
    check(by_name["samples"] == streams[0]["kept"] > 20, "--location chooses its samples", by_name)
    for verb in (["samples", "--folded"], ["export", "--to", "folded", "--class", "sample", "-o", "-"]):
        for chosen in [], ["--location", "worker one"]:
            lines = subprocess.run([fdr, *verb, *chosen, file], capture_output=True, text=True).stdout.splitlines()
            check(any(l.startswith("worker one;") for l in lines), f"{verb[0]} {chosen}: folded", lines)
    text = subprocess.run([fdr, "samples", "--from", "500s", file], capture_output=True, text=True).stdout
    check(text == f"# none of the {sum(s['kept'] for s in told['streams']):,} kept samples is in the selection\n", "none in a window", text)


def paths(file, mode):
    rows = [r for r in ask("stats", "--json", "--by", "path", file) if r.get("from") == "samples"]
    names = {tuple(r["path"]): r for r in rows}
    path = ("phase", "hot") if mode == "regions" else ("hot",)
    check(path in names, "stats --by path: time from samples where there are no events", list(names))
    row = names.get(path, {"low_ns": 1, "exclusive_ns": 0, "high_ns": 0, "samples": 0})
    check(row["low_ns"] <= row["exclusive_ns"] <= row["high_ns"] and row["samples"] > 10, "with interval and samples", row)


def folded(file, weight, its, *options):
    out = f"{work}/out.folded"
    subprocess.run([fdr, "export", "--to", "folded", *options, file, "-o", out], check=True)
    with open(out) as f:
        lines = [line.rstrip("\n").rsplit(" ", 1) for line in f]
    total = sum(int(n) for _, n in lines)
    hot = sum(int(n) for path, n in lines if path.endswith("between;hot"))
    check(abs(total - weight) < 1, "export --to folded: stacks of samples sum to their time", total, weight)
    check(0.9 * its["weight"] < hot <= its["weight"] + 1, "and those of the hot function to its own", hot, its)


def chrome(file, samples, its):
    out = f"{work}/out.json"
    subprocess.run([fdr, "export", "--to", "chrome", file, "-o", out], check=True)
    with open(out) as f:
        told = json.load(f)
    found = [e for e in told["traceEvents"] if e.get("cat") == "sample"]
    frames = told["stackFrames"]

    def stack(e):
        names, at = [], e.get("sf")
        while at:
            names.append(frames[at]["name"])
            at = frames[at].get("parent")
        return names

    check(len(found) == samples, "export --to chrome: every sample", len(found), samples)
    check(all(e["name"] in stack(e) for e in found if "sf" in e), "named by a function of their stacks")
    check(0.9 * its["samples"] < sum(stack(e)[:2] == ["hot", "between"] for e in found) <= its["samples"], "with their stacks", its)
    check(all(e["args"]["weight"] >= 1 for e in found), "and what they stand for")
    return found


def dumped(file):
    """dump as text and as a table shows the same samples, also if freed memory is overwritten."""
    perturbed = os.environ | {"MALLOC_PERTURB_": "165"}
    text = subprocess.run([fdr, "dump", file], capture_output=True, text=True, env=perturbed)
    rows = [line.split("\t") for line in subprocess.run([fdr, "dump", "--tsv", file], capture_output=True, text=True).stdout.splitlines()]
    table = [f"{row[5]}  {row[6]}" for row in rows if row[2] == "sample"]
    lines = [line.split("* sample ", 1)[1] for line in text.stdout.splitlines() if "* sample " in line]
    check(text.returncode == 0 and lines == table, "dump: as text", text.returncode, [pair for pair in zip(lines, table) if pair[0] != pair[1]][:2])


def told_last(file, mode):
    """fdr crash shows a thread's own events. It shows samples, by the names of their functions, if there are no
    events."""
    perturbed = os.environ | {"MALLOC_PERTURB_": "165"}
    text = subprocess.run([fdr, "crash", "--all", file], capture_output=True, text=True, env=perturbed)
    rows = [line.split("\t") for line in subprocess.run([fdr, "dump", "--tsv", file], capture_output=True, text=True).stdout.splitlines()]
    names = [row[5] for row in rows if row[2] == "sample"][-50:]
    last = text.stdout.partition("\nthe newest ")[2].partition("\n\n")[0].splitlines()
    lines = [line.split("  sample ", 1)[1].strip() for line in last if "  sample " in line]
    good = last and "(samples)" not in last[0] and not lines if mode != "plain" else lines == names
    check(text.returncode == 0 and good, "crash: the newest events", text.returncode, last, names)


def replayed(file):
    """Samples are not replayed, because no program presents them. fdr replay says so."""
    kept = sum(s["kept"] for s in ask("samples", "--json", file)["streams"])
    done = subprocess.run([fdr, "replay", file, "--buffer", "1M"], capture_output=True, text=True)
    said = f"fdr: {file}: {kept} samples are not replayed: only events are"
    good = done.returncode == 0 and said in done.stderr.splitlines()
    check(good, "replay: says that samples are not", done.returncode, done.stderr, kept)


def clamped():
    """A period below 100 us becomes 100 us. fdr records 100 us, and as many samples."""
    for setting in ("1us", "30us,wall", "1MHz,nostack"):
        told = ask("samples", "--json", run("plain", setting))
        main = max(told["streams"], key=lambda s: s["periods"])
        check(main["period"] == 100000, f"{setting}: a sample each 100 us at most", main)
        check(0 < told["samples"] * 100000 <= told["weight"] < 60e9, f"{setting}: and no more", told["samples"], told["weight"])


def part():
    """A recording that holds only the newest samples says so."""
    file = run("many", "off", FDR_BUFFER="256K", FDR_STRATEGY="last")
    told = ask("samples", "--json", file)
    check(told["weight_sampled"] == 200000000 and told["weight"] == told["weight_held"] < 150000000, "a part is held", told)
    text = subprocess.run([fdr, "samples", file], capture_output=True, text=True).stdout
    check(f"# the recording holds samples of {told['weight_held']:.0f} events; 200000000 events were sampled in all" in text, "which is said", text)


def overflow():
    """A sample every 100 page faults: 40,000 faults, three quarters of them below one function."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")} | {"FDR_ARENA": "anonymous", "FDR_DIR": work}
    file = run("faults", "page-faults/100")
    told = ask("samples", "--json", "--limit", "0", file)
    if not told["streams"]:
        print("skipped: no perf events here")
        return
    stream = max(told["streams"], key=lambda s: s["kept"])
    check(told["clock"] == "events" and stream["period"] == 100, "overflow of a counter", stream)
    check(20000 <= told["weight"] <= 50000, "samples stand for the events that passed", told["weight"])
    rows = {r["name"]: r for r in told["rows"]}
    share = [rows[n]["all"]["share"] for n in ("touch", "more", "less")]
    check(share[0] > 0.8 and 0.5 < share[1] < 0.8 and 0.12 < share[2] < 0.4, "they are where the faults are", share)
    done = subprocess.run([f"{work}/program", "faults"], env=env | {"FDR_SAMPLE": "cycles/1000000"}, capture_output=True, text=True)
    said = done.stderr.splitlines()
    works = any(r["name"] == "hw:cycles" and r["works"] for r in ask("counters", "--json"))
    check(done.returncode == 0 and (said == [] if works else len(said) == 1 and "cycles cannot be counted here" in said[0]),
          "an event that the machine does not have is said once", said)


try:
    with open(f"{work}/program.c", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-g", "-fno-omit-frame-pointer", "-std=gnu11", f"-I{source}/include", f"-I{source}/tests/support", f"{work}/program.c", "-o",
                    f"{work}/program", f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr"], check=True)
    for mode, setting in (("regions", "1kHz"), ("plain", "1kHz"), ("plain", "1kHz,wall,signal"), ("regions", "1kHz,unwind")):
        file = run(mode, setting)
        weight, hot = tables(file, mode, setting)
        paths(file, mode)
        if mode == "plain":
            folded(file, weight, hot)
        else:
            folded(file, weight, hot, "--class", "sample")
        found = chrome(file, ask("samples", "--json", file)["samples"], hot)
        if mode == "regions":
            check(sum(e["args"]["regions"] == ["phase"] for e in found) > 0.8 * len(found), "and their regions")
        dumped(file)
        told_last(file, mode)
        replayed(file)
    told_last(run("after", "1kHz"), "after")  # the newest are samples
    named()
    clamped()
    part()
    overflow()
finally:
    shutil.rmtree(work)
sys.exit(bad > 0)
