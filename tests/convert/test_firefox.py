#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=200
# What `fdr export --to firefox` writes has the events of fdr dump: calls with their names, times and nesting, points as
# markers, samples. The profiler's own command reads it, where node has it, and finds the same own times.
import collections
import json
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import evt_stream  # noqa: E402
import exported as x  # noqa: E402


def plain(name):
    return "".join(c if c.isprintable() and c != "\ufffd" else " " for c in name)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def lengths(table):
    return {len(column) for key, column in table.items() if isinstance(column, list)} | {table["length"]}


def calls(thread, origin):
    """(time, kind, depth, name) of each enter and leave, in their order."""
    prefix, frame, name = thread["stackTable"]["prefix"], thread["stackTable"]["frame"], thread["funcTable"]["name"]
    rows, open_, s = [], [], thread["samples"]
    for stack, time in zip(s["stack"], s["time"]):
        top = open_[-1] if open_ else None
        enters = stack is not None and prefix[stack] == top
        if enters:
            open_.append(stack)
        shown = open_[-1]
        rows.append((round(time * 1e6) + origin, "enter" if enters else "leave", len(open_), plain(thread["stringArray"][name[frame[shown]]])))
        if not enters:
            open_.pop()
            x.check((open_[-1] if open_ else None) == stack, "a leave goes to the caller", stack)
    return rows


def same_thread(name, thread, rows, origin):
    s, m = thread["samples"], thread["markers"]
    for table in ("samples", "markers", "stackTable", "frameTable", "funcTable"):
        if len(lengths(thread[table])) != 1:
            x.check(False, f"{name}: columns of {table} are equally long", lengths(thread[table]))
    sampled = [r for r in rows if r["kind"] == "sample"]
    if thread["name"].startswith("samples of"):
        x.check(s["length"] == len(sampled) and sum(s["weight"]) == sum(int(r["attributes"]["weight"]) for r in sampled), f"{name}: samples")
        return
    x.same(f"{name}: calls", calls(thread, origin), [(r["time"], r["kind"], r["depth"], r["name"]) for r in rows if r["kind"] in ("enter", "leave")])
    times = [round(t * 1e6) for t in s["time"]] + [round(s["time"][-1] * 1e6)] if s["time"] else []
    x.check([round(w * 1e6) for w in s["weight"]] == [b - a for a, b in zip(times, times[1:])], f"{name}: weights")
    points = [r for r in rows if r["kind"] not in ("enter", "leave", "sample", "resolve")]
    x.same(f"{name}: markers", [(round(t * 1e6) + origin, plain(thread["stringArray"][n])) for t, n in zip(m["startTime"], m["name"])],
           [(r["time"], f"{r['kind']} {r['name']}") for r in points])
    x.same(f"{name}: values", [d["values"] for d, r in zip(m["data"], points) if r["kind"] in ("send", "recv", "coll_end", "marker")],
           [" ".join(f"{k}={v}" for k, v in r["attributes"].items() if k not in ("unit", "ordinal"))
            for r in points if r["kind"] in ("send", "recv", "coll_end", "marker")])


all_ = x.recordings()
for name, path in all_.items():
    profile = load(x.export(path, "firefox", f"{name}.json"))
    origin, rows = json.loads(x.tool("info", "--json", path).stdout)["first_ns"] or 0, x.dump(path)
    for t in profile["threads"]:
        same_thread(f"{name}, {t['name']}", t, [r for r in rows if r["location"] == t["tid"]], origin)
    x.check({t["tid"] for t in profile["threads"]} >= {r["location"] for r in rows}, f"{name}: all locations")
x.check(x.tool("export", all_["everything"], all_["given back"], "--to", "firefox", "-o", "both.json").returncode == 0 and
        len({t["pid"] for t in load(f"{x.work}/both.json")["threads"]}) == 2, "two processes")
part = load(x.export(all_["everything"], "firefox", "part.json", "--depth", "1", "--class", "region"))
x.check({t["stackTable"]["length"] for t in part["threads"] if t["samples"]["length"]} <= {2, 3} and
        not any(t["markers"]["length"] for t in part["threads"]), "a selection")
with open(f"{x.work}/one.evt", "wb") as f:
    f.write(evt_stream.stream(*evt_stream.nested(random.Random(7), 20, 2, 3)))
x.tool("replay", *["one.evt"] * 1000, "-o", "threads.fdr", "--buffer", "64M")
profile = load(x.export("threads.fdr", "firefox", "threads.json"))
x.check(len(profile["threads"]) == 1000 and all(t["samples"]["length"] == 40 for t in profile["threads"]), "a thousand locations")
x.fails_whole(all_["given back"], "firefox")

# ---- the profiler's own command ----

command = f"{x.SOURCE}/web/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js"
if not shutil.which("node") or not os.path.exists(command):
    print("note: no profiler-cli here (node, and `npm ci` in web/)")
    x.end()
env = os.environ | {"HOME": x.work, "PROFILER_CLI_SESSION_DIR": f"{x.work}/s"}
os.mkdir(f"{x.work}/s")


def profiler(*words):
    return subprocess.run(["node", command, *words, "--session", "t"], capture_output=True, text=True, check=False, env=env, timeout=100)


def answer(*words):
    """Its daemon may still be starting when `load` gives up."""
    for _ in range(100):
        done = profiler(*words, "--json")
        if done.returncode == 0:
            return json.loads(done.stdout)
    x.check(False, f"profiler-cli {words}", done.stdout, done.stderr)
    return {}


try:
    profiler("load", f"{x.work}/everything.json")
    threads = answer("thread", "list").get("threads", [])
    x.check(len(threads) == 4, "profiler-cli reads it", threads)
    for t in threads:
        if t["name"].startswith("samples"):
            continue
        x.check(t["markerCount"] == 5000, "markers", t["markerCount"])
        own = {f["name"]: f["selfSamples"] for f in answer("thread", "functions", "--include-idle", "--thread", t["threadHandle"]).get("functions", [])}
        thread = next(one for one in load(f"{x.work}/everything.json")["threads"] if one["tid"] == t["tid"])
        want = collections.Counter()
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            if stack is not None:
                want[thread["stringArray"][thread["funcTable"]["name"][thread["stackTable"]["frame"][stack]]]] += weight
        x.check(len(want) >= 5 and all(abs(own.get(n, 0) - w) < 1e-5 for n, w in want.items()), "own times", own, want)
finally:
    subprocess.run(["node", command, "stop", "t"], capture_output=True, check=False, env=env, timeout=100)
x.end()
