#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# What `fdr export --to csv` writes is read by Python's csv module: the events of fdr dump, line by line, whatever their
# names hold.
import csv
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402


def fields(name, rows):
    return [(r["location"], r["time"], r["kind"], r["depth"], None if r["kind"] == "sample" else r["name"]) for r in rows]


def compare(name, path):
    with open(x.export(path, "csv", f"{name}.csv"), encoding="utf-8", newline="") as f:
        got = list(csv.DictReader(f, strict=True))
    rows = x.dump(path)
    x.same(f"{name}: events", [(int(r["location"]), int(r["time_ns"]), r["kind"], int(r["depth"]),
                                None if r["kind"] == "sample" else r["name"]) for r in got], fields(name, rows))
    values = [(r["values"], [f"{k}={v}" for k, v in d["attributes"].items() if k not in ("unit", "ordinal", "token", "ambiguous")])
              for r, d in zip(got, rows) if d["kind"] in ("send", "recv", "coll_end", "marker")]
    differ = [(v, want) for v, want in values if v.split() != [w for w in want]]
    x.check(not differ, f"{name}: values of {len(values)} points", differ[:3])


if __name__ == "__main__":
    all_ = x.recordings()
    for name, path in all_.items():
        compare(name, path)
    x.fails_whole(all_["given back"], "csv")
    x.end()
