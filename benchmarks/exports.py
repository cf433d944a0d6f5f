#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""exports.py [--buffer SIZE] [--json FILE]: events a second and memory of each exporter (bench_export), and the queries
of sql.py. The recording is all streams of FDR_CORPUS, replayed into 64M three times over. Processor time of one core, the
best of three. FDR_BUILD: a release build."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import page  # noqa: E402

# million events a second at least, aim; MiB at most
BOUNDS = {"otf2": (3, 5, 200), "perfetto": (3, 5, 200)}


def formats():
    return [f["name"] for f in json.loads(page.run(page.FDR, "export", "--list", "--json"))]


def measure(name, path, work):
    bench = os.path.join(page.BUILD, "benchmarks/bench_export")
    done = subprocess.run([bench, "-d", work, name, path], capture_output=True, text=True)
    if done.returncode:
        return {"format": name, "error": done.stderr.strip()[-200:]}
    events, seconds, written, memory = done.stdout.strip().split("\t")[2:]
    return {"format": name, "millions": int(events) / float(seconds) / 1e6, "mib": float(memory), "bytes": int(written) / int(events)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--buffer", default="64M")
    parser.add_argument("--json")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fdr-bench-exports-") as work:
        path = page.full_snapshot(work, a.buffer)
        rows = [measure(name, path, work) for name in formats()]
    print("| format | million events a second | MiB | bytes an event | bounds |\n|---|---|---|---|---|")
    for r in rows:
        if "error" in r:
            print(f"| `{r['format']}` | {r['error']} | | | |")
            continue
        bounds = "at least {}, aim {}; at most {} MiB".format(*BOUNDS[r["format"]]) if r["format"] in BOUNDS else ""
        print(f"| `{r['format']}` | {r['millions']:.2f} | {r['mib']:.0f} | {r['bytes']:.1f} | {bounds} |")
    queries = [q.split("\t") for q in page.run(sys.executable, f"{HERE}/sql.py").splitlines()]
    print("\n| query over 10 million calls | s |\n|---|---|")
    for query, seconds in queries:
        print(f"| `{query}` | {seconds} |")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"formats": rows, "queries": queries}, f)
    return any("error" in r for r in rows)


if __name__ == "__main__":
    sys.exit(main())
