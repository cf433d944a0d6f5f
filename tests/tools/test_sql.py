#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=200 excuse=SQLite
# fdr sql: its tables say what fdr dump, fdr stats, fdr info and fdr messages say, of several recordings at once, too.
# Conditions that the reader takes over, and groups, change no result. Wrong queries are one line.
import collections
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402

if "sqlite" not in x.tool("version", "--build").stdout:
    print("skipped: this build has no SQLite")
    sys.exit(77)


def ask(*arguments):
    done = x.tool("sql", *arguments, "--json")
    x.check(done.returncode in (0, 1), f"{arguments[-1]}", done.stderr)
    return json.loads(done.stdout)


def table(query, *paths):
    return [tuple(r.values()) for r in ask(*paths, query)]


def tables(queries, *paths):
    """The results of many queries by one process."""
    done = subprocess.run([x.FDR, "sql", *paths, "--json"], input=";\n".join(queries) + ";\n", capture_output=True, text=True,
                          errors="surrogateescape", check=False)
    x.check(done.returncode in (0, 1), f"{len(queries)} queries", done.stderr)
    results, at, text = [], 0, done.stdout
    while at < len(text.rstrip()):
        rows, at = json.JSONDecoder().raw_decode(text, at)
        results.append([tuple(r.values()) for r in rows])
        at += 1
    x.check(len(results) == len(queries), "each has a result", len(results))
    return results


def calls_of(path):
    """(location, enter, duration or None, own time or None, depth, region, caller) of each call of fdr dump."""
    stacks, rows = collections.defaultdict(list), []
    for r in x.dump(path, "--class", "region"):
        stack = stacks[r["location"]]
        if r["kind"] == "enter":
            stack.append([r, 0])
            continue
        e, inside = stack.pop()
        over = "repaired" not in r["attributes"]
        time = r["time"] - e["time"]
        caller = stack[-1][0]["name"] if stack else None
        region = None if e["attributes"].get("reduced") else e["id"]
        rows.append((e["location"], e["time"], time if over else None, time - inside if over else None, e["depth"], region, caller))
        if stack:
            stack[-1][1] += inside if "reduced" in e["attributes"] else time
    return rows


def sorted_rows(rows):
    return sorted(rows, key=repr)


