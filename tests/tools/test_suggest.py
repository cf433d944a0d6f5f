#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=tools timeout=300
# fdr suggest: the choice for known durations, and its three answers. Programs run again with the suggested rules, and
# with the suggested option of g++, lose exactly the promised calls. Tables show short names, and one row for the copies
# of an inline function.
import json
import os
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr, lib = f"{build}/bin/fdr", f"{build}/lib"
if os.environ.get("FDR_SANITIZE") or os.environ.get("FDR_COVERAGE") == "ON":
    print("skipped: not with sanitizers: the programs here are built without them")
    sys.exit(77)
if not os.path.exists(fdr) or "dw" not in subprocess.run([fdr, "version", "--build"], capture_output=True, text=True).stdout:
    print("skipped: no fdr command with elfutils in this build")
    sys.exit(77)
directory = tempfile.TemporaryDirectory(prefix="fdr-suggest-")
work = directory.name
bad = 0


def check(good, what, *shown):
    global bad
    print(("ok: " if good else "FAILED: ") + what, *([] if good else shown))
    bad += not good


def tool(*arguments):
    return subprocess.run([fdr, *arguments], capture_output=True, text=True)


def write(name, text):
    with open(f"{work}/{name}", "w") as f:
        f.write(text)
    return f"{work}/{name}"


def compile_(program, *arguments):
    subprocess.run([arguments[0], "-g", "-O1", f"-I{source}/include", *arguments[1:], "-o", f"{work}/{program}", f"-L{lib}",
                    f"-Wl,-rpath,{lib}", "-lfdr-instrument", "-lfdr"], check=True, cwd=work)


def record(program, *arguments, **settings):
    folder = tempfile.mkdtemp(dir=work)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_DIR": folder, "FDR_BUFFER": "16M", "FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1"} | settings
    done = subprocess.run([f"{work}/{program}", *arguments], env=env, capture_output=True, text=True, timeout=120)
    check(done.returncode == 0 and done.stderr == "", f"{program} runs", done.returncode, done.stderr)
    return f"{folder}/{os.listdir(folder)[0]}"


def timed(file):
    """The timed calls of each function."""
    calls = {}
    for r in json.loads(tool("stats", "--json", file).stdout):
        calls[r["name"]] = calls.get(r["name"], 0) + r["calls"] - r["untimed"]
    return calls


# ---- known durations ----------------------------------------------------------------------------------------------------

write("known.c", r"""
#include <fdr/fdr.h>
#include <string.h>
static uint64_t t;
static void calls(const char *name, int count, uint64_t ns, int longer, uint64_t long_ns)
{
    fdr_region r = fdr_region_define(name, "known.c", 1);
    for (int i = 0; i < count; i++) fdr_enter_at(r, t), fdr_leave_at(r, t += longer && i % longer == 0 ? long_ns : ns);
}
int main(int argc, char **argv)
{
    if (fdr_init(NULL)) return 2;
    if (argc < 2) {
        calls("tiny, but *much* of #the time", 100000, 100, 0, 0);
        calls("short", 20000, 1000, 0, 0);
        calls("not alike", 20000, 200, 20, 100000);
        calls("beyond the limit", 20000, 2000, 0, 0);
        calls("long", 1000, 1000000, 0, 0);
    } else if (!strcmp(argv[1], "long")) calls("long", 100, 1000000, 0, 0);
    else if (!strcmp(argv[1], "excluded")) calls("excluded", 100, 10, 0, 0);
    return fdr_snapshot("end") != 0;
}
""")
compile_("known", "cc", "known.c")
file = record("known")
text = tool("suggest", file)
# 161,000 calls in 10 + 20 + 104 (95 % short: 3.8 + 100) + 40 + 1000 ms
check(text.returncode == 0 and text.stdout.startswith(
    "Leaving out 2 functions removes 74.5 % of the events and 2.6 % of the time shown.\n"), "the choice in a sentence", text)
got = json.loads(tool("suggest", "--json", file).stdout)
check([f["name"] for f in got["functions"]] == ["tiny, but *much* of #the time", "short"], "tiny, then short, within the limit", got)
check(abs(got["removes_events"] - 120 / 161) < 1e-9 and abs(got["loses_time"] - 30 / 1173.8) < 1e-9 and got["unknown"] is None,
      "the shares as numbers", got)
check(got["flags"]["functions"] == 0 and all(f["gcc"] is None and f["gcc_why_not"] for f in got["functions"]),
      "gcc's list has no regions of the program's own", got)
more = json.loads(tool("suggest", "--json", "--keep-time", "90", file).stdout)["functions"]
check([f["name"] for f in more][2:] == ["beyond the limit"], "--keep-time raises the limit", more)
less = json.loads(tool("suggest", "--json", "--events", "50%", file).stdout)["functions"]
check([f["name"] for f in less] == ["tiny, but *much* of #the time"], "--events ends the choice", less)
done = tool("suggest", "--rules", file, "-o", f"{work}/known.rules")
check(done.returncode == 0 and done.stdout == "" and
      "\nexclude exact tiny, but *much* of #the time\n" in open(f"{work}/known.rules").read(), "rules into a file", done)
