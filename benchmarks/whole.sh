#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whole programs (row h): the time that recording adds, over the time that hooks add which only read the clock. Each
# program is linked four times: without hooks (objects of their own), and from the same hooked objects with empty hooks,
# with hooks_clock.c and with libfdr-instrument. The four run by turns; user CPU time counts.
#
#     added = time - time without hooks           ratio = added(fdr) / added(clock), per round; the median is the result
#     net: the same above the time with empty hooks, so without the cost of calling a hook
#
# usage: whole.sh [--rounds N] [--json FILE] [PROGRAM...]       programs: lua sqlite bzip2 (all)
# FDR_BUILD: a release build. The sources are Debian source packages, cached in build/demo.
# shellcheck disable=SC1091,SC2034,SC2317 # functions and variables are called by the program's name
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=${FDR_SOURCE:-$(dirname "$here")}
build=${FDR_BUILD:-$source_dir/build/release}
packages=${FDR_DEMO_DIR:-$source_dir/build/demo}
out=$packages/whole
# shellcheck source=scripts/source_package.sh
. "$source_dir/scripts/source_package.sh"
# shellcheck source=scripts/lua.sh
. "$source_dir/scripts/lua.sh"

rounds=5
json=
programs=()
while [ $# -gt 0 ]; do
    case $1 in
        --rounds) rounds=${2:?}; shift 2 ;;
        --json) json=${2:?}; shift 2 ;;
        lua | sqlite | bzip2) programs+=("$1"); shift ;;
        *) echo "usage: whole.sh [--rounds N] [--json FILE] [lua|sqlite|bzip2...]" >&2; exit 64 ;;
    esac
