#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house,slow timeout=600
# An installed fdr works for its users. The test installs to a prefix, moves the prefix, and builds the same small
# program there. It uses find_package (shared and static), pkg-config, C++, Fortran and the compiler's hooks, and runs
# each program.
set -euo pipefail
build=${FDR_BUILD:?}
consumer=${FDR_SOURCE:?}/tests/consumer
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then
    echo "instrumented libraries are not for consumers"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix
pc=$(find "$prefix" -name fdr.pc)
libdir=$(dirname "$(dirname "$pc")")
for file in "$libdir/libfdr.so" "$libdir/libfdr.a" "$libdir/libfdr-reader.so" "$libdir/libfdr-reader.a" \
    "$prefix/include/fdr/fdr.h" "$prefix/include/fdr/reader.h" "$prefix/include/fdr/version.h"; do
    [ -e "$file" ] || { echo "not installed: ${file#"$prefix/"}"; exit 1; }
done

# No installed text names a path of the build.
if grep -rIlF -e "$build" -e "$work/first" -e "$FDR_SOURCE" "$prefix"; then
    echo "the files above name the build or source folder"
    exit 1
fi

# run NAME PROGRAM: the program must leave exactly one snapshot, and fdr (if it was built) must find it whole.
run()
{
    local out=$work/run-$1
    mkdir -p "$out"
    echo "run $1"
    (cd "$out" && FDR_DIR=$out LD_LIBRARY_PATH=$libdir timeout 60 "$2")
    local files=("$out"/*.fdr)
    if [ ${#files[@]} != 1 ] || [ ! -s "${files[0]}" ]; then
        echo "$1: expected one snapshot, got: $(ls -A "$out")"
        return 1
    fi
    if [ -x "$prefix/bin/fdr" ]; then "$prefix/bin/fdr" check "${files[0]}"; fi
}

cmake -S "$consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" 2>&1 ||
    { cat "$work/configure.log"; exit 1; }
cmake --build "$work/build" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
for name in consumer_shared consumer_static consumer_cxx; do
    run "$name" "$work/build/$name"
done
if [ -x "$work/build/consumer_hooks" ]; then run consumer_hooks "$work/build/consumer_hooks"; fi
if [ -x "$work/build/consumer_reader" ]; then "$work/build/consumer_reader"; fi

export PKG_CONFIG_PATH=$libdir/pkgconfig
# reads_and_writes NAME PROGRAM: its input and output must be in its recording.
reads_and_writes()
{
    FDR_FINALIZE=snapshot run "$1" "$2"
    if [ ! -x "$prefix/bin/fdr" ]; then return; fi
    "$prefix/bin/fdr" dump --tsv --class io "$work/run-$1"/*.fdr | grep -q $'io_end\t.*written.txt\top=write bytes=6' ||
        { echo "$1: its writes are not recorded"; return 1; }
}
if [ -x "$work/build/consumer_io" ]; then
    reads_and_writes consumer_io "$work/build/consumer_io"
    read -ra flags <<<"$(pkg-config --cflags --libs fdr-io)"
    cc -Wl,--as-needed "${flags[@]}" "$consumer/io.c" -o "$work/io_first"
    reads_and_writes io_first "$work/io_first"
fi
read -ra flags <<<"$(pkg-config --cflags --libs fdr)"
cc -std=c11 -Wall -Wextra -Werror "$consumer/consumer.c" -o "$work/by_pkgconfig" "${flags[@]}"
run by_pkgconfig "$work/by_pkgconfig"
read -ra flags <<<"$(pkg-config --static --cflags --libs fdr | sed 's/-lfdr\b/-l:libfdr.a/')"
cc -std=c11 "$consumer/consumer.c" -o "$work/by_pkgconfig_static" "${flags[@]}"
run by_pkgconfig_static "$work/by_pkgconfig_static"
# With the libraries before the object, the linker does not know yet that the hooks are needed. Even so fdr's hooks must
# be linked, not the C library's empty ones.
read -ra flags <<<"$(pkg-config --cflags --libs fdr-instrument-all)"
echo 'int main(void) { return 0; }' >"$work/hooked.c"
cc -Wl,--as-needed "${flags[@]}" "$work/hooked.c" -o "$work/hooked"
readelf -d "$work/hooked" | grep -q 'NEEDED.*libfdr-instrument' || { echo "FAIL: fdr-instrument before the object is not linked"; exit 1; }
# hooked NAME PROGRAM HOOKS: records the C++ program and checks which functions were hooked. HOOKS: `own` (no function of
# the standard library), `rest` (those that were not inlined) or `all`.
hooked()
{
    FDR_FINALIZE=snapshot run "$1" "$2"
    "$prefix/bin/fdr" stats --json "$work/run-$1"/*.fdr >"$work/stats.json"
    python3 - "$1" "$3" "$work/stats.json" <<'END'
import json, sys
name, hooks, stats = sys.argv[1:]
found = {row["name"]: row["calls"] for row in json.load(open(stats)) if row["calls"]}
def calls(text): return sum(n for function, n in found.items() if function.startswith(text))
# Own functions: 97 sums, if the compiler has not inlined them before it placed the hooks.
wrong = calls("own_leaf") != 1000 or calls("own_loop") != 1 or calls("main") != 1
wrong |= calls("own_total::add") != (0 if hooks == "rest" else 97)
standard = {function for function in found if "std::" in function or "gnu_cxx" in function or "operator new" in function}
element = calls("std::vector<int, std::allocator<int> >::operator[]")
wrong |= element != (1000 if hooks == "all" else 0) or (hooks == "own" and len(standard) > 0)
print(f"{name}: {len(found)} functions hooked, {len(standard)} of them of the standard library")
if wrong: sys.exit(f"FAIL: {name}: not the hooks '{hooks}': {found}")
END
}
if [ -x "$prefix/bin/fdr" ] && "$prefix/bin/fdr" version --build | grep -q '^with:.*\bdw\b'; then
    clang=$(command -v clang++ || echo clang++-14) # Debian's package clang-14 has only the second
    for compiler in g++ "${clang##*/}"; do
        if ! command -v "$compiler" >/dev/null; then echo "no $compiler"; continue; fi
        hooks=rest module=fdr-instrument
        if [ "$compiler" != g++ ]; then module=fdr-instrument-clang; elif [ ! -e "$libdir/fdr/instrument.specs" ]; then hooks=own; fi
        tree=$work/build-$compiler
        cmake -S "$consumer" -B "$tree" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" 2>&1 ||
            { cat "$work/configure.log"; exit 1; }
        cmake --build "$tree" --target consumer_hooks_cxx consumer_hooks_all >"$work/build.log" 2>&1 ||
            { cat "$work/build.log"; exit 1; }
        hooked "$compiler-default" "$tree/consumer_hooks_cxx" "$hooks"
        hooked "$compiler-property" "$tree/consumer_hooks_all" all
        cmake -DFDR_INSTRUMENT_ALL=ON "$tree" >/dev/null
        cmake --build "$tree" --target consumer_hooks_cxx >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
        hooked "$compiler-variable" "$tree/consumer_hooks_cxx" all
        for words in "$module $hooks" "fdr-instrument-all all"; do
            read -ra flags <<<"$(pkg-config --cflags --libs "${words% *}")"
            "$compiler" -O2 "$consumer/hooks.cpp" -o "$work/hooks" "${flags[@]}"
            hooked "$compiler-${words% *}" "$work/hooks" "${words#* }"
        done
    done
    # g++ without optimisation, or for another reason of instrument.specs, has the hooks of C.
    read -ra flags <<<"$(pkg-config --cflags --libs fdr-instrument)"
    for options in -O0 "-O2 -flto" "-O2 -finstrument-functions-exclude-file-list=/nowhere/"; do
        read -ra more <<<"$options"
        g++ "${more[@]}" "$consumer/hooks.cpp" -o "$work/hooks" "${flags[@]}"
        hooked "g++ $options" "$work/hooks" own
    done
else
    echo "no names of functions: the hooks in C++ are not checked"
fi
# A fully static program: its hooks begin before main, when the unwinder of such a program would abort.
cat >"$work/all_static.c" <<'END'
#include <fdr/fdr.h>
static __attribute__((noinline)) int leaf(int x) { for (volatile int i = 0; i < 1000;) i = i + 1; return x + 1; }
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 20000; i++) sum = leaf(sum);
    return fdr_snapshot("all static") || fdr_usage().presented < 20000;
}
END
read -ra flags <<<"$(pkg-config --static --cflags --libs fdr-instrument-all)"
mkdir "$work/run-static"
if cc -static "$work/all_static.c" -o "$work/all_static" "${flags[@]}" 2>"$work/all_static.txt"; then
    for settings in FDR_SAMPLE=1kHz,unwind FDR_EDGE_COUNTERS=page-faults FDR_SAMPLE=off; do
        env "$settings" FDR_DIR="$work/run-static" FDR_LIVE_DIR="$work" "$work/all_static" 2>"$work/all_static.txt" ||
            { echo "FAIL: all static, $settings: status $?"; cat "$work/all_static.txt"; exit 1; }
    done