before, after = timed(file), timed(record("known", FDR_FILTER=f"{work}/known.rules"))
check(after == before | {"tiny, but *much* of #the time": 0, "short": 0}, "a second run without the two", after)

done = tool("suggest", record("known", "long"))
check(done.returncode == 0 and done.stdout.startswith("No function is worth leaving out"), "nothing to leave out", done)
for arguments, settings, why in ((("none",), {}, "the recording has no calls"), (
        ("excluded",), {"FDR_FILTER": write("all.rules", "exclude name *\n")}, "no call that ended has a time")):
    file = record("known", *arguments, **settings)
    done = tool("suggest", file)
    check(done.returncode == 2 and done.stdout.startswith("It cannot be known which functions to leave out: " + why), why, done)
    got = json.loads(tool("suggest", "--json", file).stdout)
    check(got["functions"] == [] and got["removes_events"] is None and why in got["unknown"], "the same as JSON", got)
    done = tool("suggest", "--rules", file)
    check(done.returncode == 2 and done.stdout == "" and why in done.stderr, "and no rules", done)
check(tool("suggest").returncode == 64 and tool("suggest", "--rules", "--cmake", file).returncode == 64, "wrong usage")

# ---- C++ with hooks: rules, then the option of g++ ---------------------------------------------------------------------------

write("grid.cpp", r"""
#include <fdr/fdr.h>
#include <map>
#include <string>
#include <utility>
#include <vector>
namespace grid {
struct Comma { int n = 0; Comma &operator,(int i) { n += i; return *this; } };
struct Cell { double v = 0; double get() const { return v; } void set(double x) { v = x; } void set(int x) { v = x; } };
template <class A, class B> struct Both { A a; B b; A first() { return a; } };
template <class T> struct Field {
    std::vector<T> data;
    T &at(unsigned i) { return data[i]; }
};
template <class A, class B> A mix(A a, B b) { return a + A(b); }
double flux(double a, double b) { return (a - b) * 0.5; }
double flux_to_file(double a) { volatile double x = a; for (int i = 0; i < 30000; i++) x = x + 1; return flux(x, a); }
void step(Field<Cell> &f)
{
    Both<int, std::string> both{1, "x"};
    Field<std::pair<int, unsigned long>> pairs;
    pairs.data.resize(1);
    for (unsigned i = 1; i < f.data.size(); i++) {
        f.at(i).set(mix<double, int>(f.at(i).get() + flux(f.at(i - 1).get(), f.at(i).get()), both.first()));
        f.at(i).set(int(pairs.at(0).second));
    }
    Comma comma;
    for (int i = 0; i < 200; i++) comma, i;
    for (int i = 0; i < 3; i++) flux_to_file(1);
}
}
int main()
{
    if (fdr_init(nullptr)) return 2;
    grid::Field<grid::Cell> f;
    f.data.resize(200);
    std::map<std::string, int> m;
    auto count = [&](int i) { return m["step " + std::to_string(i % 7)]++; };
    for (int i = 0; i < 100; i++) grid::step(f), count(i);
    return fdr_snapshot("end") != 0;
}
""")
compile_("grid", "g++", "-finstrument-functions", "grid.cpp")
file = record("grid")
before = timed(file)
got = json.loads(tool("suggest", "--json", "--keep-time", "0", file).stdout)
chosen = {f["name"] for f in got["functions"]}
check({"grid::flux(double, double)", "grid::Comma::operator,(int)"} <= chosen and got["rules"]["functions"] == len(chosen) >= 5, "functions of C++", got)
events = sum(before.values())
check(abs(got["removes_events"] - sum(before[name] for name in chosen) / events) < 1e-9, "the share is that of their calls", got)
with open(f"{work}/grid.rules", "w") as f:
    f.write(tool("suggest", "--rules", "--keep-time", "0", file).stdout)
after = timed(record("grid", FDR_FILTER=f"{work}/grid.rules"))
check(after == {name: 0 if name in chosen else calls for name, calls in before.items()},
      "with the rules just these functions are missing", [n for n in before if (n in chosen) != (after.get(n) == 0)])

by_gcc = {f["name"] for f in got["functions"] if f["gcc"]}
gone = by_gcc | {name for f in got["functions"] for name in f["gcc_also"]}
why = {f["name"]: f["gcc_why_not"] for f in got["functions"]}
check("name of a function worth keeping" in (why["grid::flux(double, double)"] or ""), "flux is part of flux_to_file", why)
check(abs(got["flags"]["removes_events"] - sum(before[name] for name in gone) / events) < 1e-9, "the share with gcc", got)
done = tool("suggest", "--flags", "--keep-time", "0", file)
write("flags", done.stdout)
check("grid::Comma::operator" in done.stdout and "operator," not in done.stdout.replace("grid::Comma::operator,", "", 1),
      "no item has a comma", done.stdout)
check(done.stderr.count("grid::flux: its name is part of") == 1, "what gcc's list leaves out is said", done.stderr)
compile_("flagged", "g++", "-finstrument-functions", "@flags", "grid.cpp")
after = timed(record("flagged"))
expected = {name: calls for name, calls in before.items() if name not in gone}
check(after == expected, "g++ leaves out just these functions", set(after) ^ set(expected))

