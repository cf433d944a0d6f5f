#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=600
# fdr crash, fdr samples and fdr stats name the same lines and inlined functions as addr2line. Cases: nested inlining, a
# lambda in a thread, functions in a namespace, nested functions. The programs are built by gcc, by clang, which writes
# no .debug_aranges, and by both.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
options=(-g -O2 -w "-I$FDR_SOURCE/include" "-L$lib" "-Wl,-rpath,$lib" -pthread)
if [ -n "${FDR_SANITIZE:-}" ]; then echo "sanitizers have handlers of their own"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "no $fdr (jansson or zstd missing)"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "no lines without libdw"; exit 77; fi
if ! command -v addr2line >/dev/null; then echo "no addr2line to compare with"; exit 77; fi
work=$(mktemp -d)
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-lines-XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
export FDR_LIVE_DIR FDR_DIR=$work FDR_BUFFER=1M
cd "$work"

bad=0
has() { grep -qE -- "$1" "$2" || { echo "$what: no '$1' in:"; cat "$2"; bad=1; }; }
has_not() { if grep -qE -- "$1" "$2"; then echo "$what: '$1' is in:"; cat "$2"; bad=1; fi; }

cat >nested.c <<'END'
#define INLINE static inline __attribute__((always_inline))
INLINE void a(volatile int *p) { *p = 1; }
INLINE void b(volatile int *p) { int i; { int k = 1; a(p + k); } }
INLINE void c(volatile int *p) { b(p); }
__attribute__((noinline)) void outer(int *p) { c(p); __asm__ volatile(""); }
END
printf '#include <fdr/fdr.h>\nvoid outer(int *p);\nint main(int n, char **v) { fdr_init(0); outer((int *)(long)(n - 1)); return 0; }\n' >main.c
cat >space.cpp <<'END'
#include <fdr/fdr.h>
namespace space {
namespace {
struct thing { volatile int *p; int look(int i) const { return p[i]; } };
inline int twice(const thing &t, int i) { return 2 * t.look(i); }
}
__attribute__((noinline)) int solve(int *p, int n)
{
    thing t{p};
    return twice(t, n);
}
}
int main(int n, char **) { fdr_init(nullptr); return space::solve((int *)(long)(n - 1), n); }
END
cat >inside.c <<'END'
#include <fdr/fdr.h>
static inline __attribute__((always_inline)) int load(volatile int *p) { return *p; }
__attribute__((noinline)) static int around(volatile int *p, int n)
{
    __attribute__((noinline)) int nested(int v) { return load(p) + v; }
    return nested(n) + 1;
}
int main(int n, char **v) { fdr_init(0); return around((int *)(long)(n - 1), n); }
END
cat >lambda.cpp <<'END'
#include <fdr/fdr.h>
#include <thread>
struct S { void solve(int *p); };
__attribute__((noinline)) void leaf(int *p) { *p = 1; asm volatile(""); }
void S::solve(int *p)
{
    auto g = [p](int i) { leaf(p + i); asm volatile(""); };
    std::thread t([&] { g(3); asm volatile(""); });
    t.join();
}
int main() { fdr_init(nullptr); S s; s.solve(nullptr); }
END

# Compares the innermost function and its inlined callees between fdr and addr2line.
cat >compare.py <<'END'
import json, os, re, subprocess, sys
[d] = json.load(sys.stdin)
frames = [t for t in d["threads"] if t["faulting"]][0]["frames"]
here = frames[:1 + [f["inline"] for f in frames].index(False)]
mine = [(os.path.basename(f["file"]), f["line"]) for f in here]
said = subprocess.run(["addr2line", "-ie", frames[0]["module"], hex(frames[0]["offset"])], capture_output=True, text=True, check=True).stdout
theirs = [(os.path.basename(line.split(":")[0]), int(line.split(":")[1].split()[0])) for line in said.splitlines()]
names = [re.sub(r"\(anonymous namespace\)::", "", f["function"]).split("(")[0].split("::")[-1].split(".")[0] for f in here]
if mine != theirs or names != sys.argv[1:]: sys.exit(f"{names} {mine}, addr2line: {theirs}")
END

