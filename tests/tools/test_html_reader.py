#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120 excuse=node
# The reader in the committed bundle (web/bundle/reader.wasm) decodes the calls that `fdr dump` shows, all of them: of a
# recording in which everything is kept, and of one that gave events back. A bundle older than the format fails here.
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import evt_stream  # noqa: E402

source, fdr = os.environ["FDR_SOURCE"], os.environ["FDR_BUILD"] + "/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
if not shutil.which("node"):
    print("skipped: no node")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-html-reader-")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=work).stdout


def dumped(recording):
    """Calls as `fdr dump` shows them: {(location, depth, enter, duration, region)}."""
    calls, path = [], {}
    for line in run(fdr, "dump", "--tsv", recording).splitlines()[1:]:
        location, time, kind, depth, region, name, attributes = line.split("\t")
        stack = path.setdefault(location, [])
        if kind == "enter":
            stack.append((int(time), int(region)))
        elif kind == "leave":
            start, region = stack.pop()
            calls.append((int(location), int(depth), start, int(time) - start, region))
    return sorted(calls)


def decoded(recording):
    info = json.loads(run(fdr, "info", "--json", recording))
    base, span = info["first_ns"], info["last_ns"] - info["first_ns"]
    ids = [str(l["id"]) for l in info["locations"]]
    page = run("node", f"{source}/tests/tools/html_reader.mjs", f"{source}/web/bundle/reader.wasm", recording, str(base), str(span), *ids)
    rows = [[int(float(n)) for n in line.split()] for line in page.splitlines()]
    return sorted((r[0], r[1], r[2] + base, r[3], r[4]) for r in rows)


def compare(name, calls, buffer):
    numbers = random.Random(7)
    for i in range(2):
        words, dts = evt_stream.nested(numbers, calls, 5, 30)
        with open(f"{work}/{i}.evt", "wb") as f:
            f.write(evt_stream.stream(words, dts, (b"a", b"b", b"c", b"d", b"e")))
    run(fdr, "replay", "0.evt", "1.evt", "--buffer", buffer, "-o", f"{name}.fdr")
    want, have = dumped(f"{name}.fdr"), decoded(f"{name}.fdr")
    print(f"{name}: {len(want)} calls dumped, {len(have)} in the page")
    assert want == have, [pair for pair in zip(want, have) if pair[0] != pair[1]][:3]
    return len(want)


try:
    assert compare("whole", 3000, "4M") == 6000
    assert 1000 < compare("reduced", 200000, "1M") < 400000
finally:
    shutil.rmtree(work)
