#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house timeout=300 promise=P5,P10
# P5, P10: hooks at the first instruction and before the return of a function (fdr::instrument for g++ on x86-64). All
# arguments and results arrive, however they are passed; counts and names are exact in executables of every kind; rules,
# FDR_DEPTH and counters at edges work as with the other hooks.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
source=$FDR_SOURCE
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "not with sanitizers"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "no symbols without libdw"; exit 77; fi
if ! command -v g++ >/dev/null || [ "$(uname -m)" != x86_64 ]; then echo "these hooks are g++'s on x86-64"; exit 77; fi

work=$(mktemp -d)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-test-XXXXXX 2>/dev/null || mktemp -d)
export FDR_LIVE_DIR FDR_FINALIZE=snapshot FDR_BUFFER=8M
cd "$work"
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }

cat >program.cpp <<'END'
// Every way to pass arguments and results. Each function is called 600 times: in the first calls fdr looks up its name.
#include <complex>
#include <cstdarg>
#include <cstdio>
#include <csetjmp>
#include <stdexcept>
#include <thread>
#define APART __attribute__((noinline, noclone))
static int wrong;
static volatile int sink;
static void expect(bool right, int line) { if (!right && wrong++ < 5) std::fprintf(stderr, "line %d\n", line); }
#define EXPECT(c) expect(c, __LINE__)
APART static long words(long a, long b, long c, long d, long e, long f, long g) { return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g; }
APART static double doubles(double a, double b, double c, double d, double e, double f, double g, double h) { return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h; }
APART static long double on_x87(long double a) { return a / 3; }
APART static __int128 pair(__int128 a) { return a * 3; }
APART static std::complex<double> two_doubles(double a) { return {a, -a}; }
APART static int variadic(int count, ...)
{
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += va_arg(list, double);
    va_end(list);
    return (int)sum;
}
struct large { long word[9]; };
APART static large by_memory(int n) { large l = {}; l.word[8] = n; return l; }
struct first { virtual int one() { return 1; } virtual ~first() {} long room = 0; };
struct second { virtual long through(long a, double b, double c) = 0; virtual ~second() {} };
struct both : first, second { long factor = 2; APART long through(long a, double b, double c) override; };
long both::through(long a, double b, double c) { sink = sink + 1; return factor * (a + (long)b + 10 * (long)c); }
typedef float vector8 __attribute__((vector_size(32)));
typedef float vector16 __attribute__((vector_size(64)));
__attribute__((target("avx"), noinline, noclone)) static vector8 wide(vector8 a, vector8 b) { return a + b; }
__attribute__((target("avx"), noinline, noclone)) static bool try_wide(int n)
{
    vector8 a = {1, 2, 3, 4, 5, 6, 7, (float)n}, sum = wide(a, a);
    return sum[0] == 2 && sum[4] == 10 && sum[7] == 2 * n;
}
__attribute__((target("avx512f"), noinline, noclone)) static vector16 wider(vector16 a, vector16 b) { return a + b; }
__attribute__((target("avx512f"), noinline, noclone)) static bool try_wider(int n)
{
    vector16 a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, (float)n}, sum = wider(a, a);
    return sum[0] == 2 && sum[8] == 18 && sum[15] == 2 * n;
}
APART static void thrower(int n) { if (n == 0) throw std::runtime_error("x"); thrower(n - 1); sink = sink + 1; }
APART static int catcher() { try { thrower(2); } catch (const std::runtime_error &) { return 1; } return 0; }
static jmp_buf back;
APART static void jump() { sink = sink + 1; std::longjmp(back, 1); }
APART static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
APART static void on_thread() { for (int i = 0; i < 100; i++) sink = fib(1); }
APART static void last(int n) { sink = n; }
APART static void calls_last(int n) { last(n + 1); }
__attribute__((no_instrument_function, noinline)) static int without() { return sink + 1; }
APART static void all(second &s, int n)
{
    EXPECT(words(1, 2, 3, 4, 5, 6, n) == 91 + 7 * n);
    EXPECT(doubles(1, 2, 3, 4, 5, 6, 7, n) == 140 + 8 * n);
    EXPECT(on_x87(3.0L * n) == n);
    EXPECT(pair((__int128)1 << 80) == (__int128)3 << 80);
    EXPECT(two_doubles(n) == std::complex<double>(n, -n));
    EXPECT(variadic(4, 1.0, 2.0, 3.0, (double)n) == 6 + n);
    EXPECT(by_memory(n).word[8] == n);
    EXPECT(s.through(1, 2, n) == 2 * (3 + 10 * n));
    if (__builtin_cpu_supports("avx")) EXPECT(try_wide(n));
    if (__builtin_cpu_supports("avx512f")) EXPECT(try_wider(n));
    EXPECT(catcher() == 1);
    if (!setjmp(back)) jump();
    calls_last(without());
}
int main()
{
    both object;
    for (int n = 0; n < 600; n++) all(object, n);
    fib(10);
    std::thread threads[2] = {std::thread(on_thread), std::thread(on_thread)};
    for (auto &t : threads) t.join();
    return wrong != 0;
}
END
cat >calls.py <<'END'
# calls.py STATS.json NAME=COUNT...: exactly so many calls; no function without a name
import json, sys
rows = [r for r in json.load(open(sys.argv[1])) if r["calls"]]
found = {}
for r in rows: found[r["name"].split("(")[0]] = found.get(r["name"].split("(")[0], 0) + r["calls"]
wrong = [f"{n}: {found.get(n, 0)}, expected {c}" for n, c in (w.split("=") for w in sys.argv[2:]) if found.get(n, 0) != int(c)]
wrong += [r["name"] for r in rows if r["name"].startswith(("0x", "[")) or "+0x" in r["name"]]
sys.exit("; ".join(wrong) if wrong else 0)
END