done
[ ${#programs[@]} != 0 ] || programs=(lua sqlite bzip2)
case $rounds in '' | *[!0-9]* | 0) echo "whole: --rounds $rounds is no number" >&2; exit 64 ;; esac

unset "${!FDR_@}"
flags=(-O2 -g)
hooks=-finstrument-functions
lib=$build/lib
[ -e "$lib/libfdr-instrument.so" ] || { echo "whole: $lib/libfdr-instrument.so is not built" >&2; exit 2; }
mkdir -p "$out"
cc -O2 -std=gnu11 -D_GNU_SOURCE= -shared -fPIC -DHOOKS_EMPTY "$here/hooks_clock.c" -o "$out/libhooks-empty.so"
cc -O2 -std=gnu11 -D_GNU_SOURCE= -shared -fPIC "$here/hooks_clock.c" -o "$out/libhooks-clock.so"

# ---- the programs: objects_NAME DIR FLAG..., then run_NAME PROGRAM -----------------------------------------------------

objects_lua() { lua_objects "$packages/lua5.4" "$@"; }
run_lua() { "$1" "$source_dir/scripts/demo.lua" x "${FDR_WHOLE_LUA:-12}"; }
package_lua=lua5.4 libraries_lua=(-lm -ldl)

objects_sqlite()
{
    local dir=$1
    shift
    if [ ! -e "$packages/sqlite3/whole/sqlite3.c" ]; then # one file, as the SQLite project recommends
        command -v tclsh >/dev/null || { echo "whole: sqlite needs tclsh (package tcl)" >&2; return 1; }
        mkdir -p "$packages/sqlite3/whole"
        (cd "$packages/sqlite3/whole" && ../configure --disable-tcl --disable-readline && make sqlite3.c) \
            >"$out/sqlite.log" 2>&1 || { echo "whole: sqlite3.c cannot be made (log: $out/sqlite.log)" >&2; return 1; }
    fi
    local file
    for file in "$packages/sqlite3/whole/sqlite3.c" "$packages/sqlite3/test/speedtest1.c"; do
        cc "$@" -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -I "$packages/sqlite3/whole" -c "$file" \
            -o "$dir/$(basename "$file" .c).o" &
    done
    wait
}
run_sqlite() { "$1" --memdb --size "${FDR_WHOLE_SQLITE:-8}" --testset main; }
package_sqlite=sqlite3 libraries_sqlite=(-lm)

objects_bzip2()
{
    local dir=$1 file
    shift
    for file in blocksort huffman crctable randtable compress decompress bzlib bzip2; do
        cc "$@" -D_FILE_OFFSET_BITS=64 -c "$packages/bzip2/$file.c" -o "$dir/$file.o"
    done
    if [ ! -e "$out/bzip2.input" ]; then
        for _ in 1 2; do cat "$packages/bzip2"/*.c "$packages/bzip2"/*.html "$packages/bzip2"/sample*; done >"$out/bzip2.input"
    fi
}
run_bzip2() { for _ in 1 2 3; do "$1" -9 -c "$out/bzip2.input"; done; }
package_bzip2=bzip2 libraries_bzip2=()

# ---- building ------------------------------------------------------------------------------------------------------------

variants=(plain empty clock fdr)

build_program()
{
    local name=$1 dir=$out/$1 key
    local -n package=package_$1 libraries=libraries_$1
    source_package "$package" "$packages" || return 1
    key="${flags[*]} $(cc --version | head -1)"
    if [ "$(cat "$dir/key" 2>/dev/null)" != "$key" ]; then
        rm -rf "$dir"
        mkdir -p "$dir/plain" "$dir/hooked"
        "objects_$name" "$dir/plain" "${flags[@]}" >"$dir/log" 2>&1 || { tail -3 "$dir/log" >&2; return 1; }
        "objects_$name" "$dir/hooked" "${flags[@]}" "$hooks" >>"$dir/log" 2>&1 || { tail -3 "$dir/log" >&2; return 1; }
        printf '%s\n' "$key" >"$dir/key"
    fi
    cc -o "$dir/$name.plain" "$dir"/plain/*.o "${libraries[@]}"
    cc -o "$dir/$name.empty" "$dir"/hooked/*.o -L "$out" -Wl,-rpath,"$out" -lhooks-empty "${libraries[@]}"
    cc -o "$dir/$name.clock" "$dir"/hooked/*.o -L "$out" -Wl,-rpath,"$out" -lhooks-clock "${libraries[@]}"
    cc -o "$dir/$name.fdr" "$dir"/hooked/*.o -L "$lib" -Wl,-rpath,"$lib" -lfdr-instrument -lfdr "${libraries[@]}"
}

# ---- measuring -----------------------------------------------------------------------------------------------------------

export FDR_FINALIZE=none FDR_BUFFER=64M FDR_DIR=$out

# user_time NAME VARIANT: prints seconds of user CPU time
user_time()
{
    local TIMEFORMAT=%U
    { time "run_$1" "$out/$1/$1.$2" >/dev/null 2>"$out/$1/err"; } 2>&1 ||
        { echo "whole: $1 with $2 hooks failed: $(head -1 "$out/$1/err")" >&2; return 1; }
}

# calls NAME: prints the number of calls, from the exact totals
calls()
{
    local dir=$out/$1/calls
    rm -rf "$dir"
    mkdir -p "$dir"
    FDR_FINALIZE=snapshot FDR_DIR=$dir "run_$1" "$out/$1/$1.fdr" >/dev/null 2>&1 || true
    for file in "$dir"/*.fdr; do
        "$build/bin/fdr" stats --json --by depth "$file" 2>/dev/null || true
    done | grep -oE '"calls": *[0-9]+' | grep -oE '[0-9]+' | awk '{ n += $1 } END { printf "%.0f", n }'
    rm -rf "$dir"
}

: >"$out/results"
status=0
for name in "${programs[@]}"; do
    if ! build_program "$name"; then
        echo "whole: $name is left out" >&2
        status=1
        continue
    fi
    for variant in "${variants[@]}"; do user_time "$name" "$variant" >/dev/null; done # warm
    count=$(calls "$name")
    for ((round = 1; round <= rounds; round++)); do
        line="$name ${count:-0}"
        for variant in "${variants[@]}"; do line+=" $(user_time "$name" "$variant")"; done
        echo "$line" >>"$out/results"
        echo "whole: round $round/$rounds: $line" >&2
    done
done

JSON=$json python3 - "$out/results" <<'END'
import json, os, statistics, sys
programs = {}
for line in open(sys.argv[1]):
    name, calls, *times = line.split()
    programs.setdefault(name, (int(calls), []))[1].append([float(t) for t in times])
table = []
print("| program | calls | plain s | empty hooks s | clock hooks s | fdr s | ns/call clock | ns/call fdr | ratio h (spread) | net of empty hooks (spread) |")
print("|---|---|---|---|---|---|---|---|---|---|")
for name, (calls, rounds) in programs.items():
    plain, empty, clock, fdr = (statistics.median(r[i] for r in rounds) for i in range(4))
    def ratios(base): return sorted((r[3] - r[base]) / (r[2] - r[base]) if r[2] > r[base] else float("nan") for r in rounds)
    added, net = ratios(0), ratios(1)
    each = 1e9 / calls if calls else float("nan")
    row = {"program": name, "calls": calls, "plain_s": plain, "empty_s": empty, "clock_s": clock, "fdr_s": fdr,
           "clock_ns_per_call": (clock - empty) * each, "fdr_ns_per_call": (fdr - empty) * each, "rounds": len(rounds)}
    for key, r in ("ratio", added), ("net", net):
        row |= {key: statistics.median(r), key + "_min": r[0], key + "_max": r[-1]}
    table.append(row)
    said = " | ".join(f"{row[k]:.2f} ({row[k + '_min']:.2f}-{row[k + '_max']:.2f})" for k in ("ratio", "net"))
    print(f"| {name} | {calls / 1e6:.1f} M | {plain:.2f} | {empty:.2f} | {clock:.2f} | {fdr:.2f} | "
          f"{row['clock_ns_per_call']:.1f} | {row['fdr_ns_per_call']:.1f} | {said} |")
if os.environ["JSON"]:
    with open(os.environ["JSON"], "w") as f: json.dump({"whole": table}, f, indent=1)
END
exit "$status"
