#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# What once misled readers of fdr's tables: time of thinned children, waiting that counts as work, a mean that hides two
# modes, calls cut at the edge of a window, a post-mortem of the living. And tables that fit, lists behind --all, colour
# and pager on terminals only, completion.
import json
import os
import pty
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import planted  # noqa: E402
from planted import check, fdr  # noqa: E402

work = tempfile.mkdtemp(prefix="fdr-answers-")


def run(*arguments, **environment):
    done = subprocess.run([fdr, *arguments], check=True, capture_output=True, text=True, env=os.environ | environment)
    return done.stdout


def record(name, threads, buffer="16M"):
    paths = []
    for i, t in enumerate(threads):
        paths.append(f"{work}/{name}.{i}.evt")
        with open(paths[-1], "wb") as f:
            f.write(t.bytes())
    run("replay", *paths, "--buffer", buffer, "-o", f"{work}/{name}.fdr")
    return f"{work}/{name}.fdr"


def steps(count):
    """`step` takes 60 ns itself, and its short and its long child 900 and 40,000."""
    t = planted.Thread([], 1)
    for _ in range(count):
        t.enter("step")
        t.work(60)
        t.call("short", t.around(900))
        t.call("long", t.around(40000))
        t.leave("step")
    return t


def tree():
    path = record("steps", [steps(60000)], "256K")
    node = next(n for n in json.loads(run("tree", "--json", path)) if n["name"] == "step")
    total = next(t for t in json.loads(run("stats", "--json", path)) if t["name"] == "step")
    share = total["exclusive_ns"] / total["inclusive_ns"]
    check(node["calls"] < 60000 and node["not_kept_ns"], "calls were thinned", node["calls"])
    check(node["exclusive_ns"] <= 1.1 * share * node["inclusive_ns"] + 0.011 * node["inclusive_ns"],
          "tree: time of children that are not kept is not the caller's own", node["exclusive_ns"], node["inclusive_ns"])
    children = sum(c["inclusive_ns"] for c in node["children"])
    check(node["exclusive_ns"] + node["not_kept_ns"] + children == node["inclusive_ns"], "tree: the sum is right")
    check("(not kept)" in run("tree", path), "tree: a row says so")
    whole = next(n for n in json.loads(run("tree", "--json", record("few", [steps(100)]))) if n["name"] == "step")
    check(not whole["not_kept_ns"] and whole["exclusive_ns"] == 6000, "tree: nothing changes where all is kept", whole)


def window():
    """A window of 10 us inside a call of 40 us: its time is cut, its length is not."""
    t = planted.Thread([])
    for _ in range(50):
        t.call("tick", 40000)
        t.work(1000)
    path = record("window", [t])
    row = json.loads(run("stats", "--events", "--json", "--from", "10us", "--to", "20us", path))[0]
    check(row["calls"] == 1 and row["min_ns"] == row["max_ns"] == 40000, "a window cuts no minimum", row)
    check(row["inclusive_ns"] == 10000 and row["histogram"][15] == 1, "a window cuts the time", row)


def stats():
    threads = [planted.Thread([], i) for i in range(2)]
    threads[1].names = threads[0].names
    for i in range(1000):
        for k, t in enumerate(threads):
            t.call("both", 30000 if i % 10 else 90000)
            t.call("wait_for_it" if k else "work", 60000)
    path = record("modes", threads)
    text = run("stats", path)
    row = next(line for line in text.splitlines() if "both" in line).split()
    head = next(line for line in text.splitlines() if "p99" in line).split()
    check(head[-4:-1] == ["p50", "p99", "max"], "p50 and p99 have columns", head)
    p50, p99 = float(row[9]), float(row[11])
    check(24 < p50 < 33 and 65 < p99 <= 90, "a mean hides two modes, p50 and p99 do not", row)
    by = {line.split()[-1]: line for line in run("stats", "--by", "location", path).splitlines()}
    check(re.search(r" 60\.000 ms +1 modes", by["modes.1.r0.t0"]) and " 0 ns  0 modes" in by["modes.0.r0.t0"].replace("   ", " "),
          "by location: waiting is told from working", by)
    longest = next(line for line in run("stats", "--longest", path).splitlines() if "work" in line and "wait" not in line)
    check("[longest +0." in longest and "modes.0" in longest, "when and where the longest call was", longest)
    rows = json.loads(run("stats", "--by", "time", "--json", path))
    both = next(r for r in rows if r["region"] == "both")
    check(len(both["slices"]) == 32 and abs(sum(s[0] for s in both["slices"]) - 2000) <= 16, "by time: equal slices, all calls", both)
    check("▇" in run("stats", "--by", "time", path) or "█" in run("stats", "--by", "time", path), "by time: a line for the eye")


