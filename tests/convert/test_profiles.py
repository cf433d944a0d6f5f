#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300
# The profiles that `fdr export` writes say for each call path what fdr dump says: folded stacks; pprof, decoded by
# protoc and read by go tool pprof; callgrind, read by callgrind_annotate. A reader that is not here is named.
import collections
import gzip
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exported as x  # noqa: E402
import protoc_text  # noqa: E402


def paths_of(rows):
    """Path of names -> [calls, own time]."""
    paths, stacks = collections.defaultdict(lambda: [0, 0]), collections.defaultdict(list)
    for r in rows:
        stack = stacks[r["location"]]
        if r["kind"] == "enter":
            stack.append([r["name"], r["time"], 0])
        elif r["kind"] == "leave":
            path = tuple(s[0] for s in stack)
            _, entered, inside = stack.pop()
            time = r["time"] - entered
            paths[path][0] += 1
            paths[path][1] += time - inside
            if stack:
                stack[-1][2] += time
    return paths


def there(command):
    if not shutil.which(command):
        print(f"note: no {command} here")
    return shutil.which(command)


def folded(name, path, paths):
    with open(x.export(path, "folded", f"{name}.folded"), encoding="utf-8") as f:
        got = {k: int(v) for k, v in (line.rsplit(" ", 1) for line in f.read().splitlines())}
    want = {";".join(n.replace(";", ":") for n in p): own for p, (_, own) in paths.items() if own}
    x.check(got == want, f"{name}: folded stacks: {len(want)}", set(got.items()) ^ set(want.items()))


def pprof(name, path, paths):
    out = x.export(path, "pprof", f"{name}.pb.gz")
    with open(out, "rb") as f:
        data = gzip.decompress(f.read())
    if there("protoc"):
        p = protoc_text.decoded(data, "Profile", f"{x.SOURCE}/tests/convert", "profile.proto")
        text = p["string_table"]
        function = {f["id"][0]: text[int(f["name"][0])] for f in p.get("function", [])}
        location = {l["id"][0]: function[l["line"][0]["function_id"][0]] for l in p.get("location", [])}
        got = {}
        for s in p.get("sample", []):
            key, value = tuple(location[i] for i in reversed(s["location_id"])), [int(v) for v in s["value"]]
            if value[0]:
                got[key] = value[:2]
        x.check(got == paths, f"{name}: pprof: {len(paths)} paths", list(set(map(str, got.items())) ^ set(map(str, paths.items())))[:4])
        types = [text[int(t["type"][0])] for t in p["sample_type"]]
        x.check(types == ["calls", "time", "samples", "sampled"], "its types", types)
        x.check(not any(k.isdigit() for k in p), "no unknown fields")
    if there("go") and paths:
        done = subprocess.run(["go", "tool", "pprof", "-raw", out], capture_output=True, text=True, check=False,
                              env=os.environ | {"HOME": x.work, "PPROF_TMPDIR": x.work})
        head = done.stdout.splitlines()
        x.check(done.returncode == 0 and "calls/count time/nanoseconds" in done.stdout, "go tool pprof reads it", head[:5], done.stderr)


def callgrind(name, path, paths):
    out = x.export(path, "callgrind", f"{name}.callgrind")
    own = collections.Counter()
    for p, (_, time) in paths.items():
        own[p[-1]] += time
    if not there("callgrind_annotate") or not paths:
        return
    done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", out], capture_output=True, text=True,
                          check=False)
    got = collections.Counter()
    for line in done.stdout.splitlines():
        found = re.match(r"\s*([\d,]+) \(.{0,8}%\)  (?:.*?program\.c|\?\?\?):(.*)", line)
        if found:
            got[found[2]] += int(found[1].replace(",", ""))
    want = {k: v for k, v in own.items() if v}
    x.check(done.returncode == 0 and got == want, f"{name}: callgrind_annotate: {len(want)} functions",
            [(k[:60], v) for k, v in got.items()], [(k[:60], v) for k, v in want.items()], done.stderr[:300])


def calls_in_callgrind(path, paths):
    """Calls from one function to another, as the file itself says them."""
    names, got, caller = {}, collections.Counter(), None
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            found = re.match(r"c?fn=\((\d+)\)(?: (.*))?", line)
            if found:
                names.setdefault(found[1], found[2])
                name = names[found[1]]
                caller, callee = (caller, name) if line[0] == "c" else (name, None)
            elif line.startswith("calls="):
                got[caller, callee] += int(line[6:].split()[0])
    want = collections.Counter()
    for p, (calls, _) in paths.items():
        if len(p) > 1:
            want[p[-2:]] += calls
    x.check(got == want, f"calls from function to function: {len(want)}", got, want)


if __name__ == "__main__":
    all_ = x.recordings()
    for name, path in all_.items():
        paths = paths_of(x.dump(path, "--class", "region"))
        name = name.replace(" ", "-")
        folded(name, path, paths)
        pprof(name, path, paths)
        callgrind(name, path, paths)
        calls_in_callgrind(f"{x.work}/{name}.callgrind", paths)
    samples = [r for r in x.dump(all_["everything"], "--class", "sample")]
    with open(x.export(all_["everything"], "pprof", "s.pb.gz", "--class", "sample"), "rb") as f:
        data = gzip.decompress(f.read())
    if there("protoc"):
        p = protoc_text.decoded(data, "Profile", f"{x.SOURCE}/tests/convert", "profile.proto")
        taken = sum(int(s["value"][2]) for s in p["sample"])
        x.check(taken == len(samples) > 0, f"{len(samples)} samples in pprof", taken)
    for to in ("pprof", "callgrind", "folded"):
        x.fails_whole(all_["given back"], to, 4096)
    x.end()
