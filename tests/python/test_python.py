#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120 excuse=numpy
# The Python package: its structures are those of the header; its events, columns and call tree are what fdr dump, fdr
# stats and fdr messages say, of one recording, of a job, of a damaged one. The code of docs/PYTHON.md runs, and the example draws.
import collections
import importlib.util
import json
import os
import re
import subprocess
import sys
import xml.dom.minidom

DEBIAN = "/usr/bin/python3"  # the first python3 of PATH may be another one, without Debian's packages
if not importlib.util.find_spec("numpy"):
    if os.path.exists(DEBIAN) and os.path.realpath(sys.executable) != os.path.realpath(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, *sys.argv])
    print("skipped: no numpy")
    sys.exit(77)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402

os.environ["FDR_READER_LIBRARY"] = f"{x.BUILD}/lib/libfdr-reader.so.0"
sys.path.insert(0, f"{x.SOURCE}/python")
import numpy as np  # noqa: E402

import fdr  # noqa: E402
from fdr import columns, reader_library  # noqa: E402

# ---- structures ----

lines = ["#include <fdr/reader.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
want = []
for s in reader_library.STRUCTURES:
    for name, kind in s._fields_:
        lines.append(f'printf("%zu %zu ", offsetof(struct {s.__name__}, {name}), sizeof ((struct {s.__name__} *)0)->{name});')
        want += [getattr(s, name).offset, getattr(s, name).size]
lines.append('printf("%zu\\n", sizeof(struct fdr_read_event)); return 0; }')
numbers = subprocess.run([x.compiled("\n".join(lines), "layout")], check=True, capture_output=True, text=True).stdout.split()
x.check([int(n) for n in numbers[:-1]] == want, f"{len(want) // 2} fields lie where the header says")
for structure, name in ((reader_library.Event, "fdr_read_event"), (reader_library.Total, "fdr_total")):
    x.compiled(f"#include <fdr/reader.h>\n_Static_assert(sizeof(struct {name}) == {reader_library.c.sizeof(structure)}, \"\");"
               "int main(void) { return 0; }", "size")

# ---- events and columns against fdr dump ----


def nested(rows):
    """Of fdr dump: calls in order of their ends, as tuples; paths -> [calls, inclusive, exclusive]."""
    stacks, calls, paths = collections.defaultdict(list), [], collections.defaultdict(lambda: [0, 0, 0])
    for r in rows:
        stack = stacks[r["location"]]
        if r["kind"] == "enter":
            stack.append([r, 0])
            continue
        path = tuple(f[0]["id"] if "reduced" not in f[0]["attributes"] else 0 for f in stack)
        e, inside = stack.pop()
        made_up, over, time = "reduced" in e["attributes"], "repaired" not in r["attributes"], r["time"] - e["time"]
        calls.append((e["location"], e["time"], time if over else -1, time - inside if over else -1, e["depth"], 0 if made_up else e["id"]))
        paths[path][0] += 1
        paths[path][1] += time if over else 0
        paths[path][2] += time - inside if over else 0
        if stack:
            stack[-1][1] += inside if made_up else time
    return calls, paths


def tree_paths(node, path=()):
    for child in node.children:
        if child.region:
            yield path + (child.region,), [child.calls, child.inclusive_ns, child.exclusive_ns]
        yield from tree_paths(child, path + (child.region,))


def rows_of(k, *names):
    return sorted(zip(*(k[n].tolist() for n in names)))


all_ = x.recordings()
for name, path in all_.items():
    dumped = x.dump(path)
    with fdr.open(path) as f:
        got = [(e.location, e.time_ns, e.kind, e.depth) for e in f.events()]
        x.same(f"{name}: events", got, [(r["location"], r["time"], r["kind"], r["depth"]) for r in dumped])
        calls, paths = nested([r for r in dumped if r["kind"] in ("enter", "leave")])
        k = f.calls()
        x.same(f"{name}: calls", rows_of(k, "location", "enter_ns", "duration_ns", "exclusive_ns", "depth", "region"), sorted(calls))
        inner = np.flatnonzero(k.parent >= 0)
        outer = k.parent[inner]
        x.check((k.depth[outer] == k.depth[inner] - 1).all() and (k.location[outer] == k.location[inner]).all() and
                (k.enter_ns[outer] <= k.enter_ns[inner]).all() and (outer > inner).all() and
                (k.depth[k.parent < 0] == 1).all(), f"{name}: each call below the first depth has its caller")
        got = dict(tree_paths(f.tree()))
        x.check(got == {p: v for p, v in paths.items() if p[-1]}, f"{name}: {len(got)} paths of the tree", got, paths)
        if k.rows:
            middle = int(np.median(k.enter_ns))
            part = f.calls(depth=(2, 2), from_ns=middle, region="*UTF-8*")
            mask = (k.depth == 2) & (k.enter_ns + np.maximum(k.duration_ns, 0) >= middle) & (k.region == 4)
            x.check(rows_of(part, "enter_ns", "exclusive_ns") == rows_of(k.where(mask), "enter_ns", "exclusive_ns") and
                    part.rows > 0 and (part.parent == -1).all(), f"{name}: a selection of {part.rows} calls")
            own, level, first = k.location[0], k.depth[0], k.enter_ns[0]  # numbers of numpy, as columns have them
            given, plain = {"location": own, "depth": level, "from_ns": first}, {"location": int(own), "depth": int(level), "from_ns": int(first)}
            x.check(f.calls(**given).rows == f.calls(**plain).rows > 0 and
                    list(f.events("region", **given)) == list(f.events("region", **plain)), f"{name}: selections by numbers of columns")
            both = f.calls(depth=(1, 2))
            inner = np.flatnonzero(both.parent >= 0)
            x.check(len(inner) and (both.depth[both.parent[inner]] == both.depth[inner] - 1).all(), f"{name}: callers of a selection")
        m = f.messages()
        want = [(r["location"], r["time"], r["kind"] == "send", *(int(r["attributes"][a]) for a in ("peer", "tag", "comm", "bytes")))
                for r in dumped if r["kind"] in ("send", "recv")]
        x.same(f"{name}: messages", rows_of(m, "location", "time_ns", "is_send", "peer", "tag", "comm", "bytes"), sorted(want))
        totals = json.loads(x.tool("stats", "--json", "--by", "region", path).stdout)
        t = f.totals()
        got = {int(i): [int(t[n][t.region == i].sum()) for n in ("calls", "exclusive_ns")] for i in set(t.region.tolist())}
        x.check(got == {r["id"]: [r["calls"], r["exclusive_ns"]] for r in totals}, f"{name}: totals", got)
        info = json.loads(x.tool("info", "--json", path).stdout)
        x.same(f"{name}: ledger", [(a, fdr.CLASSES[b], *rest) for a, b, *rest in rows_of(f.ledger(), "location", "class_", "depth", "presented", "kept", "reduced")],
               [(r["location"], r["class"], r["depth"], r["presented"], r["kept"], r["reduced"]) for r in info["ledger"]])
        x.check([l.tid for l in f.locations] == [l["tid"] for l in info["locations"]] and f.info["pid"] == info["pid"], f"{name}: facts")
        x.check(bool(f.damage) == (name == "damaged"), f"{name}: damage", f.damage)
    x.check(k.rows == len(calls), f"{name}: columns stay after the end")

with fdr.open(all_["everything"]) as f:
    x.check([f.metric("load").value.tolist().count(v) for v in (0.0, 199 / 7.0)] == [2, 2], "values of a metric")
    x.check(f.metric("de\"lta").value.min() == -199, "of a signed one")
    sample = next(f.events("sample", location=next(l.id for l in f.locations if l.samples)))
    x.check(sample.path and sample.fields["weight"] >= 1, "samples have paths", sample)
    user = next(e for e in f.events("user") if e.fields)
    x.check(user.fields["balance"] == -5 and user.fields['norm "n"'] == 0.0, "fields of an event", user)
    x.check({e.fields["op"] for e in f.events("io")} == {"open", "close", "read", "write", "sync", "other"}, "words of fields")
    events = f.events()
    next(events)
rest = list(events)
x.check(rest == [], "an iterator ends with its recording")

# ---- a job ----

with fdr.open(all_["everything"], all_["given back"]) as job:
    x.check(job.calls().rows == sum(len(nested(x.dump(all_[n], "--class", "region"))[0]) for n in ("everything", "given back")), "two files")
    x.check([l.rank for l in job.locations if l.file == all_["given back"]] and {l.rank for l in job.locations} == {0, 1}, "ranks in their order")
x.check(columns.sums(np.array([0, 1, 0]), np.array([1 << 60, 1, 1]), 2).tolist() == [(1 << 60) + 1, 1], "sums beyond what f64 holds")

# ---- what is wrong ----


def raised(kind, call):
    try:
        call()
    except kind as e:
        return str(e)
    return None


with open(f"{x.work}/no recording", "w", encoding="utf-8") as f:
    f.write("nothing")
x.check("absent" in (raised(fdr.Error, lambda: fdr.open("absent")) or ""), "an absent file")
x.check(raised(fdr.Error, lambda: fdr.open(all_["everything"], f"{x.work}/no recording")), "no recording among two")
x.check("closed" in (raised(ValueError, job.calls) or ""), "a closed recording")
x.check("region" in (raised(ValueError, lambda: list(fdr.open(all_["nothing"]).events("calls"))) or ""), "a wrong class")
x.check(raised(KeyError, lambda: fdr.open(all_["everything"]).metric("none")), "a metric that is not there")

# ---- without numpy; installed; the page; the example ----


def run(code, *arguments, **environment):
    env = os.environ | {"PYTHONPATH": f"{x.SOURCE}/python"} | environment
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, env=env, cwd=x.work)


