#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Judges samples through the command `fdr`, as users do.
#
# sampling.py shares BUILD DIRECTORY RUNS     compares shares of wall time per region, from samples, with the exact times of
#       the same run: how many lie inside the stated 95 % interval, over RUNS of each of five programs with eight regions
# sampling.py bytes BUILD DIRECTORY SECONDS   bytes per sample of a real program: the system's Python parses, prints and
#       compiles its library, sampled at 1 kHz of CPU time, with native stacks by the unwinder
import glob
import json
import os
import subprocess
import sys

START = "#include <fdr/fdr.h>\n__attribute__((constructor)) static void start(void) { fdr_init(0); }\n"
WORK = """
import ast, glob, os, sys, time
end = time.process_time() + float(sys.argv[1])
files = sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))
while time.process_time() < end:
    for file in files:
        with open(file, encoding="utf-8") as f: text = f.read()
        tree = ast.parse(text)
        ast.unparse(tree)
        compile(tree, file, "exec")
        if time.process_time() >= end: break
"""


def ask(*arguments):
    return json.loads(subprocess.run([f"{build}/bin/fdr", *arguments], capture_output=True, check=True).stdout)


def shares(runs):
    inside = total = 0
    widths = []
    for run in range(5 * runs):
        done = subprocess.run([f"{build}/benchmarks/bench_sampling", "shares", str(run % 5), directory],
                              capture_output=True, text=True, check=True)
        file = done.stdout.strip()
        samples = ask("samples", "--json", "--by", "region", "--limit", "0", file)
        told = {row["name"]: row["self"] for row in samples["rows"]}
        for row in ask("stats", "--json", "--by", "region", file):
            if row["name"] not in told:
                continue
            share, self = row["exclusive_ns"] / samples["weight"], told[row["name"]]
            total += 1
            inside += self["low"] <= share <= self["high"]
            p, n = self["share"], samples["weight"] / samples["streams"][0]["period"]
            if 0 < p < 1:
                widths.append((self["high"] - self["low"]) / (2 * 1.96 * (p * (1 - p) / n) ** 0.5))
        os.unlink(file)
    print(f"shares_inside\t{100 * inside / total:.1f}\t%\t\t\tof {total} region-runs of five programs inside the 95 % interval")
    print(f"shares_width\t{sum(widths) / len(widths):.2f}\tratio\t\t\twidth of the intervals / of binomial ones, mean")


def bytes_of_python(seconds):
    with open(f"{directory}/start.c", "w") as f:
        f.write(START)
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{source}/include", f"{directory}/start.c", "-o",
                    f"{directory}/start.so", f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lfdr"], check=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"LD_PRELOAD": f"{directory}/start.so", "FDR_SAMPLE": "1kHz,unwind", "FDR_FINALIZE": "snapshot", "FDR_DIR": directory,
            "FDR_ARENA": "anonymous", "FDR_BUFFER": "16M"}
    subprocess.run(["/usr/bin/python3", "-c", WORK, str(seconds)], env=env, check=True)
    file = max(glob.glob(f"{directory}/*.fdr"), key=os.path.getmtime)
    samples = ask("samples", "--json", "--limit", "1", file)
    stream = max(samples["streams"], key=lambda s: s["kept"])
    frames = 0
    dump = subprocess.run([f"{build}/bin/fdr", "dump", "--tsv", "--class", "sample", file], capture_output=True, text=True,
                          check=True, env=dict(os.environ, FDR_SYMBOLS="0")).stdout
    for line in dump.splitlines()[1:]:
        stack = [a for a in line.split("\t")[6].split(" ") if a.startswith("stack=")]
        frames += stack[0].count(";") + 2 if stack else 1
    print(f"bytes_real\t{stream['bytes_per_sample']:.1f}\tbytes\t\t\tper sample, {stream['kept']} of Python compiling its library, "
          f"{frames / max(samples['samples'], 1):.1f} frames each")
    os.unlink(file)


what, build, directory, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
if what == "shares":
    shares(count)
else:
    bytes_of_python(count)