# dies PROGRAM FUNCTION...: runs the program until it crashes; these are its innermost functions, the deepest first.
dies()
{
    rm -f ./*.crash.fdr
    { (ulimit -c 0; "./$1" || true); } 2>/dev/null
    "$fdr" crash --registers --full-names ./*.crash.fdr >out.txt
    "$fdr" crash --json ./*.crash.fdr | python3 compare.py "${@:2}" || { echo "FAIL: $what"; bad=1; }
}

compilers=(gcc)
if command -v clang >/dev/null; then compilers+=(clang); else echo "no clang: its code is not tried"; fi
for cc in "${compilers[@]}"; do
    what="$cc, nested"
    $cc "${options[@]}" main.c nested.c -o nested -lfdr
    dies nested a b c outer
    has '#0 .* a \[inlined\] at .*nested.c:2$' out.txt
    has '#0 .* b \[inlined\] at .*nested.c:3$' out.txt
    has '#0 .* c \[inlined\] at .*nested.c:4$' out.txt
    has '#0 .* outer at .*nested.c:5$' out.txt
    has '#1 .* main at .*main.c:3$' out.txt
    what="$cc, dwarf 4"
    $cc -gdwarf-4 "${options[@]}" main.c nested.c -o nested -lfdr
    dies nested a b c outer
    cxx=${cc/gcc/g++}
    cxx=${cxx/clang/clang++}
    what="$cxx, namespace"
    if ! command -v "$cxx" >/dev/null; then echo "no $cxx"; continue; fi
    $cxx -std=c++17 "${options[@]}" space.cpp -o space -lfdr
    dies space look twice solve
    what="$cxx, lambda"
    $cxx -std=c++17 "${options[@]}" -O1 lambda.cpp -o lambda -lfdr
    dies lambda leaf
    sed -n '/^where/,/^ *r8/p' out.txt >worker.txt
    has '#0 .* leaf\(int\*\) at .*lambda.cpp:4$' worker.txt
    has '#[0-9]+ .* at .*lambda.cpp:7$' worker.txt
    has '#[0-9]+ .* at .*lambda.cpp:8$' worker.txt
    has_not ' (main|S::solve\(int\*\)|solve) (\[inlined\] )?at ' worker.txt
done
what="a nested function"
gcc "${options[@]}" inside.c -o inside -lfdr
dies inside load nested
if [ ${#compilers[@]} = 2 ]; then
    for one in gcc clang; do # whoever of them writes .debug_aranges: what is not in it is not its neighbour's
        what="nested.c by $one, main.c by the other"
        $one "${options[@]}" -c nested.c -o nested.o
        if [ $one = gcc ]; then clang "${options[@]}" -c main.c -o main.o; else gcc "${options[@]}" -c main.c -o main.o; fi
        for order in "main.o nested.o" "nested.o main.o"; do
            # shellcheck disable=SC2086
            gcc $order "${options[@]}" -o nested -lfdr
            dies nested a b c outer
            has '#1 .* main at .*main.c:3$' out.txt
        done
    done
fi

# Samples: the time counts for each function of a chain of inlined ones.
cat >hot.c <<'END'
#include <fdr/fdr.h>
static volatile double s;
#define INLINE static inline __attribute__((always_inline))
INLINE void a(void) { for (int i = 0; i < 1000000; i++) s = s * 1.0000001 + 1; }
INLINE void b(void) { a(); }
INLINE void c(void) { b(); }
__attribute__((noinline)) void outer(void) { c(); __asm__ volatile(""); }
int main(void)
{
    fdr_init(0);
    for (int i = 0; i < 200; i++) outer();
    return fdr_snapshot("end") != 0;
}
END
for cc in "${compilers[@]}"; do
    what="$cc, samples"
    $cc "${options[@]}" hot.c -o hot -lfdr
    mkdir "samples-$cc"
    FDR_DIR=$work/samples-$cc FDR_SAMPLE=1kHz ./hot
    "$fdr" samples --folded "samples-$cc"/*.fdr >out.txt
    has ';outer;c;b;a [0-9]' out.txt
    "$fdr" samples --by line "samples-$cc"/*.fdr >out.txt
    has 'hot.c:4' out.txt
done

# fdr stats knows the places of functions that the compiler's hooks report by address.
if [ -e "$lib/libfdr-instrument.so" ]; then
    printf 'int main(void)\n{\n    return 0;\n}\n' >hooked.c
    for cc in "${compilers[@]}"; do
        what="$cc, stats"
        $cc "${options[@]}" -finstrument-functions hooked.c -o hooked -lfdr-instrument -lfdr
        mkdir "hooked-$cc"
        FDR_DIR=$work/hooked-$cc FDR_FINALIZE=snapshot ./hooked
        "$fdr" stats --json "hooked-$cc"/*.fdr | tr -d ' \n' >out.txt
        has '"file":"[^"]*hooked.c"' out.txt
    done
fi
[ "$bad" = 0 ]
