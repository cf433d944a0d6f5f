#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120
# What `fdr export --to speedscope` writes is valid by speedscope.schema.json. Its calls are those of `fdr dump`: nested,
# at the same times, a profile for each thread. Its samples weigh as much as those of `fdr samples`.
import collections
import json
import os
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr = f"{build}/bin/fdr"
directory = tempfile.TemporaryDirectory(prefix="fdr-speedscope-")
work = directory.name
bad = 0

PROGRAM = r"""
#include <fdr/fdr.h>
#include <pthread.h>
#include <time.h>
static double cpu(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static void *work(void *p)
{
    fdr_thread_name(p);
    for (int i = 0; i < 100; i++) FDR_REGION("outer \"quoted\"") FDR_REGION("inner") {}
    FDR_REGION("busy") for (double end = cpu() + 0.1; cpu() < end;) {}
    return p;
}
int main(void)
{
    pthread_t t;
    fdr_init(NULL);
    pthread_create(&t, 0, work, "second");
    work("first");
    pthread_join(t, 0);
    FDR_REGION("left open") { fdr_snapshot("now"); }
    fdr_finalize();
    return 0;
}
"""


def check(good, what, *shown):
    global bad
    print(("ok: " if good else "FAILED: ") + what, *([] if good else shown))
    bad += not good


def errors(value, schema, root, place="file"):
    """The places where `value` is not as the JSON schema says; knows the keywords that speedscope.schema.json uses."""
    if "$ref" in schema:
        schema = root["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    if "type" in schema and not isinstance(value, types[schema["type"]]):
        return [f"{place}: no {schema['type']}"]
    found = []
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        found.append(f"{place}: {value!r}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{place}: {value} is too small")
    if "oneOf" in schema:
        found += [] if sum(not errors(value, s, root) for s in schema["oneOf"]) == 1 else [f"{place}: not one of its types"]
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += errors(item, schema["items"], root, f"{place}[{i}]")
    if isinstance(value, dict) and "properties" in schema:
        found += [f"{place}: lacks {name}" for name in schema.get("required", []) if name not in value]
        found += [f"{place}: {name} is unknown" for name in value if name not in schema["properties"]]
        for name in value.keys() & schema["properties"].keys():
            found += errors(value[name], schema["properties"][name], root, f"{place}.{name}")
    return found


def tool(*arguments):
    return subprocess.run([fdr, *arguments], capture_output=True, text=True, check=True, cwd=work).stdout


def exported(*arguments):
    result = json.loads(tool("export", "--to", "speedscope", "-o", "-", *arguments))
    with open(f"{source}/tests/convert/speedscope.schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    wrong = errors(result, schema, schema)
    check(not wrong, f"valid: {arguments}", wrong[:5])
    broken = errors(dict(result, profiles=[{"type": "evented"}], shared={}), schema, schema)
    check(len(broken) == 2, "the schema refuses what is broken", broken)
    return result


with open(f"{work}/program.c", "w", encoding="utf-8") as f:
    f.write(PROGRAM)
sanitize = os.environ.get("FDR_SANITIZE")
subprocess.run(["cc", "-g", "-O1", *([f"-fsanitize={sanitize}"] if sanitize else []), f"-I{source}/include", f"{work}/program.c",
                "-o", f"{work}/program", f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr", "-pthread"], check=True)
env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
env |= {"FDR_DIR": work, "FDR_LIVE_DIR": work, "FDR_LIVE_FORCE": "1", "FDR_BUFFER": "8M", "FDR_SAMPLE": "1kHz"}
for _ in range(2):
    subprocess.run([f"{work}/program"], check=True, env=env)
one, two = sorted(f for f in os.listdir(work) if f.endswith(".fdr"))

file = exported(one)
frames, profiles = file["shared"]["frames"], file["profiles"]
check(file["name"].startswith("program (pid "), "the title is the program", file["name"])
check(len(set(map(str, frames))) == len(frames), "each function is one frame")
calls = [p for p in profiles if p["type"] == "evented"]
check(sorted(p["name"].split(" (tid")[0] for p in calls) == ["first", "second"], "a profile for each thread",
      [p["name"] for p in calls])
events = collections.defaultdict(list)
for line in tool("dump", "--tsv", "--class", "region", one).splitlines()[1:]:
    location, time, kind, _, _, name = line.split("\t")[:6]
    events[location].append((int(time), {"enter": "O", "leave": "C"}[kind], name))
start = min(e[0][0] for e in events.values())
for profile, (_, shown) in zip(calls, sorted(events.items(), key=lambda item: int(item[0]))):
    written = [(e["at"], e["type"], frames[e["frame"]]["name"]) for e in profile["events"]]
    check(written == [(time - start, kind, name) for time, kind, name in shown], f"{profile['name']}: the events of fdr dump")
    stack = []
    for _, kind, name in written:
        if kind == "O":
            stack.append(name)
        elif not stack or stack.pop() != name:
            check(False, f"nesting of {name}")
    check(not stack and written == sorted(written, key=lambda e: e[0]), "nested, in order of time")
    check((profile["startValue"], profile["endValue"]) == (written[0][0], written[-1][0]), "from its first event to its last")
check(any(frames[e["frame"]]["name"] == "left open" for p in calls for e in p["events"]), "an open call is there")

samples = [p for p in profiles if p["type"] == "sampled"]
check(len(samples) == 2 and all(p["unit"] == "nanoseconds" for p in samples), "samples of both threads")
total = json.loads(tool("samples", "--json", "--by", "thread", one))
shown = sum(row["self"]["weight"] for row in total["rows"])
check(all(len(p["weights"]) == len(p["samples"]) and p["endValue"] - p["startValue"] == sum(p["weights"]) for p in samples),
      "a weight for each sample")
check(sum(sum(p["weights"]) for p in samples) == shown, "weights sum to those of fdr samples", shown)
check(all(any(frames[i]["name"] == "busy" for s in p["samples"] for i in s) for p in samples), "samples are in their regions")

both = exported(one, two)
check(len([p for p in both["profiles"] if p["type"] == "evented"]) == 4, "two files: four threads")
check(all(": " in p["name"] for p in both["profiles"]), "two files: names of processes")
check([p["type"] for p in exported("--class", "sample", one)["profiles"]] == ["sampled"] * 2, "--class sample")
check(exported("--class", "marker", one)["profiles"] == [], "--class marker: no profiles")
check({frame["name"] for frame in exported("--depth", "1", "--class", "region", one)["shared"]["frames"]} ==
      {'outer "quoted"', "busy", "left open"}, "--depth")
sys.exit(bad != 0)