else
    echo "no program all of which is static: $(tail -1 "$work/all_static.txt")"
fi
read -ra flags <<<"$(pkg-config --cflags --libs fdr-reader)"
cc -std=c11 -Wall -Wextra -Werror "$consumer/reader.c" -o "$work/reader_by_pkgconfig" "${flags[@]}"
LD_LIBRARY_PATH=$libdir "$work/reader_by_pkgconfig"

# In Fortran the module is compiled with the program.
if command -v gfortran >/dev/null; then
    read -ra flags <<<"$(pkg-config --libs fdr)"
    gfortran -std=f2008 -Wall -Wextra -Werror -J "$work" -c "$prefix/include/fdr/fdr.f90" -o "$work/fdr.o"
    gfortran -std=f2008 -Wall -Werror -I "$work" "$consumer/consumer.f90" "$work/fdr.o" -o "$work/fortran" "${flags[@]}"
    run fortran "$work/fortran"
    if [ -x "$prefix/bin/fdr" ]; then
        "$prefix/bin/fdr" dump --tsv "$work"/run-fortran/*.fdr | cut -f3,6,7 >"$work/fortran.tsv"
        for line in $'enter\touter loop\t' $'marker\tround\tvalue=3' $'metric\ttemperature\tvalue=276.25' $'metric\tsteps\tvalue=-3' \
            $'send\t.*peer=1 tag=7 comm=[^ ]* bytes=4096' $'coll_end\t.*' \
            $'send\t.*tag=8 .*bytes=64 ordinal=41' $'recv\t.*bytes=65 ordinal=42 ambiguous=1' \
            $'recv\t.*bytes=66 ordinal=\\? token=5' $'resolve\t.*token=5 ordinal=43' \
            $'coll_begin\t.*ordinal=3' $'coll_end\t.*sent=1 received=2 ordinal=3' \
            $'event\thalo exchanged\tcells=-3 seconds=1.5' $'event\tboth\ta=-5 bc=6'; do
            [ "$(grep -cE "^$line" "$work/fortran.tsv")" -ge 1 ] || { echo "Fortran: no '$line' in"; cat "$work/fortran.tsv"; exit 1; }
        done
        "$prefix/bin/fdr" info "$work"/run-fortran/*.fdr | grep -q 'solver' || { echo "Fortran: no thread name"; exit 1; }
        "$prefix/bin/fdr" info "$work"/run-fortran/*.fdr | grep -qx 'note       case = 17' || { echo "Fortran: no note"; exit 1; }
        "$prefix/bin/fdr" info --json "$work"/run-fortran/*.fdr | grep -q '"case": *"17"' || { echo "Fortran: no note in JSON"; exit 1; }
    fi
fi
version=$(pkg-config --modversion fdr)
if [ -x "$prefix/bin/fdr" ]; then
    "$prefix/bin/fdr" version | grep -qF "$version" || { echo "fdr version and fdr.pc differ"; exit 1; }
fi
echo "consumers: ok"
