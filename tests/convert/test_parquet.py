#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=200 excuse=DuckDB
# What `fdr export --to parquet` writes is read by DuckDB: the events of fdr dump, whatever their names hold, of damaged
# recordings, of none, one and a thousand locations, in one and in several row groups.
import json
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import evt_stream  # noqa: E402
import exported as x  # noqa: E402

if not shutil.which("node") or not os.path.isdir(f"{x.SOURCE}/web/node_modules/@duckdb/node-api"):
    print("skipped: no DuckDB here (node, and `npm ci` in web/)")
    sys.exit(77)


def ask(path, query):
    done = subprocess.run(["node", f"{x.SOURCE}/tests/convert/duckdb.mjs", path, query], capture_output=True, text=True, check=False)
    x.check(done.returncode == 0, f"DuckDB reads {os.path.basename(path)}", done.stderr[-500:])
    return [[json.loads(v) for v in line.split("\t")] for line in done.stdout.splitlines()]


all_ = x.recordings()
for name, path in all_.items():
    out, rows = x.export(path, "parquet", f"{name}.parquet"), x.dump(path)
    got = ask(out, "select location, time_ns, kind, depth, case when kind = 'sample' then '' else name end from events")
    x.same(f"{name}: events", sorted(map(tuple, got)), sorted((r["location"], r["time"], r["kind"], r["depth"],
                                                                "" if r["kind"] == "sample" else r["name"]) for r in rows))
    got = ask(out, "select location, time_ns, kind, values from events where kind in ('send', 'recv', 'coll_end', 'marker')")
    want = [(r["location"], r["time"], r["kind"], " ".join(f"{k}={v}" for k, v in r["attributes"].items() if k not in ("unit", "ordinal")))
            for r in rows if r["kind"] in ("send", "recv", "coll_end", "marker")]
    x.same(f"{name}: values", sorted(map(tuple, got)), sorted(want))
columns = [["recording", "INTEGER"], ["location", "BIGINT"], ["thread", "VARCHAR"], ["time_ns", "BIGINT"], ["kind", "VARCHAR"],
           ["depth", "INTEGER"], ["name", "VARCHAR"], ["duration_ns", "BIGINT"], ["values", "VARCHAR"]]
x.check(ask(f"{x.work}/nothing.parquet", "select column_name, column_type from (describe events)") == columns, "columns, also of no rows")
both = x.tool("export", all_["everything"], all_["given back"], "--to", "parquet", "-o", "both.parquet")
got = ask(f"{x.work}/both.parquet", "select recording, min(thread), count(*) from events where kind <> 'sample' group by recording order by 1")
x.check(both.returncode == 0 and [(r[0], r[2]) for r in got] ==
        [(i, sum(r["kind"] != "sample" for r in x.dump(all_[n]))) for i, n in ((1, "everything"), (2, "given back"))], "two recordings", got)

words, dts = evt_stream.nested(random.Random(7), 100000, 300, 20)
streams = {"many.evt": evt_stream.stream(words, dts, tuple(b"function %d" % i for i in range(300))),
           "one.evt": evt_stream.stream(*evt_stream.nested(random.Random(7), 20, 2, 3))}
for name, data in streams.items():
    with open(f"{x.work}/{name}", "wb") as f:
        f.write(data)
x.tool("replay", "many.evt", "-o", "many.fdr")
got = ask(x.export("many.fdr", "parquet", "many.parquet"), "select count(*), count(distinct name), sum(duration_ns) from events where kind = 'leave'")
inclusive = sum(t["inclusive_ns"] for t in json.loads(x.tool("stats", "--json", "many.fdr").stdout))
x.check(got == [[100000, 300, inclusive]], "two row groups, and more than 256 names", got, inclusive)
x.tool("replay", *["one.evt"] * 1000, "-o", "threads.fdr", "--buffer", "64M")
got = ask(x.export("threads.fdr", "parquet", "threads.parquet"), "select count(distinct location), count(*) from events")
x.check(got == [[1000, 40000]], "a thousand locations", got)
x.fails_whole(all_["given back"], "parquet")
x.end()
