#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# fdr export --fit: the output has at most the size, the longest calls are in it, and the command says what it left out.
# The filters of fdr export choose the same events as those of fdr dump, in several recordings at once, too.
import csv
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402


def size(path):
    if os.path.isdir(path):
        return sum(size(f"{path}/{name}") for name in os.listdir(path))
    return os.path.getsize(path)


def events(path):
    with open(path, encoding="utf-8", newline="") as f:
        return [(int(r["recording"]), int(r["location"]), int(r["time_ns"]), r["kind"], r["name"]) for r in csv.DictReader(f)]


def dumped(paths, *select):
    return [(i + 1, r["location"], r["time"], r["kind"], r["name"]) for i, p in enumerate(paths) for r in x.dump(p, *select)]


program = x.compiled(x.PROGRAM)
one, two = x.record(program, "300"), x.record(program, "200")
for to, most in (("csv", 20), ("perfetto", 6), ("ctf", 6), ("chrome", 30)):
    done = x.tool("export", one, "--to", to, "-o", f"fit.{to}", "--class", "region", "--fit", f"{most}K")
    x.check(done.returncode == 0 and size(f"{x.work}/fit.{to}") <= most * 1024, f"{to} in {most} KiB", done.stderr)
    said = re.search(r"--fit left out ([\d,]+) of ([\d,]+) calls, those shorter than", done.stderr)
    x.check(bool(said), f"{to}: it says what it left out", done.stderr)
rows = dumped([one], "--class", "region")
kept = events(f"{x.work}/fit.csv")
x.check(0 < len(kept) < len(rows) and set(kept) <= set(rows), "what is left is a part of all", len(kept), len(rows))
x.check([r for r in kept if r[4] == "busy"] == [r for r in rows if r[4] == "busy"] != [], "the longest calls are in it")
done = x.tool("export", one, "--to", "csv", "-o", "whole.csv", "--fit", "1G")
x.check(done.returncode == 0 and not done.stderr and events(f"{x.work}/whole.csv") == dumped([one]), "all fits: all is there")
rows = dumped([one], "--class", "marker")
done = x.tool("export", one, "--to", "csv", "-o", "time.csv", "--class", "marker", "--fit", "4K")
said = re.search(r"of the rest all but the last 1/(\d+) of the time$", done.stderr.strip())
info = json.loads(x.tool("info", "--json", one).stdout)
begin = info["last_ns"] - (info["last_ns"] - info["first_ns"]) // int(said[1]) if said else 0
x.check(said and events(f"{x.work}/time.csv") == [r for r in rows if r[2] >= begin], "it says how much of the time is left", done.stderr)
before = set(os.listdir(x.work))
for to in ("csv", "ctf"):
    done = x.tool("export", one, "--to", to, "-o", "never", "--fit", "10")
    x.check(done.returncode == 2 and "no part of it fits" in done.stderr and set(os.listdir(x.work)) == before,
            f"{to}: nothing fits 10 bytes, nothing is left", done.stderr)
for arguments, said in (["--fit", "1x"], "not a size"), (["--fit", "1M"], "needs an OUT"), (["--fit", "0"], "not a size"):
    done = x.tool("export", one, "--to", "csv", "-o", "-", *arguments)
    x.check(done.returncode == 64 and said in done.stderr, f"refused: {arguments}", done.stderr)
done = x.tool("export", one, "--to", "folded", "-o", "f", "--fit", "1M")
x.check(done.returncode == 64 and "does not depend" in done.stderr, "folded has no size to fit", done.stderr)

for select in (["--class", "marker,metric"], ["--depth", "2.."], ["--location", "first"], ["--region", "outer*"],
               ["--from", "100us", "--to-time", "2ms"], ["--min-duration", "1us"]):
    for files in ([one], [one, two]):
        arguments = ["--to" if s == "--to-time" else s for s in select]
        done = x.tool("export", *files, "--to", "csv", "-o", "chosen.csv", *arguments)
        x.check(done.returncode == 0 and events(f"{x.work}/chosen.csv") == dumped(files, *arguments) != [],
                f"{arguments} in {len(files)} recordings", done.stderr)
x.end()