write("hooks.cmake", tool("suggest", "--cmake", "--keep-time", "0", file).stdout)
write("CMakeLists.txt", f"""cmake_minimum_required(VERSION 3.25)
project(grid CXX)
include(hooks.cmake)
add_executable(by_cmake grid.cpp)
set_target_properties(by_cmake PROPERTIES ENABLE_EXPORTS ON RUNTIME_OUTPUT_DIRECTORY ${{CMAKE_SOURCE_DIR}})
target_compile_options(by_cmake PRIVATE -g -O1 -finstrument-functions)
target_include_directories(by_cmake PRIVATE {source}/include)
target_link_libraries(by_cmake PRIVATE {lib}/libfdr-instrument.so {lib}/libfdr.so)
""")
for step in (["-S", ".", "-B", "b", "-DCMAKE_CXX_COMPILER=g++"], ["--build", "b"]):
    done = subprocess.run(["cmake", *step], cwd=work, capture_output=True, text=True)
    check(done.returncode == 0, f"cmake {step[0]}", done.stdout, done.stderr)
check(timed(record("by_cmake")) == expected, "the same through CMake")

compile_("hidden", "g++", "-Wl,-s", "-finstrument-functions", "grid.cpp")
got = json.loads(tool("suggest", "--json", "--keep-time", "0", record("hidden")).stdout)
check(got["rules"]["functions"] < len(got["functions"]), "without symbols rules see no names", got)

# ---- names in tables ------------------------------------------------------------------------------------------------------

table = [line.split("  ")[-2].strip() for line in tool("stats", file).stdout.splitlines() if line.endswith(")")]
full = tool("stats", "--full-names", file).stdout
check({"grid::Cell::get", "grid::Cell::set(double)", "grid::Cell::set(int)", "grid::mix<double, int>",
       "grid::Both<int, std::string>::first", "std::vector<grid::Cell>::operator[]"} <= set(table), "short names", table)
check(len(table) == len(set(table)), "no two functions share one", table)
check("grid::Field<grid::Cell>::at(unsigned int)" in full and "std::vector<grid::Cell, std::allocator<grid::Cell> >::operator[](unsigned long)" in
      full, "--full-names", full)
check("grid::step\n" in tool("dump", file).stdout and "grid::step(grid::Field<grid::Cell>&)" in tool("dump", "--tsv", file).stdout,
      "short in text, whole in TSV")
for pattern in ("grid::step", "grid::step(*"):
    check("grid::step" in tool("dump", "--region", pattern, file).stdout, f"--region {pattern}")

write("inline.h", "static inline int length(int n) { return n + 1; }\n")
write("one.c", '#include "inline.h"\nint one(int n) { return length(n); }\n')
write("two.c", '#include <fdr/fdr.h>\n#include "inline.h"\nint one(int);\nint main(void)\n{\n    if (fdr_init(NULL)) return 2;\n'
      '    for (int i = 0; i < 10; i++) one(i), length(i);\n    return fdr_snapshot("end") != 0;\n}\n')
compile_("inline", "cc", "-finstrument-functions", "one.c", "two.c")
file = record("inline")
rows = [r for r in json.loads(tool("stats", "--json", file).stdout) if r["name"] == "length"]
check([r["calls"] for r in rows] == [20] and sum(rows[0]["histogram"]) == 20, "copies of an inline function are one row", rows)
rows = [r for r in json.loads(tool("stats", "--json", "--events", file).stdout) if r["name"] == "length"]
check([r["calls"] for r in rows] == [20], "also from events", rows)
# ---- short names of a running program -----------------------------------------------------------------------------------

write("waits.cpp", r"""
#include <cstdio>
#include <map>
#include <string>
#include <unistd.h>
void wait_in(const std::map<std::string, std::string> &)
{
    std::puts("waits");
    std::fflush(stdout);
    while (access("end", F_OK)) continue; /* a thread that sleeps or reads would be idle */
}
int main() { std::map<std::string, std::string> m; wait_in(m); }
""")
compile_("waits", "g++", "-finstrument-functions", "-finstrument-functions-exclude-file-list=/usr/include/,/include/c++/,/lib/gcc/",
         "waits.cpp")
folder = tempfile.mkdtemp(dir=work)
waits = subprocess.Popen([f"{work}/waits"], cwd=folder, stdout=subprocess.PIPE, text=True,
                         env=os.environ | {"FDR_DIR": folder, "FDR_LIVE_DIR": folder, "FDR_LIVE_FORCE": "1"})
waits.stdout.readline()
hang = tool("hang", "--for", "1ns", str(waits.pid)).stdout
whole = tool("hang", "--for", "1ns", "--full-names", str(waits.pid)).stdout
open(f"{folder}/end", "w").close()
waits.communicate()
check("wait_in < main\n" in hang and "basic_string" not in hang, "hang shows short names", hang)
check("wait_in(std::map<" in whole, "and whole ones with --full-names", whole)

sys.exit(bad != 0)
