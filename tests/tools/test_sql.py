#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120 excuse=SQLite
# fdr sql: its tables say what fdr dump, fdr stats and fdr info say, of several recordings at once, too. Wrong queries are
# one line.
import collections
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402

if "sqlite" not in x.tool("version", "--build").stdout:
    print("skipped: this build has no SQLite")
    sys.exit(77)


def ask(*arguments):
    done = x.tool("sql", *arguments, "--json")
    x.check(done.returncode == 0, f"{arguments[-1]}", done.stderr)
    return json.loads(done.stdout)


program = x.compiled(x.PROGRAM)
one, two, empty = x.record(program, "200"), x.record(program, "4000", FDR_BUFFER="256K"), x.record(program)
want = []
for i, path in enumerate((one, two)):
    want += [(i + 1, r["location"], r["time"], r["depth"], r["id"], r["name"]) for r in x.dump(path, "--class", "region")
             if r["kind"] == "enter"]
rows = ask(one, two, "select recording, location, enter_ns, depth, region, name from calls")
got = [(r["recording"], r["location"], r["enter_ns"], r["depth"], r["region"]) for r in rows]
x.check(sorted(got) == sorted(w[:5] for w in want), f"calls: {len(want)}", len(got))
rows = ask(one, "select name, count(*) as n, sum(duration_ns) as time, sum(duration_ns is null) as open from calls group by name")
count = collections.Counter(w[5] for w in want if w[0] == 1)
x.check(sum(r["n"] for r in rows) == sum(count.values()) and {r["n"] for r in rows} == set(count.values()), "calls by name", rows)
x.check(sum(r["open"] for r in rows) == 2, "two calls are open, without a duration", rows)

totals = json.loads(x.tool("stats", "--json", "--by", "region", two).stdout)
rows = ask(two, "select id, sum(calls) as calls, sum(exclusive_ns) as own, min(min_ns) as least from totals "
                "where class = 'region' group by id order by id")
got = {r["id"]: (r["calls"], r["own"], r["least"]) for r in rows}
x.check(got == {t["id"]: (t["calls"], t["exclusive_ns"], t["min_ns"]) for t in totals}, "totals", got, totals)

info = json.loads(x.tool("info", "--json", one).stdout)
rows = ask(one, "select id, tid, from_ns, to_ns from locations order by id")
x.check([tuple(r.values()) for r in rows] == [(l["id"], l["tid"], l["from_ns"], l["to_ns"]) for l in info["locations"]],
        "locations", rows)
rows = ask(one, "select r.id, count(*) as n from regions r join calls c on c.region = r.id group by r.id")
x.check(sum(r["n"] for r in rows) == sum(count.values()), "a join of calls and regions", rows)
x.check(ask(empty, "select * from calls") == [], "an empty recording has no calls")

done = subprocess.run([x.FDR, "sql", one], input="select count(*)\nfrom regions;select 1 as a;", capture_output=True, text=True, check=False)
x.check(done.returncode == 0 and done.stdout.splitlines()[0] == "count(*)" and done.stdout.endswith("a\n1\n"),
        "queries from standard input", done.stdout, done.stderr)
for query in ("select nothing from calls", "selec t", "insert into calls values (1)"):
    done = x.tool("sql", one, query)
    x.check(done.returncode == 2 and len(done.stderr.splitlines()) == 1, f"refused: {query}", done.stderr)
x.end()
