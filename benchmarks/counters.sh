#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Row i: counters sampled by the monitor thread, against the same counters read at every edge. The program is the Lua
# interpreter of the demo, with every function hooked. Measured are size of the recording and time, as in figures 6 and 4
# of Ilsche et al. 2014. All variants run by turns in each round; recordings are complete (nothing is reduced).
#
#     events    calls of all functions; "chosen": only lua_callk and lua_pcallk (the paper filters functions, too)
#     counters  none; sampled every ms; read at every edge of what is recorded
#
# usage: counters.sh [--rounds N] [--json FILE]
# FDR_BUILD: a release build. FDR_COUNTERS_LUA: rounds of the demo's jobs in each run (2).
# shellcheck disable=SC1091
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=${FDR_SOURCE:-$(dirname "$here")}
build=${FDR_BUILD:-$source_dir/build/release}
packages=${FDR_DEMO_DIR:-$source_dir/build/demo}
out=$packages/counters
# shellcheck source=scripts/source_package.sh
. "$source_dir/scripts/source_package.sh"
# shellcheck source=scripts/lua.sh
. "$source_dir/scripts/lua.sh"

rounds=5
json=
while [ $# -gt 0 ]; do
    case $1 in
        --rounds) rounds=${2:?}; shift 2 ;;
        --json) json=${2:?}; shift 2 ;;
        *) echo "usage: counters.sh [--rounds N] [--json FILE]" >&2; exit 64 ;;
    esac
done
case $rounds in '' | *[!0-9]* | 0) echo "counters: --rounds $rounds is no number" >&2; exit 64 ;; esac
jobs=${FDR_COUNTERS_LUA:-2}
unset "${!FDR_@}"

source_package lua5.4 "$packages"
lib=$build/lib
mkdir -p "$out/run"
key="-O2 -g hooked $(cc --version | head -1)"
if [ "$(cat "$out/key" 2>/dev/null)" != "$key" ]; then
    lua_objects "$packages/lua5.4" "$out/objects" -O2 -g -finstrument-functions >"$out/log" 2>&1
    lua_objects "$packages/lua5.4" "$out/plain" -O2 -g >>"$out/log" 2>&1
    printf '%s\n' "$key" >"$out/key"
fi
lua_link "$out/objects" "$out/lua" -L "$lib" -Wl,-rpath,"$lib" -lfdr-instrument -lfdr
lua_link "$out/plain" "$out/lua-plain"
printf 'exclude name *\ninclude name lua_callk\ninclude name lua_pcallk\n' >"$out/chosen"
printf 'exclude name *\ncounters name lua_callk\ncounters name lua_pcallk\n' >"$out/chosen-edges"

counters=page-faults,context-switches,task-clock
common=(FDR_BUFFER=128M FDR_ARENA=anonymous FDR_STRATEGY=whole FDR_DISK=2G "FDR_DIR=$out/run")
variants=(plain all all-sampled all-edges chosen chosen-sampled chosen-edges)
settings()
{
    case $1 in
        all) ;;
        all-sampled) echo "FDR_COUNTERS=$counters" ;;
        all-edges) echo "FDR_EDGE_COUNTERS=$counters" "FDR_EDGE_REGIONS=*" ;;
        chosen) echo "FDR_FILTER=$out/chosen" ;;
        chosen-sampled) echo "FDR_FILTER=$out/chosen" "FDR_COUNTERS=$counters" ;;
        chosen-edges) echo "FDR_FILTER=$out/chosen-edges" "FDR_EDGE_COUNTERS=$counters" ;;
    esac
}

# run VARIANT FINALIZE: runs the program once
run()
{
    local program=$out/lua words=()
    [ "$1" != plain ] || program=$out/lua-plain
    read -ra words <<<"$(settings "$1")"
    env "${common[@]}" "FDR_FINALIZE=$2" "${words[@]}" "$program" "$source_dir/scripts/demo.lua" x "$jobs" >/dev/null 2>"$out/err" ||
        { echo "counters: $1 failed: $(head -1 "$out/err")" >&2; return 1; }
}

# sizes VARIANT: prints "bytes calls readings reductions" of the complete recording
sizes()
{
    rm -f "$out/run"/*.fdr
    run "$1" snapshot
    "$build/bin/fdr" info --json "$out/run"/*.fdr | python3 -c '
import json, sys
info = json.load(sys.stdin)
kept = {c: sum(r["presented"] for r in info["ledger"] if r["class"] == c) for c in ("region", "user")}
print(info["bytes_stored"], kept["region"], kept["user"], len(info["reductions"]))'
    rm -f "$out/run"/*.fdr
}

# times VARIANT: prints "wall user system"
times()
{
    local TIMEFORMAT='%R %U %S'
    { time run "$1" none; } 2>&1
}

: >"$out/results"
for variant in "${variants[@]}"; do
    [ "$variant" != plain ] || continue
    echo "size $variant $(sizes "$variant")" >>"$out/results"
done
for ((round = 1; round <= rounds; round++)); do
    for variant in "${variants[@]}"; do
        line="time $variant $(times "$variant")"
        echo "$line" >>"$out/results"
        echo "counters: round $round/$rounds: $line" >&2
    done
done

JSON=$json COUNTERS=$counters python3 - "$out/results" <<'END'
import json, os, statistics, sys
runs, sizes = {}, {"plain": [0, 0, 0, 0]}
for line in open(sys.argv[1]):
    what, name, *numbers = line.split()
    if what == "size": sizes[name] = [int(n) for n in numbers]
    else: runs.setdefault(name, []).append([float(n) for n in numbers])
table = []
for name, rows in runs.items():
    base = name.split("-")[0]
    cpu = [r[1] + r[2] for r in rows]
    over = sorted(c / (b[1] + b[2]) for c, b in zip(cpu, runs[base]))
    wall = sorted(r[0] / b[0] for r, b in zip(rows, runs[base]))
    plain = sorted(c / (b[1] + b[2]) for c, b in zip(cpu, runs["plain"]))
    size, calls, readings, reductions = sizes[name]
    base_size = sizes[base][0]
    table.append({"variant": name, "cpu_s": statistics.median(cpu), "over_base": statistics.median(over), "over_base_min": over[0],
                  "over_base_max": over[-1], "wall_over_base": statistics.median(wall), "over_plain": statistics.median(plain),
                  "bytes": size, "calls": calls, "readings": readings, "reductions": reductions, "size_over_base": size / base_size if base_size else 0,
                  "rounds": len(rows)})
print(f"counters: {os.environ['COUNTERS']}")
print("| variant | CPU s | over without counters | over the plain program | MiB | over without counters | calls | readings |")
print("|---|---|---|---|---|---|---|---|")
for r in table:
    print(f"| {r['variant']} | {r['cpu_s']:.2f} | {r['over_base']:.2f} ({r['over_base_min']:.2f} .. {r['over_base_max']:.2f}) | "
          f"{r['over_plain']:.1f} | {r['bytes'] / 1048576:.2f} | {r['size_over_base']:.2f} | {r['calls']:,.0f} | {r['readings']:,.0f} |")
if os.environ["JSON"]:
    with open(os.environ["JSON"], "w") as f: json.dump({"counters": os.environ["COUNTERS"], "table": table}, f, indent=1)
END
