#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=400 excuse=MPI
"""The tree of fdr hang over real ranks, with each installed MPI: below the open regions are the native functions, folded
over the ranks; of ranks without a stack it says why, once. More ranks than stacks are unwound, and more lines than shown."""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from mpi_runs import BUILD, FDR, SOURCE, bad, compiled, environment, in_turn, installed, ranks, with_each  # noqa: E402

PATIENCE = 100
if not re.search(r"^with:.*\bdw\b", subprocess.run([FDR, "version", "--build"], capture_output=True, text=True, check=False).stdout, re.M):
    print("skipped: no stacks without libdw")
    sys.exit(77)


def check(good, what, *shown):
    if not good:
        bad.append(" ".join(map(str, (what, *shown))))


def hang(folder, *options):
    return subprocess.run([FDR, "hang", "--after", "1s", *options, folder], capture_output=True, text=True, check=False).stdout


def spread(ranges):
    return [r for low, high in ranges for r in range(low, high + 1)]


def until_all_stand(folder, count):
    """The verdict, once all ranks but the last one stand in "relax", and that one waits for them."""
    deadline, seen = time.monotonic() + PATIENCE, None
    while time.monotonic() < deadline:
        text = hang(folder, "--json")
        seen = json.loads(text) if text else None
        threads = [t for p in seen["processes"] for t in p["threads"]] if seen else []
        standing = [t for t in threads if t["path"][-1:] == ["relax"] and t["kernel_state"] == "S"]
        if len(standing) == count - 1 and any(t["path"] == ["MPI_Barrier"] for t in threads):
            return seen
        time.sleep(0.3)
    check(False, f"{count} ranks do not stand", seen)
    return None


def paths_of(seen):
    """Path of names, those of functions with "# " -> ranks; of each node. Counts are those of the ranks."""
    path, found = [], {}
    for n in seen["tree"]:
        path[n["depth"]:] = [("# " if n["native"] else "") + n["name"]]
        found[tuple(path)] = spread(n["ranks"])
        check(n["count"] == len(spread(n["ranks"])), "count of a node", n)
    return found


def run(what, names, program, count, *arguments):
    """Calls what(folder, the verdict) while the job stands."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, FDR_FINALIZE=None, FDR_BUFFER="1M")
        job = subprocess.Popen(ranks(names, count, program, *arguments), env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        seen = until_all_stand(folder, count)
        if seen:
            what(f"{names[1]} -n {count}", folder, seen, count)
        for f in glob.glob(f"{folder}/*.live.fdr"):
            with contextlib.suppress(ProcessLookupError):  # the launcher ends the others
                os.kill(int(re.search(r"\.(\d+)(?:\.r\d+)?\.\d+\.live", f)[1]), signal.SIGKILL)
        job.send_signal(signal.SIGTERM)
        job.wait(timeout=60)


def folded(what, folder, seen, count):
    last, found = count - 1, paths_of(seen)
    even, odd = list(range(0, last, 2)), list(range(1, last, 2))
    check(found.get(("solve", "relax")) == list(range(last)), what, "regions", found)
    below = {p[2:]: r for p, r in found.items() if len(p) > 2}
    check(any(p[-1].endswith("nanosleep") and r == even for p, r in below.items()), what, "the sleep of even ranks", below)
    check(any(p[-1].endswith("read") and r == odd for p, r in below.items()), what, "the read of odd ranks", below)
    check(all(name.startswith("# ") and name not in ("# solve", "# relax", "# main") for p in below for name in p), what,
          "functions inside of the innermost region only, innermost last", below)
    check([(g["why"], spread(g["ranks"])) for g in seen["without_stack"]] == [("the thread runs, and fdr stops none", [last])]
          or ("MPI_Barrier",) in {p[:1] for p in found if len(p) > 1}, what, "the rank that waits", seen["without_stack"])
    check(seen["tree_left_out"] == 0, what, "nothing is left out")
    text = hang(folder)
    lines = [line.split() for line in text.splitlines()]
    check([str(last), "relax", f"(0-{last - 1})"] in lines, what, "regions as text", text)
    check(re.search(rf"^ +{len(odd)} +# .*read   \(1, 3", text, re.M), what, "functions as text", text)
    check(text.count("without a native stack: ") == len(seen["without_stack"]), what, "reasons as text", text)
    # files as a kill would leave them: no stacks, said once
    with tempfile.TemporaryDirectory() as left:
        for f in glob.glob(f"{folder}/*.live.fdr"):
            shutil.copy(f, left)
        for f in glob.glob(f"{left}/*.live.fdr"):  # of no process here
            os.rename(f, f.replace(".live.fdr", ".copied.fdr"))
        files = json.loads(hang(left, "--json"))
        check(not any(n["native"] for n in files["tree"]) and [(g["why"], spread(g["ranks"])) for g in files["without_stack"]] ==
              [("the file has no stacks", list(range(count)))], what, "copies", files["tree"], files["without_stack"])
        text = hang(left)
        check(text.count("without a native stack") == 1 and "# " not in text.split("evidence")[0], what, "copies as text", text)


def bounded(what, folder, seen, count):
    """Of 18 ranks 16 stacks are unwound; 8 regions of each are more than the text shows."""
    native = {r for n in seen["tree"] if n["native"] for r in spread(n["ranks"])}
    said = {g["why"]: spread(g["ranks"]) for g in seen["without_stack"]}
    unread = said.get("fdr unwinds stacks of 16 ranks", [])
    check(15 <= len(native) <= 16 and unread and sorted([*native, *(r for ranks_ in said.values() for r in ranks_)]) ==
          list(range(count)), what, "each rank has a stack or a reason", native, said)
    sleeps = {r for n in seen["tree"] if n["name"].endswith("nanosleep") for r in spread(n["ranks"])}
    check(sleeps == {r for r in native if r % 2 == 0}, what, "functions have names", seen["tree"])
    text = hang(folder)
    more = re.search(r"^ +\.\.\. and (\d+) more: --json$", text, re.M)
    tree = text.split("regions that are open")[1].split("... and")[0].splitlines()[1:-1]
    check(more and int(more[1]) > 40 and len(tree) == 40, what, "lines are left out, and counted", text)
    check(("rank 3, step 0", "rank 3, step 1") in paths_of(seen), what, "--json has all")


def with_library(names, work):
    program = compiled(names, "sleeping_ranks.c", work, "-O1", f"-I{SOURCE}/include", f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib",
                       "-Wl,--no-as-needed", "-lfdr")
    run(folded, names, program, 6)
    for count in in_turn(names, [18] + [0] * (len(installed()) - 1)):
        if count:
            run(bounded, names, program, count, "apart")


with_each(with_library)
