#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=120 promise=P10
# P10: a C++ program that throws exceptions all the time can be sampled with the unwinder. Just before an exception
# lands, the stack is inconsistent, and libgcc's unwinder may read any address. The test runs with and without fdr's
# handler of faults: the program survives, and its time is in the right functions. With the handler, callers are right,
# too.
import json
import os
import shutil
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr = f"{build}/bin/fdr"
if not os.path.exists(fdr) or not shutil.which("c++"):
    print("skipped: no fdr command in this build, or no C++ compiler")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-sample-throw-")
bad = 0

PROGRAM = r"""
#include <fdr/fdr.h>
#include <stdexcept>
#include <string>
#include <thread>
#include "busy_functions.h"
template <int N> __attribute__((noinline)) static int thrower(int n)
{
    std::string held(40 + n % 7, 'x');
    int r = thrower<N - 1>(n + (int)held.size());
    asm volatile("" : : "r"(&held));
    return r + 1;
}
template <> __attribute__((noinline)) int thrower<0>(int n)
{
    if (n) throw std::runtime_error("up");
    return n;
}
__attribute__((noinline)) static void catcher(int n)
{
    try {
        sink = thrower<6>(n + 1);
    } catch (const std::exception &) {
        sink = n;
    }
}
__attribute__((noinline)) static void work(double seconds)
{
    for (double until = now() + seconds; now() < until;)
        for (int i = 0; i < 20; i++) catcher(i);
    sink = 0;
}
int main()
{
    if (fdr_init(nullptr)) return 2;
    std::thread other([] { work(1.5); });
    work(1.5);
    other.join();
    return fdr_snapshot("end") != 0;
}
"""


def check(good, what, *shown):
    global bad
    print("ok" if good else "FAILED", what, *(() if good else shown))
    bad += not good


try:
    with open(f"{work}/program.cc", "w") as f:
        f.write(PROGRAM)
    subprocess.run(["c++", "-O2", "-g", f"-I{source}/include", f"-I{source}/tests/support", f"{work}/program.cc", "-o", f"{work}/program", f"-L{build}/lib",
                    f"-Wl,-rpath,{build}/lib", "-lfdr", "-lpthread"], check=True)
    for crash in "1", "0":
        env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
        env |= {"FDR_DIR": work, "FDR_ARENA": "anonymous", "FDR_SAMPLE": "10kHz,unwind", "FDR_CRASH": crash}
        done = subprocess.run([f"{work}/program"], env=env, capture_output=True, text=True)
        check(done.returncode == 0, f"FDR_CRASH={crash}: the program ends well", done.returncode, done.stderr)
        files = [name for name in os.listdir(work) if name.endswith(".fdr")]
        if done.returncode or len(files) != 1:
            continue
        told = json.loads(subprocess.run([fdr, "samples", "--json", "--limit", "0", f"{work}/{files[0]}"], capture_output=True, check=True).stdout)
        os.unlink(f"{work}/{files[0]}")
        share = {r["name"].split("(")[0]: r["all"]["share"] for r in told["rows"]}
        check(told["weight"] > 2.5e9, "all of the time was sampled", told["weight"])
        check(share.get("_Unwind_RaiseException", 0) > 0.1, "in the unwinder, most of it", share.get("_Unwind_RaiseException"))
        if crash == "1":
            check(share.get("work", 0) > 0.9 and share.get("catcher", 0) > 0.9, "below those who throw", share.get("work"), share.get("catcher"))
        else:
            check(told["stacks_cut"] > 0.1 * told["samples"], "of which nobody says who threw", told["stacks_cut"])
finally:
    shutil.rmtree(work)
print("passed" if not bad else f"{bad} failed")
sys.exit(bad != 0)
