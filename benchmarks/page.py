#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of a full snapshot in figures: its size and the time of `fdr html`; in Chromium the first screen, the
timeline, frames of a stated script of zooms and pans, the time until a place is exact, and the memory of the tab; the
bundle; and calls that the page's reader decodes against `fdr dump`, on every stream.

    page.py [--rounds N] [--buffer SIZE] [--file FILE] [--no-streams] [--json FILE]

The snapshot is FILE, or all streams of FDR_CORPUS replayed into a buffer of 64M, again and again until it is full. It
takes some three minutes. FDR_BUILD: a release build. Without node, Chromium or playwright-core (`npm ci` in web/) only
what needs no browser is measured."""
import argparse
import glob
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("FDR_SOURCE", os.path.dirname(HERE))
BUILD = os.environ.get("FDR_BUILD", os.path.join(SOURCE, "build/release"))
CORPUS = os.environ.get("FDR_CORPUS", os.path.join(SOURCE, "../shared/corpus"))
FDR = os.path.join(BUILD, "bin/fdr")
# name, unit, at most, aim
ROWS = (("page / recording", "", 1.3, 1.2), ("fdr html", "s", 8, 5), ("first screen", "s", 1, 0.3), ("timeline drawn", "s", 3, 1.5),
        ("zoom and pan, work for a frame, p95", "ms", 50, 16), ("exact after, longest", "ms", 500, 300),
        ("tab", "MiB", 1024, 700), ("bundle, gzipped", "KB", 200, 120))


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def full_snapshot(work, buffer):
    streams = sorted(glob.glob(f"{CORPUS}/*.evt.zst"))
    if not streams:
        sys.exit("page.py: no event streams in FDR_CORPUS; name a recording with --file")
    path = f"{work}/full.fdr"
    run(FDR, "replay", *streams, "--repeat", "3", "--buffer", buffer, "-o", path)
    return path


def timed_page(path, out):
    begin = time.monotonic()
    run(FDR, "html", path, "--size", "2G", "-o", out)
    return time.monotonic() - begin


def bundle_bytes():
    names = ("page.js", "page.css", "worker.js", "reader.wasm")
    return sum(len(gzip.compress(open(f"{SOURCE}/web/bundle/{n}", "rb").read(), 9)) for n in names)


def in_browser(page):
    """Figures of one visit, or why there are none."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    for what, there in (("chromium", browser), ("node", shutil.which("node")),
                        ("playwright-core", os.path.isdir(f"{SOURCE}/web/node_modules/playwright-core"))):
        if not there:
            return f"no {what}"
    return json.loads(run("node", f"{HERE}/page.mjs", browser, page))


def same_calls(work):
    """Streams whose calls the page's reader decodes as `fdr dump` does, and those that it does not."""
    good, bad = 0, []
    for stream in sorted(glob.glob(f"{CORPUS}/*.evt.zst")):
        path = f"{work}/one.fdr"
        run(FDR, "replay", stream, "--buffer", "1M", "-o", path)
        info = json.loads(run(FDR, "info", "--json", path))
        dumped = sum(line.split("\t", 3)[2] == "enter" for line in run(FDR, "dump", "--tsv", path).splitlines()[1:])
        locations = [str(l["id"]) for l in info["locations"]]
        base = info["first_ns"]
        lines = run("node", f"{SOURCE}/tests/tools/html_reader.mjs", f"{SOURCE}/web/bundle/reader.wasm", path, str(base),
                    str(info["last_ns"] - base + 1), *locations).splitlines()
        if len(lines) == dumped:
            good += 1
        else:
            bad.append(f"{os.path.basename(stream)}: {dumped} dumped, {len(lines)} decoded")
    return good, bad


def spread(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g} .. {max(values):.3g})" if len(values) > 1 else f"{values[0]:.3g}"


def measure(args, work):
    path = args.file or full_snapshot(work, args.buffer)
    figures = {name: [] for name, *_ in ROWS}
    figures["bundle, gzipped"].append(bundle_bytes() / 1000)
    visits, why = [], None
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        figures["fdr html"].append(timed_page(path, f"{work}/page.html"))
        figures["page / recording"].append(os.path.getsize(f"{work}/page.html") / os.path.getsize(path))
        seen = in_browser(f"{work}/page.html")
        if isinstance(seen, str):
            why = seen
            continue
        visits.append(seen)
        for name, key in (("first screen", "first_s"), ("timeline drawn", "timeline_s"), ("exact after, longest", "exact_ms"),
                          ("zoom and pan, work for a frame, p95", "frame_p95_ms"), ("tab", "tab_mib")):
            figures[name].append(seen[key])
    return path, figures, visits, why


def main():
    parser = argparse.ArgumentParser(description="The page of a full snapshot in figures.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--buffer", default="64M")
    parser.add_argument("--file")
    parser.add_argument("--no-streams", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="fdr-bench-page-")
    try:
        path, figures, visits, why = measure(args, work)
        print(f"recording: {os.path.getsize(path) / 2**20:.1f} MiB; load {os.getloadavg()[0]:.1f}; {args.rounds} rounds: median (least .. most)\n")
        print("| measure | result | at least | aim |\n|---|---|---|---|")
        for name, unit, most, aim in ROWS:
            value = f"{spread(figures[name])} {unit}".strip() if figures[name] else f"not measured: {why}"
            print(f"| {name} | {value} | <= {most} {unit} | <= {aim} {unit} |".replace("  ", " "))
        for v in visits[:1]:
            print(f"\nframes of the script: {v['frames']}, interval p95 {v['interval_p95_ms']:.1f} ms; unpacked after {v['loaded_s']:.2f} s")
        if not args.no_streams and shutil.which("node"):
            good, bad = same_calls(work)
            print(f"calls as fdr dump: {good} of {good + len(bad)} streams", *bad, sep="\n")
        if args.json:
            with open(args.json, "w") as f:
                json.dump({"figures": figures, "visits": visits}, f, indent=1)
    finally:
        shutil.rmtree(work)


main()
