#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sql.py [--instructions] [CALLS]: queries of `fdr sql` over one recording of that many calls (10 million).

Prints "query <tab> seconds" for each: processor time of the whole command, the best of three. --instructions: counts
instructions instead, by callgrind, over a tenth of the calls; "query <tab> instructions a call". For machines with
other work. FDR_BUILD: the build; default build/release."""
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FDR = os.path.join(os.environ.get("FDR_BUILD", os.path.join(ROOT, "build", "release")), "bin", "fdr")
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import evt_stream  # noqa: E402

QUERIES = [
    "select name, count(*), sum(duration_ns) from calls group by name",
    "select region, count(*), sum(duration_ns), max(exclusive_ns) from calls group by region",
    "select location, depth, count(*), sum(duration_ns) from calls group by location, depth",
    "select sum(duration_ns) from calls",
    "select count(*) from calls",
]
ONE = 500000  # calls of the stream, which is repeated


def record(folder, calls):
    words, dts = evt_stream.nested(random.Random(7), min(ONE, calls), 40, 30)
    stream, path = os.path.join(folder, "calls.evt"), os.path.join(folder, "calls.fdr")
    with open(stream, "wb") as f:
        f.write(evt_stream.stream(words, dts, tuple(b"function_%d" % i for i in range(40))))
    subprocess.run([FDR, "replay", stream, "--repeat", str(max(1, calls // ONE)), "--buffer", f"{max(16, calls // 20000)}M", "-o", path],
                   check=True, stdout=subprocess.DEVNULL)
    return path


def seconds(command):
    def used():
        r = resource.getrusage(resource.RUSAGE_CHILDREN)
        return r.ru_utime + r.ru_stime
    best = None
    for _ in range(3):
        before = used()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(used() - before, best or 1e9)
    return best


def instructions(command, folder):
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", *command], check=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def main():
    words = [w for w in sys.argv[1:] if w != "--instructions"]
    calls, counting = int(words[0]) if words else 10000000, len(words) < len(sys.argv) - 1
    with tempfile.TemporaryDirectory(prefix="fdr-bench-sql-") as folder:
        shown = calls // 10 if counting else calls
        path = record(folder, shown)
        base = instructions([FDR, "sql", path, "select 1 as one"], folder) if counting else 0
        for query in QUERIES:
            command = [FDR, "sql", path, query]
            value = (instructions(command, folder) - base) / shown if counting else seconds(command)
            print(f"{query}\t{value:.2f}", flush=True)


if __name__ == "__main__":
    main()