def living():
    text = run("crash", f"{work}/modes.fdr")
    check("newest 50 events" not in text and "nothing died" in text, "no post-mortem of the living", text)


def tables():
    t = planted.Thread([])
    for i in range(100):
        t.call(f"a_function_with_quite_a_long_name_whose_end_tells_it_apart_{i}", 1000 + i)
    path = record("names", [t])
    lines = run("stats", path, COLUMNS="100").splitlines()
    rows = [line for line in lines if "function" in line]
    check(len(rows) == 40 and "# and 60 more rows: --all" in lines, "40 rows, the rest behind --all", lines[-1])
    check(all(len(line) <= 100 for line in rows) and ".." in rows[0] and "apart_99" in rows[0], "names lose their middle", rows[0])
    check(run("stats", "--all", path).count("a_function_with_quite_a_long_name_whose") == 100, "--all, and whole names in a pipe")
    info = run("info", f"{work}/steps.fdr")
    check("thinned" in info.split("reach")[0] and "depth 1 " not in info.split("\nledger")[1], "info: how far detail reaches comes first", info)
    check("were given back" not in info and "were given back" in run("info", "--all", f"{work}/steps.fdr"), "info: each reduction behind --all")


def paths():
    t = planted.Thread([])
    t.enter("outer")
    t.enter("middle")
    for i in range(20):
        t.call(f"leaf_{i}", 1000)
    t.leave("middle")
    t.leave("outer")
    lines = run("stats", "--by", "path", "--limit", "15", record("paths", [t])).splitlines()
    check("# ... is outer > middle" in lines and sum("... > leaf" in line for line in lines) == 15, "a common beginning is said once", lines)


def on_terminal(*arguments, **environment):
    """What fdr writes to a terminal, without a person at its input."""
    master, slave = pty.openpty()
    child = subprocess.Popen([fdr, *arguments, f"{work}/modes.fdr"], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL,
                             env={k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | environment)
    os.close(slave)
    text = b""
    while True:
        try:
            more = os.read(master, 65536)
        except OSError:
            break
        text += more
    child.wait()
    os.close(master)
    return text


def terminal():
    check(b"\033[1m" in on_terminal(), "colour on a terminal")
    check(b"\033" not in on_terminal(NO_COLOR="1"), "NO_COLOR")
    check("\033" not in run(f"{work}/modes.fdr"), "no colour in a pipe")
    for verb in ("info", "stats", "tree", "findings", "hang"):
        check(b"next" in on_terminal(verb).splitlines()[-1], f"{verb} says on a terminal what to ask next")
    check("next" not in run("stats", f"{work}/modes.fdr"), "no hint in a pipe")
    check("no messages" in run("messages", f"{work}/modes.fdr"), "no messages is an answer")


def completion():
    verbs = re.findall(r"^  (\w+) +\S", run("--help"), re.M)
    script = run("completion", "bash")
    done = subprocess.run(["bash", "-c", script + "\nCOMP_WORDS=(fdr f) COMP_CWORD=1\n_fdr\necho ${COMPREPLY[@]}\n"
                           "COMP_WORDS=(fdr stats --lo) COMP_CWORD=2\n_fdr\necho ${COMPREPLY[@]}"],
                          check=True, capture_output=True, text=True, cwd=work,
                          env=os.environ | {"PATH": os.path.dirname(fdr) + ":" + os.environ["PATH"]})
    check(done.stdout.splitlines() == ["findings few.0.evt few.fdr", "--longest --location"] or
          set(done.stdout.split()) >= {"findings", "--longest", "--location"}, "completion in bash", done)
    zsh = run("completion", "zsh")
    check(len(verbs) > 20 and all(f" {v}" in script or f"'{v}" in script for v in verbs) and all(f"'{v}:" in zsh for v in verbs),
          "completion knows every verb", verbs)
    check(subprocess.run([fdr, "completion", "tcsh"], capture_output=True).returncode == 64, "an unknown shell")


tree()
window()
stats()
living()
tables()
paths()
terminal()
completion()
planted.end(work)