# record WHAT [SETTING]... -- NAME=COUNT...: runs ./program, which checks itself, and compares the calls
record()
{
    local what=$1 settings=() files
    shift
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    rm -rf out && mkdir out
    if ! env "${settings[@]}" FDR_DIR="$work/out" timeout 60 ./program >said 2>&1 || [ -s said ]; then
        fail "$what: the program: $(head -3 said | tr '\n' ' ')"
        return
    fi
    files=(out/*.fdr)
    "$fdr" check "${files[0]}" >check.txt 2>&1 || fail "$what: fdr check: $(head -3 check.txt)"
    "$fdr" stats --json "${files[0]}" >stats.json
    if python3 calls.py stats.json "$@" 2>wrong.txt; then echo "ok: $what"; else fail "$what: $(cat wrong.txt)"; fi
}

specs=(-finstrument-functions "-specs=$source/cmake/instrument.specs")
link=(-L "$lib" "-Wl,-rpath,$lib" -lfdr-instrument -lfdr -pthread)
counts=(main=1 all=600 words=600 doubles=600 on_x87=600 pair=600 two_doubles=600 variadic=600 by_memory=600
    both::through=600 thrower=1800 catcher=600 jump=600 last=600 calls_last=600 on_thread=2 fib=377 without=0)
build() { g++ -g -fno-optimize-sibling-calls "${specs[@]}" program.cpp -o program "$@"; }

# -O1: recursion is not unrolled, so the calls can be counted
build -O1 "${link[@]}"
if ! nm -u program | grep -q __fentry__; then fail "the program has other hooks"; fi
record "usual" -- "${counts[@]}"
printf 'exclude name words*\nexclude name last*\nmin 60s name doubles*\nevery 10 name pair*\n' >rules
record "rules" FDR_FILTER="$work/rules" -- "${counts[@]}"
record "depth 2" FDR_DEPTH=2 -- "${counts[@]}"
record "a coarse unit of time" FDR_RESOLUTION=100ns -- "${counts[@]}"
record "the monotonic clock" FDR_TIMER=monotonic -- "${counts[@]}"
record "counters at edges" FDR_EDGE_COUNTERS=page-faults FDR_EDGE_REGIONS='words*' -- "${counts[@]}"
"$fdr" info out/*.fdr | grep -qi 'page-faults' || fail "no counters at edges"
if ! FDR_ENABLE=0 ./program >said 2>&1 || [ -s said ]; then fail "off: $(head -3 said)"; fi

build -O1 -fcf-protection -fno-pie -no-pie "${link[@]}"
record "endbr64, at fixed addresses" -- "${counts[@]}"
read -ra needs <<<"$(pkg-config --libs liburcu-bp numa)"
build -O1 -L "$lib" -l:libfdr-instrument.a -l:libfdr.a "${needs[@]}" -pthread -lrt -ldl
record "archive" -- "${counts[@]}"

# a library that is not linked with the hooks finds those of the program
cat >plugin.cpp <<'END'
static volatile int sink;
__attribute__((noinline, noclone)) static int inner(int n) { return n + sink; }
extern "C" int run(int n) { int s = 0; for (int i = 0; i < n; i++) s += inner(i); return s; }
END
cat >host.cpp <<'END'
#include <dlfcn.h>
int main()
{
    for (int i = 0; i < 10; i++) {
        void *plugin = dlopen("./plugin.so", RTLD_LAZY);
        if (!plugin) return 1;
        ((int (*)(int))dlsym(plugin, "run"))(20);
        dlclose(plugin);
    }
    return 0;
}
END
g++ -g -O1 "${specs[@]}" -fPIC -shared plugin.cpp -o plugin.so
g++ -g -O1 "${specs[@]}" host.cpp -o program "${link[@]}"
record "plugin" -- main=1 run=10 inner=200

if [ "$bad" != 0 ]; then echo "test_entry_hooks: $bad failed"; exit 1; fi
echo "test_entry_hooks: all good"
