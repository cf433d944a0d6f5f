#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300 excuse=babeltrace2
# What `fdr export --to ctf` writes is read by babeltrace2, without a warning: each event of fdr dump, at its time, with
# its name and values.
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402

if not shutil.which("babeltrace2"):
    print("skipped: no babeltrace2 here")
    sys.exit(77)

LINE = re.compile(r"\[0*(\d+)\] \(\+.*?\) (?:\S+ )?(.*): \{ recording = 0, location = (\d+), process = .*?, thread = \".*?\" \}, \{ ?(.*?) ?\}$", re.S)
LABEL = re.compile(r'(?:region|name) = \( "(.*?)" : container = \d+ \)', re.S)


def read(path, name):
    done = subprocess.run(["babeltrace2", "--clock-cycles", path], capture_output=True, text=True, check=False,
                          cwd=x.work)
    x.check(done.returncode == 0 and not done.stderr, f"{name}: babeltrace2 has no complaints", done.stderr[:600])
    for line in done.stdout.splitlines():
        found = LINE.fullmatch(line)
        if not found:
            yield line, None
            continue
        time, kind, location, fields = found.groups()
        label = LABEL.search(fields)
        text = label[1] if label else kind
        yield (int(location), int(time), text.replace('\\"', '"').replace("\\\\", "\\")), fields


def expected(row):
    return row["location"], row["time"], "sample" if row["kind"] == "sample" else row["name"]


def compare(name, path):
    out = x.export(path, "ctf", f"{name}.ctf")
    rows = [r for r in x.dump(path) if r["kind"] != "resolve"]
    if not rows:
        x.check(os.path.getsize(f"{out}/metadata") > 0, f"{name}: only its description")
        return
    got = sorted(read(out, name), key=lambda g: g[0][0])
    rows.sort(key=lambda r: r["location"])
    x.same(f"{name}: times and names", [g for g, _ in got], [expected(r) for r in rows])
    wrong = []
    for (_, fields), r in zip(got, rows):
        a = r["attributes"]
        want = {"send": ("peer", "tag", "bytes"), "coll_end": ("root", "sent", "received"), "marker": ("value",),
                "io_begin": ("bytes",), "enter": ("repaired",), "leave": ("repaired",)}.get(r["kind"], ())
        wrong += [(fields, a) for k in want if k in a and not re.search(rf"\b{k} = {re.escape(a[k])}\b", fields)]
        if r["kind"] == "metric":
            value = float(fields.split("value = ")[1])
            wrong += [(fields, a)] if abs(value - float(a["value"])) > 1e-5 * abs(value) else []
    x.check(not wrong, f"{name}: values", wrong[:3])


ALIKE = r"""
#include <fdr/fdr.h>
#include <stdio.h>
int main(void)
{
    static const struct fdr_field field[] = {{"a b", FDR_U64, 0}, {"a-b", FDR_U64, 8}, {"a_b 1", FDR_U64, 16}, {"a+b", FDR_U64, 24}};
    fdr_init(NULL);
    fdr_event(fdr_event_define("alike", field, 4), (const uint64_t[]){1, 2, 3, 4});
    fdr_snapshot("now");
    printf("%s\n", fdr_last_snapshot());
    return 0;
}
"""


def alike():
    """Names of fields that are one identifier: babeltrace2 refuses a trace in which two fields have one name."""
    x.export(x.record(x.compiled(ALIKE, "alike")), "ctf", "alike.ctf")
    done = subprocess.run(["babeltrace2", f"{x.work}/alike.ctf"], capture_output=True, text=True, check=False)
    x.check(re.findall(r"= (\d+)", done.stdout.split("{")[-1]) == ["1", "2", "3", "4"], "fields whose names look alike", done.stdout,
            done.stderr[-200:])


if __name__ == "__main__":
    all_ = x.recordings()
    for name, path in all_.items():
        compare(name, path)
    alike()
    x.fails_whole(all_["given back"], "ctf")
    x.end()
