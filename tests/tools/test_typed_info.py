#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# `fdr info` shows metrics, added counters among them, with kind and unit, and communicators with their size. A recording
# that was replayed as a stream has the same ones, and its messages name the same communicators.
import json
import os
import subprocess
import sys
import tempfile

build = os.environ["FDR_BUILD"]
fdr = f"{build}/bin/fdr"
directory = tempfile.TemporaryDirectory(prefix="fdr-typed-info-")
work = directory.name
bad = 0


def check(good, what, *shown):
    global bad
    print(("ok: " if good else "FAILED: ") + what, *([] if good else shown))
    bad += not good


def tool(*arguments):
    return subprocess.run([fdr, *arguments], capture_output=True, text=True, cwd=work, check=True).stdout


def record(example):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": work, "FDR_LIVE_DIR": work, "FDR_LIVE_FORCE": "1", "FDR_BUFFER": "4M"}
    return subprocess.run([f"{build}/examples/{example}"], check=True, env=env, capture_output=True, text=True).stdout.strip()


def messages(file):
    lines = tool("dump", "--tsv", "--class", "message", file).splitlines()[1:]
    return [line.split("\t")[6] for line in lines]


events = record("events")
info = json.loads(tool("info", "--json", events))
check(info["metrics"] == [{"name": "memory", "unit": "bytes", "kind": "gauge", "type": "u64"}], "a metric", info["metrics"])
communicator = [{k: c[k] for k in ("id", "name", "size")} for c in info["communicators"]]
check(communicator == [{"id": 1, "name": "row 0", "size": 2}], "a communicator", info["communicators"])
check("metrics    memory (gauge, bytes)\n" in tool("info", events), "the metric in the text")
tool("replay", events, "-o", "back.fdr")
back = json.loads(tool("info", "--json", "back.fdr"))
check(all(back[k] == info[k] for k in ("metrics", "communicators")), "the same after a replay", back["communicators"])
check(len(messages(events)) == 200 and messages("back.fdr") == messages(events), "the same messages after a replay")
counters = tool("info", record("counters"))
check("metrics    pool:in-use (gauge, bytes), pool:allocations (counter)\n" in counters, "added counters", counters)
sys.exit(bad != 0)
