#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# fdr stats --by path --json: "exact" is said of a path only if it has all calls that an unlimited buffer holds.
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402


def paths(file, *more):
    rows = json.loads(x.tool("stats", "--by", "path", "--json", *more, file).stdout)
    return {tuple(r["path"]): r for r in rows if "calls" in r}


program = x.compiled(x.PROGRAM)
whole, small = x.record(program, "3000", FDR_BUFFER="64M"), x.record(program, "3000", FDR_BUFFER="256K")
everything, some = paths(whole), paths(small)
x.check(all(r["exact"] for r in everything.values()), "nothing was given back: all paths are exact", everything)
exact = {p for p, r in some.items() if r["exact"]}
wrong = {p: (some[p]["calls"], everything[p]["calls"]) for p in exact if some[p]["calls"] != everything[p]["calls"]}
x.check(not wrong, "an exact path has all calls", wrong)
x.check(("busy",) in exact, "the long calls are all there, and exact", some.get(("busy",)))
incomplete = {p for p, r in some.items() if p in everything and r["calls"] < everything[p]["calls"]}
x.check(incomplete and not incomplete & exact, "a path that lacks calls is not exact", incomplete & exact)
x.check(not any(r["exact"] for p, r in some.items() if "[reduced]" in p),
        "nothing below a call that is not kept is exact")
outer = next(p for p in some if len(p) == 1 and p[0].startswith("outer"))
x.check(not some[outer]["exact"], "a path whose calls inside were given back is not exact", some[outer])
half = paths(small, "--location", "0")
x.check(not any(r["exact"] for p, r in half.items() if p == ("busy",)), "a part of the threads is no whole", half.get(("busy",)))
sys.exit(1 if x.bad else 0)
