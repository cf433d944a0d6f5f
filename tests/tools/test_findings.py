#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# fdr findings names what was planted into made-up programs, where and since when, and nothing in programs that are
# alike from beginning to end. Times are those of the streams.
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import planted  # noqa: E402
from planted import check, fdr  # noqa: E402

work = tempfile.mkdtemp(prefix="fdr-findings-")


def findings(name, threads, buffer="16M", *settings):
    """The document of fdr findings for these threads."""
    paths = []
    for i, t in enumerate(threads):
        paths.append(f"{work}/{name}.{i}.evt")
        with open(paths[-1], "wb") as f:
            f.write(t.bytes())
    out = f"{work}/{name}.fdr"
    replay = [fdr, "replay", *paths, "--buffer", buffer, *settings, "-o", out]
    subprocess.run(replay, check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([fdr, "findings", "--json", out], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def only(document, kind, what):
    """The one finding, of that kind; an empty one if there are others."""
    found = [(f["kind"], f["region"]) for f in document["findings"]]
    check(len(found) == 1 and found[0][0] == kind, f"{what}: one finding, of kind {kind}", found)
    return next((f for f in document["findings"] if f["kind"] == kind), {"region": None, "locations": [], "sentence": "", "evidence": [], "value": 0, "sure": 0,
                 "share_of_run": 0, "from_ns": 0, "to_ns": 0})


def threads_of(count, seed=0):
    names = []
    return [planted.Thread(names, seed + i) for i in range(count)]


def growth(buffer, steps, count, what):
    threads = threads_of(count)
    for t in threads:
        for i in range(steps):
            t.enter("request")
            t.call("parse", t.around(600))
            t.call("lookup", t.around(120 if 2 * i < steps else 1680))
            t.call("answer", t.around(900))
            t.leave("request")
        t.end = t.now
    f = only(findings("growth", threads, buffer), "growth", what)
    knee, end = 0.34 * threads[0].end, threads[0].end
    check(f["region"] == "lookup" and sorted(f["locations"]) == list(range(count)), f"{what}: lookup, in all threads", f)
    check(8 < f["value"] < 18, f"{what}: 14 times", f["value"])
    check(f["share_of_run"] > 0.1 and f["evidence"] and f["sure"] >= 0.7, f"{what}: share and evidence", f)
    check(0.6 * knee < f["from_ns"] - 1000 < 1.3 * knee, f"{what}: where it begins", f["from_ns"], knee, end)


def imbalance(place, words):
    threads = threads_of(3)
    for _ in range(2000):
        for i, t in enumerate(threads):
            t.call("forces", t.around(90000 if i == 1 else 31000))
            t.call("move", t.around(4000))
        planted.barrier(threads, place)
    f = only(findings("imbalance", threads), "imbalance", "imbalance")
    check(f["region"] == "forces" and f["locations"] == [1], "imbalance: forces, in one thread", f)
    check(2.7 < f["value"] < 3.1, "imbalance: 2.9 times", f["value"])
    check(words in f["sentence"] and place in f["sentence"], "imbalance: where the others wait", f["sentence"])


def periodic():
    threads = threads_of(3, 7)
    for i in range(12000):
        for k, t in enumerate(threads):
            t.enter("step")
            t.call("forces", t.around(60000))
            if k == 2 and i % 700 == 350:
                t.call("rebuild_neighbours", t.around(2500000))
            t.call("move", t.around(9000))
            t.leave("step")
    f = only(findings("periodic", threads), "periodic", "periodic")
    check(f["region"] == "rebuild_neighbours" and f["locations"] == [2], "periodic: the region, in one thread", f)
    check(0.9 * 700 * 69000 < f["value"] < 1.1 * (700 * 69000 + 2.5e6), "periodic: the period", f)
    check("17 times" in f["sentence"] and "only" in f["sentence"], "periodic: how often, and where only", f["sentence"])


def unsteady(threads, steps):
    """Calls of steps; any of them may stand for milliseconds. The last thread rebuilds every 700 steps."""
    for i in range(steps):
        for k, t in enumerate(threads):
            t.enter("step")
            for name, ns in (("forces", 60000), ("move", 9000)):
                t.enter(name)
                t.work(t.around(ns) + (t.random.expovariate(1 / 4e6) if t.random.random() < 0.1 else 0))
                t.leave(name)
            if k == len(threads) - 1 and i % 700 == 350:
                t.call("rebuild_neighbours", t.around(6000000, 0.5))
            t.leave("step")
    return threads


def periodic_without_processor():
    """The same on a machine with more threads than processors: any call may stand for milliseconds, so neither times nor
    outliers tell. The counts between the calls do. Once those were given back the answer is that nobody knows; one
    thread alone, because which of several gives back depends on the machine."""
    threads = unsteady(threads_of(3, 9), 7000)
    document = findings("loaded", threads)
    rows = [f for f in document["findings"] if f["kind"] == "periodic"]
    check(len(rows) == 1 and rows[0]["region"] == "rebuild_neighbours", "loaded: one period", document["findings"])
    check(rows and "every 700 calls of step" in rows[0]["sentence"], "loaded: counted in calls", rows)
    document = findings("loaded, reduced", unsteady(threads_of(1, 11), 30000), "128K")
    check(any("rebuild_neighbours" in n["why"] for n in document["not_judged"]), "loaded, calls given back: not known", document)


def outlier(wait):
    """One slow request of many; with `wait` the time was spent in a call inside of it."""
    threads = threads_of(1, 3)
    t = threads[0]
    for i in range(20000):
        t.enter("handle")
        t.call("parse", t.around(400))
        if i == 13000:
            at = t.now
            t.call("store", 50000000) if wait else t.work(50000000)
        t.call("store", t.around(700))
        t.leave("handle")
    f = only(findings("outlier", threads), "outlier", "outlier")
    check(f["region"] == ("store" if wait else "handle"), "outlier: where the time went", f)
    check(f["from_ns"] <= at + 1000 <= f["to_ns"], "outlier: when", f, at)
    check(49e6 < f["value"] < 52e6, "outlier: how long", f["value"])


def outliers():
    """fdr outliers: the slow call, what ran inside, and what another thread did meanwhile."""
    threads = threads_of(2, 5)
    for i in range(5000):
        for t in threads:
            t.enter("handle")
            if i == 3000 and t is threads[1]:
                at = t.now
                t.call("store", 30000000)
            t.call("parse", t.around(2000))
            t.leave("handle")
        if i == 3000:
            planted.barrier(threads, "sync_all")
    findings("outliers", threads)
    done = subprocess.run([fdr, "outliers", "--json", f"{work}/outliers.fdr"], check=True, capture_output=True, text=True)
    rows = json.loads(done.stdout)
    check(len(rows) == 1, "outliers: one row", rows)
    row = rows[0]
    check(row["region"] == "handle" and row["location"] == 1 and abs(row["start_ns"] - at - 1000) < 10, "outliers: what and when", row)
    check(row["inside"] == "store" and 2.9e7 < row["inside_ns"] <= row["duration_ns"], "outliers: what ran inside", row)
    check([b["region"] for b in row["beside"]] == ["sync_all"], "outliers: what ran beside", row["beside"])
    text = subprocess.run([fdr, "outliers", f"{work}/outliers.fdr"], check=True, capture_output=True, text=True).stdout
    check("store took 30" in text and "was in sync_all" in text, "outliers: the text", text)


def story():
    """fdr FILE alone: what, who, what stands out, where detail ends, and what to ask next, within the terminal."""
    for columns in (60, 120):
        done = subprocess.run([fdr, f"{work}/imbalance.fdr"], check=True, capture_output=True, text=True,
                              env=os.environ | {"COLUMNS": str(columns)})
        lines = done.stdout.splitlines()
        for begin in ("what", "how sure", "threads", "stands out", "detail", "next"):
            check(sum(line.startswith(begin) for line in lines) == 1, f"story: {begin}", lines)
        check(len(lines) <= 40 and "forces takes" in done.stdout and "Every call of the run is kept" in done.stdout, "story", lines)
        long = [line for line in lines if len(line) > columns and "fdr " not in line]
        check(columns < 100 or not long, "story: fits the terminal", long)
        check("\033" not in done.stdout, "story: no colour in a pipe")
    document = json.loads(subprocess.run([fdr, f"{work}/imbalance.fdr", "--json"], check=True, capture_output=True, text=True).stdout)
    check(document["sentence"] and document["findings"][0]["kind"] == "imbalance", "story as JSON", document)


def all_wait():
    threads = threads_of(3, 11)
    for i in range(4000):
        for t in threads:
            t.call("compute", t.around(20000))
        if i == 2000:
            for t in threads:
                t.call("wait_for_input", 20000000 + t.random.randrange(100000))
    document = findings("all-wait", threads)
    waits = [f for f in document["findings"] if f["kind"] == "wait"]
    check(len(waits) == 1 and "All 3 threads" in waits[0]["sentence"], "all wait: one stretch", document["findings"])
    check(waits and 1.8e7 < waits[0]["value"] < 2.1e7, "all wait: how long", waits)


def clean(seed, buffer):
    """Threads that do the same at random paces, nested, with noise of 60 %: nothing stands out."""
    threads = threads_of(3, seed)
    for i in range(4000):
        for t in threads:
            t.enter("step")
            for name, ns in (("first", 900), ("second", 2500), ("third", 300)):
                t.enter(name)
                t.work(t.around(ns, 0.6))
                if t.random.random() < 0.3:
                    t.call("inner", t.random.expovariate(1 / 400))
                t.leave(name)
            t.leave("step")
    document = findings(f"clean{seed}", threads, buffer)
    check(not document["findings"], f"clean program {seed}, {buffer}: nothing", document["findings"])
    text = subprocess.run([fdr, "findings", f"{work}/clean{seed}.fdr"], check=True, capture_output=True, text=True).stdout
    check("nothing notable" in text, "nothing is an answer", text)


def unjudged():
    threads = threads_of(1)
    for _ in range(200):
        threads[0].call("alone", threads[0].around(1000))
    document = findings("alone", threads)
    check(not document["findings"] and any("imbalance" in n["what"] for n in document["not_judged"]), "what one thread cannot tell", document)


def between_ranks():
    """Four processes of a job, each with a clock of its own: rank 2 works longer; or rank 1 comes last, and nothing that
    is recorded says why. Ranks that are alike are no finding. Of 40 ranks the sentence has the number."""
    def files(name, slow, region, idle=0, ranks=4, rounds=1500):
        paths = []
        threads = [planted.Thread(["step", "forces", "move", "MPI_Allreduce"], i) for i in range(ranks)]
        for _ in range(rounds):
            for i, t in enumerate(threads):
                t.enter("step")
                t.call("forces", t.around(70000 if i in slow and region == "forces" else 30000))
                t.call("move", t.around(5000))
                t.work(idle if i in slow else 1)
            planted.barrier(threads, "MPI_Allreduce")
            for t in threads:
                t.leave("step")
        for i, t in enumerate(threads):
            with open(f"{work}/one.evt", "wb") as f:
                f.write(t.bytes())
            paths.append(f"{work}/{name}.host.{i + 10}.r{i}.1.fdr")
            subprocess.run([fdr, "replay", f"{work}/one.evt", "--buffer", "2M", "-o", paths[-1]], check=True, stdout=subprocess.DEVNULL)
        text = subprocess.run([fdr, "findings", "--json", *paths], check=True, capture_output=True, text=True).stdout
        between = [f for f in json.loads(text)["findings"] if "ranks" in f]
        return {f["kind"]: f for f in between}, paths

    found, paths = files("slow", {2}, "forces")
    f = found.get("imbalance", {"region": "", "ranks": [], "sentence": "", "value": 0, "file": ""})
    check(f["region"] == "forces" and f["ranks"] == [2] and f["file"] == paths[2], "ranks: forces in rank 2", found)
    check(2.2 < f["value"] < 2.5 and "MPI_Allreduce" in f["sentence"], "ranks: how much, and where others wait", f)
    check("wait" in found, "ranks: they wait", found)
    told = subprocess.run([fdr, *paths], check=True, capture_output=True, text=True).stdout
    check("rank 2" in told, "ranks: the story tells it", told)
    found, _ = files("late", {1}, "", idle=20000)
    f = found.get("imbalance", {"ranks": [], "sentence": ""})
    check(f["ranks"] == [1], "ranks: rank 1 is the one", f)
    found, _ = files("alike", set(), "")
    check("imbalance" not in found, "ranks that are alike", found)
    found, _ = files("many", set(range(10, 50)), "forces", ranks=100, rounds=20)
    f = found.get("imbalance", {"ranks": [], "sentence": ""})
    check(len(f["ranks"]) == 32 and f["ranks_in_all"] == 40 and "and 36 more" in f["sentence"], "ranks: 40 of 100", f)


growth("16M", 6000, 4, "growth, all kept")
between_ranks()
growth("512K", 50000, 2, "growth, in a small buffer")
imbalance("combine", "the others spend")
imbalance("sync_all", "the others wait")
periodic()
periodic_without_processor()
outlier(True)
outlier(False)
outliers()
story()
all_wait()
for number in range(4):
    clean(100 * number, "16M" if number % 2 else "512K")
unjudged()
planted.end(work)