def damaged_elsewhere():
    """Every second bin of a quarter of the file is bad: calls without parents, in the middle and at the ends."""
    for quarter in range(1, 4):
        with open(all_["given back"], "rb") as f:
            data = bytearray(f.read())
        for at in range(len(data) * quarter // 4, len(data) * (quarter + 1) // 4, 8209):
            data[at] ^= 16
        path = f"{x.work}/damaged{quarter}.fdr"
        with open(path, "wb") as f:
            f.write(data)
        yield path


all_ = x.recordings()
one, two, empty = all_["everything"], all_["given back"], all_["nothing"]
CALLS = "select location, enter_ns, duration_ns, exclusive_ns, depth, region, caller from calls"
for name, path in all_.items():
    got, want = table(CALLS, path), calls_of(path)
    x.same(f"{name}: calls", sorted_rows(g[:6] for g in got), sorted_rows(w[:6] for w in want))
    got, want = [g[6] for g in sorted_rows(got)], [w[6] for w in sorted_rows(want)]
    x.check([g is None for g in got] == [w is None for w in want], f"{name}: callers", got[:3])
    points = [r for r in x.dump(path) if r["kind"] not in ("enter", "leave", "sample")]
    for t, kinds, columns in (
            ("messages", ("send", "recv"), "kind, peer, tag, comm, bytes"), ("metrics", ("metric",), "'metric'"),
            ("collectives", ("coll_begin", "coll_end"), "'coll_' || phase"), ("markers", ("marker",), "'marker'"),
            ("events", ("event",), "'event'"), ("io", ("io_begin", "io_end"), "'io_' || phase")):
        got = table(f"select location, time_ns, {columns} from {t}", path)
        want = [(r["location"], r["time"], r["kind"]) + (tuple(int(r["attributes"][k]) for k in ("peer", "tag", "comm", "bytes"))
                if t == "messages" else ()) for r in points if r["kind"] in kinds]
        x.same(f"{name}: {t}", sorted(got), sorted(want))
for path in [*all_.values(), *damaged_elsewhere()]:
    # conditions that the reader takes over, against the same ones that only SQLite checks
    first = table("select coalesce(min(enter_ns), 0) + 50000 from calls", path)[0][0]
    wheres = ("location = 0", "depth = 2", "depth >= 2 and depth < 3", f"enter_ns > {first}", f"enter_ns <= {first}",
              "region = 2", "region = 70000", "location = -1", "recording = 1", "recording = 2", "rank = 0", "depth = 1.5",
              f"enter_ns between {first - 20000} and {first}", "region = null", "location = '0'")
    queries = []
    for where in wheres:
        for columns in ("location, enter_ns, duration_ns", "enter_ns, exclusive_ns, caller is null"):
            plain = where
            for column in ("location", "depth", "enter_ns", "region", "recording", "rank"):
                plain = plain.replace(column, f"+{column}")
            queries += [f"select {columns} from calls where {w} order by +enter_ns, +depth" for w in (where, plain)]
    results = tables(queries, path)
    for i in range(0, len(queries), 2):
        if results[i] != results[i + 1]:
            x.check(False, queries[i], len(results[i]), len(results[i + 1]))
    x.check(sum(map(bool, results)) > len(queries) / 4 or path == empty, "most conditions have rows")
    for key in ("name", "region"):
        more = "count(*), sum(duration_ns), min(exclusive_ns), sum(location), max(rank), sum(recording), count(caller)"
        got = table(f"select {key}, {more} from calls group by {key}", path, one)
        want = table(f"select {key} || '' as k, {more} from calls group by k", path, one)
        x.check(len(got) == len(want) and sorted_rows(g[1:] for g in got) == sorted_rows(w[1:] for w in want),
                f"group by {key}", got[:2], want[:2])
        x.check(table(f"select distinct {key} from calls order by {key}", path) ==
                table(f"select distinct {key} from calls order by +{key}", path), f"order by {key}")

# orders that the table has by itself, against SQLite's own; ranks not in order, one not known, names that are not UTF-8
NAMES = r"""
#include <fdr/fdr.h>
#include <stdio.h>
int main(void)
{
    static const char *const name[] = {"a\xff", "a\xfe\x80", "a\xfe", "a\xf0\x9f\x98\x80", "a", "b"};
    fdr_init(NULL);
    for (unsigned i = 0; i < 600; i++) {
        fdr_region r = fdr_region_define(name[i % 6], NULL, 0);
        fdr_enter(r);
        fdr_leave(r);
    }
    fdr_snapshot("now");
    puts(fdr_last_snapshot());
}
"""
several = [one]
for source, rank in ((x.record(x.compiled(NAMES, "names")), 3), (one, 0), (one, 1), (one, 3)):
    several.append(f"{x.work}/of.r{rank}.{len(several)}.fdr")
    shutil.copy(source, several[-1])
ORDERS = ("location, depth", "depth desc, location", "name, depth", "name desc, region", "rank, name", "rank desc", "recording, location",
          "recording desc, location", "location", "location desc", "recording, rank, location desc", "caller, name", "rank, recording, depth",
          "depth, depth desc", "recording, location, depth, region, name, caller, rank")
queries = []
for order in ORDERS:
    columns = [k.split()[0] for k in order.split(", ")]
    for mark in ("", "+"):
        keys, by = (", ".join(mark + k for k in keys) for keys in (dict.fromkeys(columns), order.split(", ")))
        queries += [f"select {', '.join(columns)}, count(*), sum(duration_ns), sum(enter_ns), sum(rank) from calls group by {keys} order by {by}",
                    f"select {', '.join(columns)} from calls where recording <> 4 order by {by} limit 5000"]
for paths in (several, [one]):
    results = tables(queries, *paths)
    for i in range(0, len(queries), 4):
        for k in (i, i + 1):
            x.check(results[k] and results[k] == results[k + 2], queries[k], len(results[k]), len(results[k + 2]))

rows = ask(one, two, "select recording, count(*) as n from calls group by recording")
x.check([r["n"] for r in rows] == [len(calls_of(one)), len(calls_of(two))], "two recordings", rows)
for path in (one, two):
    totals = json.loads(x.tool("stats", "--json", "--by", "region", path).stdout)
    rows = table("select id, sum(calls), sum(exclusive_ns), min(min_ns) from totals where class = 'region' group by id order by id", path)
    x.same("totals", rows, sorted((t["id"], t["calls"], t["exclusive_ns"], t["min_ns"]) for t in totals))
    info = json.loads(x.tool("info", "--json", path).stdout)
    for t, columns in (("locations", ("id", "tid", "from_ns", "to_ns")),
                       ("ledger", ("location", "class", "depth", "presented", "kept", "filtered", "reduced", "lost")),
                       ("reductions", ("location", "time_ns", "step", "what", "events", "bytes", "from_ns", "to_ns"))):
        rows = table(f"select {', '.join(columns)} from {t}", path)
        x.same(t, rows, [tuple(r[k] for k in columns) for r in info[t]])
    x.check(table("select buffer_bytes, pid from recordings", path) == [(info["buffer_bytes"], info["pid"])], "recordings")
    weights = sum(int(r["attributes"]["weight"]) for r in x.dump(path) if r["kind"] == "sample")
    x.check(table("select total(weight) from samples", path) == [(weights,)], f"samples of weight {weights}")
x.check(table("select count(*) from samples where path like '%busy%'", one)[0][0] > 0, "samples have paths")
ODD = r"""
#include <fdr/fdr.h>
#include <stddef.h>
#include <stdio.h>
int main(void)
{
    static const struct fdr_field field[] = {{"gr\xc3\xb6\xc3\x9f" "e", FDR_U32, 0}, {"a\"b\\\n", FDR_U32, 4}};
    fdr_init(NULL);
    fdr_event(fdr_event_define("odd", field, 2), (const uint32_t[]){7, 9});
    fdr_snapshot("now");
    printf("%s\n", fdr_last_snapshot());
    return 0;
}
"""
[row] = json.loads(x.tool("sql", x.record(x.compiled(ODD, "odd")), "--json", "select fields from events where name = 'odd'").stdout)
x.check(json.loads(row["fields"]) == {"größe": 7, 'a"b\\\n': 9}, "names of fields in JSON", row)
rows = table("select sum(fields ->> 'balance'), max(fields ->> 'count') from events where name like 'residual%'", one)
x.check(rows == [(2 * sum(-5 - i for i in range(200)), 199)], "fields of events", rows)
rows = table("select sum(calls), max(greatest) from totals where name = 'load'", one)
x.check(rows == [(400, 199 / 7.0)], "totals of metrics", rows)
rows = table("select r.name, count(*) from calls c join regions r on r.recording = c.recording and r.id = c.region group by r.id", one)
x.check(sum(r[1] for r in rows) == len(calls_of(one)), "a join of calls and regions", rows)
rows = table("select l.name, count(*) from calls c, locations l on l.id = c.location group by l.name order by 1", one)
x.check([r[0] for r in rows] == ["first", 'second "2"'], "a join of calls and locations", rows)
x.check(table("select * from calls", empty) == [], "an empty recording has no calls")
# ordinals that came later, as many as fill the array for them
later = x.compiled("""#include <fdr/fdr.h>
#include <stdio.h>
int main(void)
{
    fdr_init(NULL);
    for (unsigned i = 0; i < 64; i++) fdr_message_recv_open(1, 7, 0, 8, i + 1);
    for (unsigned i = 0; i < 64; i++) fdr_message_resolve(i + 1, 100 + i);
    fdr_snapshot("now");
    puts(fdr_last_snapshot());
}""", "later")
x.check(table("select count(*), min(ordinal), max(ordinal) from messages", x.record(later)) == [(64, 100, 163)], "64 later ordinals")
x.check(table("select damage is null from recordings", one, all_["damaged"]) == [(1,), (0,)], "damage")
done = x.tool("sql", all_["damaged"], "select damage from recordings")  # decodes all: some calls may be whole
x.check(done.returncode == 1 and len(done.stderr.splitlines()) == 1, "damage is one line, and the exit status", done.stderr)

# ---- queries from standard input, and wrong ones ----

done = subprocess.run([x.FDR, "sql", one], capture_output=True, text=True, check=False,
                      input="select count(*)\nfrom regions;select 1 as a;\n.tables\n.schema notes\n.nothing\n.quit\nselect 2;")
lines = done.stdout.splitlines()
x.check(done.returncode == 0 and lines[0] == "count(*)" and lines[2:4] == ["a", "1"], "queries from standard input", lines, done.stderr)
x.check("messages" in lines and lines[-1] == "notes(recording, rank, key, value)", ".tables and .schema", lines)
x.check(done.stderr.count("\n") == 1 and ".nothing" in done.stderr, "an unknown command", done.stderr)
for query, said in (("select nowhere from calls", "no such column: nowhere"), ("selec t", "syntax error"), ("select * from call", "calls,"),
                    ("insert into calls values (1)", "may not be modified")):
    done = x.tool("sql", one, query)
    x.check(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and said in done.stderr, f"refused: {query}", done.stderr)
done = x.tool("sql", "absent.fdr", "select * from calls")
x.check(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "absent.fdr" in done.stderr, "an absent file", done.stderr)
done = x.tool("sql", "absent.fdr", one, "select count(*) as n from recordings")
x.check(done.returncode == 2 and done.stdout == "n\n1\n", "the others are read", done.stdout)
done = x.tool("sql", "select * from calls")
x.check(done.returncode == 64 and "FILE" in done.stderr, "no file", done.stderr)
x.end()