done = run("import sys; sys.modules['numpy'] = None\nimport fdr\nf = fdr.open(sys.argv[1])\nprint(len(list(f.events('marker'))))\n"
           "try:\n    f.calls()\nexcept ImportError as e:\n    print(e)", all_["everything"])
x.check(done.stdout.splitlines() == ["400", "columns need numpy (Debian: python3-numpy)"], "without numpy", done.stdout, done.stderr)
place = f"{x.work}/prefix/lib/python3.11/dist-packages"
os.makedirs(place)
os.symlink(f"{x.BUILD}/lib/libfdr-reader.so.0", f"{x.work}/prefix/lib/libfdr-reader.so.0")
subprocess.run(["cp", "-r", f"{x.SOURCE}/python/fdr", place], check=True)
done = run("import fdr; print(fdr.version)", PYTHONPATH=place, FDR_READER_LIBRARY="")
x.check(re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout), "an installed package finds its library", done.stderr)
done = run("import fdr", FDR_READER_LIBRARY="/nowhere/lib.so")
x.check("set FDR_READER_LIBRARY" in done.stderr, "no library", done.stderr)

with open(f"{x.SOURCE}/docs/PYTHON.md", encoding="utf-8") as f:
    blocks = re.findall(r"```python\n(.*?)```", f.read(), re.S)
for i, file in enumerate((all_["everything"], all_["given back"])):
    os.symlink(file, f"{x.work}/solver.r{i}.fdr")
for block in blocks:
    if "libfdr-sqlite" in block and not os.path.exists(f"{x.BUILD}/lib/libfdr-sqlite.so"):
        print("note: this build has no SQLite")
        continue
    done = run(block.replace('"libfdr-sqlite"', f'"{x.BUILD}/lib/libfdr-sqlite"'))
    x.check(done.returncode == 0 and "busy" in done.stdout, f"the page: {block.splitlines()[0]}", done.stderr)
x.check(len(blocks) == 2, "blocks of the page")
for name, path in all_.items():
    done = subprocess.run([sys.executable, f"{x.SOURCE}/examples/time_by_thread.py", path, f"{x.work}/bars.svg"], capture_output=True, text=True,
                          check=False, env=os.environ | {"PYTHONPATH": f"{x.SOURCE}/python"})
    x.check(done.returncode == 0, f"{name}: the example", done.stderr)
    bars = xml.dom.minidom.parse(f"{x.work}/bars.svg").getElementsByTagName("title")
    x.check(len(bars) == (0 if name == "nothing" else 16), "draws a bar of eight parts for each thread", len(bars))
x.end()
