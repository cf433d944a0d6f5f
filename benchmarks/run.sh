#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The benchmarks: `./dev bench [--write] [PART...]`. Prints one table and writes the tables behind it beside the raw
# figures; --write also puts all of them into benchmarks/RESULTS.md.
# Parts: call size steps filter reader whole cxx overhead counters samples memory bins stall crash (default: all of these),
# and six that only run when asked for: peers, which joins a comparison harness (FDR_PEERS); mpi, whose programs are
# packages of Debian (mpi.py, mpi_figures.py; MPI_PAIRS: pairs of each program, 30); page, the page of a full snapshot in
# Chromium (page.py); scale, a job of thousands of ranks (scale.py; SCALE_RANKS: "64,256,1024,4096"); traces, fdr beside
# OTF2 (traces.py); and exports, each exporter and fdr sql (exports.py).
# Environment: FDR_BUILD, FDR_SOURCE (set by ./dev); ROUNDS (5); CALLS per process of the call benchmarks (4000000);
# FDR_CORPUS and FDR_PEERS: folders with event streams (*.evt.zst) and with the harness; FDR_BENCH_OUT: where results go.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=${FDR_SOURCE:-$(dirname "$here")}
build=${FDR_BUILD:-$source/build/release}
corpus=${FDR_CORPUS:-$source/../shared/corpus}
harness=${FDR_PEERS:-$source/../shared/peers}
out=${FDR_BENCH_OUT:-$build/bench}
rounds=${ROUNDS:-5}
calls=${CALLS:-4000000}
tab=$'\t'

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'bench: %s\n' "$*" >&2; exit 1; }
# note ROW...: writes one line of raw figures, separated by tabs.
# skip PART WHY: says and notes that a part, or a piece of it, cannot run on this machine.
note() { local IFS=$tab; printf '%s\n' "$*" >>"$raw"; }
skip() { say "$1: skipped, $2"; note skip "$1" "$2"; }

[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "ROUNDS: not a count: '$rounds'"
[[ $calls =~ ^[1-9][0-9]{3,}$ ]] || die "CALLS: at least 1000: '$calls'"
if [ ! -x "$build/bin/fdr" ] || [ ! -x "$build/benchmarks/bench_call" ]; then
    die "nothing built in $build; run ./dev bench, or cmake --preset release && cmake --build --preset release"
fi
command -v python3 >/dev/null || die "python3 is needed"

write=
if [ "${1:-}" = --write ]; then
    write=$source/benchmarks/RESULTS.md
    shift
    [ -f "$write" ] || die "no $write to write into"
fi
for part in "$@"; do
    case $part in
        call | size | steps | filter | reader | whole | cxx | overhead | counters | samples | memory | bins | stall | crash | peers | mpi | page | scale | traces | exports) ;;
        *) die "no part '$part'; parts: call size steps filter reader whole cxx overhead counters samples memory bins stall crash peers mpi page scale traces exports" ;;
    esac
done
parts=" ${*:-call size steps filter reader whole cxx overhead counters samples memory bins stall crash} "
wanted() { [[ $parts == *" $1 "* ]]; }

mkdir -p "$out"
work=$(mktemp -d "${TMPDIR:-/tmp}/fdr-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
raw=$out/raw.tsv
: >"$raw"

# ---- the measured library: an installed one --------------------------------------------------------------------------

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" 2>&1 || { cat "$work/install.log"; die "install failed"; }
library=$(dirname "$(find "$work/prefix" -name 'libfdr.so' | head -1)")
export LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fdr=$work/prefix/bin/fdr
bench=$build/benchmarks
ldd "$bench/bench_call" | grep -qF "$library/libfdr.so" || die "bench_call does not use the installed libfdr"

have_corpus() { compgen -G "$corpus/*.evt.zst" >/dev/null && command -v zstd >/dev/null; }
no_corpus="no event streams in FDR_CORPUS, or no zstd"
# npb-cg.r0.t0.evt.zst is "npb-cg 0.0"
stream_name() { basename "$1" .evt.zst | sed -E 's/\.r([0-9]+)\.t([0-9]+)$/ \1.\2/'; }

# Builds peer_otf2. Without OTF2's library it prints nothing and fails.
build_otf2()
{
    local flags compiler=${CC:-gcc}
    [ -x "$work/peer_otf2" ] && return 0
    flags=$(pkg-config --cflags --libs otf2 2>/dev/null) || flags=-lopen-trace-format2
    # $flags is split into words on purpose. The libraries come after the source.
    # shellcheck disable=SC2086
    "$compiler" -O2 -D_GNU_SOURCE "$here/peer_otf2.c" -o "$work/peer_otf2" $flags >"$work/otf2.log" 2>&1
}
no_otf2="OTF2 with its headers is not installed (Debian: libopen-trace-format2-dev)"

# ---- a, b, c, f: calls -----------------------------------------------------------------------------------------------

call_once() # ROUND NAME COMMAND...
{
    local round=$1 name=$2 line
    shift 2
    if line=$("$@" 2>>"$out/stderr.txt"); then
        note call "$round" "$name" "${line##*"$tab"}"
    else
        say "call $name: failed (see $out/stderr.txt)"
        note failed call "$name"
    fi
}

part_call()
{
    local round mode c="$bench/bench_call"
    for ((round = 1; round <= rounds; round++)); do
        say "calls, round $round of $rounds"
        for mode in empty floor fdr clock short deep off excluded every min below-min hook excluded-hook tally io; do
            call_once "$round" $mode "$c" -n "$calls" $mode
        done
        call_once "$round" full "$c" -n "$calls" -b 4M fdr
        call_once "$round" last "$c" -n "$calls" -b 4M -s last fdr
        if [ "$(nproc)" -ge 2 ]; then
            for mode in empty floor fdr; do
                call_once "$round" ${mode}2 "$c" -n "$calls" -t 2 $mode
                call_once "$round" ${mode}1 "$c" -n "$calls" -t 2 -a $mode
            done
        fi
        if build_otf2; then call_once "$round" otf2 "$work/peer_otf2" call "$calls"; fi
    done
    build_otf2 || skip otf2 "$no_otf2"
}

# ---- d, e, f: sizes --------------------------------------------------------------------------------------------------

# replay NAME VARIANT STREAM OPTIONS...: notes the figures of one `fdr replay`, and leaves them in $json.
json=
replay()
{
    local name=$1 variant=$2
    shift 2
    if json=$("$fdr" replay "$@" --json 2>>"$out/stderr.txt"); then
        note replay "$name" "$variant" "$(tr -d '\n' <<<"$json")"
    else
        say "replay of $name ($variant): failed (see $out/stderr.txt)"
        note failed size "$name $variant"
    fi
}

# figure KEY: prints a whole number of the last replay, 0 if it has no such key.
figure() { if [[ $json =~ \"$1\":\ *([0-9]+) ]]; then echo "${BASH_REMATCH[1]}"; else echo 0; fi; }

part_size()
{
    local stream name size
    have_corpus || { skip size "$no_corpus"; return 0; }
    build_otf2 || skip otf2 "$no_otf2"
    for stream in "$corpus"/*.evt.zst; do
        name=$(stream_name "$stream")
        say "sizes, $name"
        replay "$name" 64M "$stream" --buffer 64M --output "$work/one.fdr"
        if [ -f "$work/one.fdr" ]; then
            note info "$name" "$("$fdr" info --json "$work/one.fdr" | tr -d '\n')"
            rm -f "$work/one.fdr"
        fi
        replay "$name" 64M/128 "$stream" --buffer 64M --resolution 128ns
        replay "$name" 64M/10us "$stream" --buffer 64M --resolution 10us
        for size in 1M 256K 4M; do
            replay "$name" "$size" "$stream" --buffer "$size"
            replay "$name" "$size/128" "$stream" --buffer "$size" --resolution 128ns
        done
    done
}

# ---- models of each step, the 1 us filter, OTF2's sizes: these read uncompressed streams -----------------------------

part_streams()
{
    local stream name plain
    if ! have_corpus; then
        wanted steps && skip steps "$no_corpus"
        wanted filter && skip filter "$no_corpus"
        return 0
    fi
    for stream in "$corpus"/*.evt.zst; do
        name=$(stream_name "$stream")
        plain=$work/stream.evt
        say "steps and filter, $name"
        zstd -dqf "$stream" -o "$plain"
        if wanted steps || wanted filter; then
            "$bench/bench_encoding" "$plain" | awk -F'\t' -v OFS='\t' -v n="$name" '{$2 = n; print}' >>"$raw"
        fi
        if wanted filter; then
            wanted size || replay "$name" 64M "$stream" --buffer 64M
            replay "$name" filter "$stream" --buffer 64M --min-duration 1us
        fi
        if wanted size && build_otf2; then
            mkdir "$work/otf2"
            "$work/peer_otf2" stream "$work/otf2" "$plain" 2>>"$out/stderr.txt" |
                awk -F'\t' -v OFS='\t' -v n="$name" '{print "otf2", n, $2, $3}' >>"$raw" || note failed otf2 "$name"
            rm -rf "$work/otf2"
        fi
        rm -f "$plain"
    done
    if wanted filter && [ -f "$corpus/README.md" ]; then # | npb-cg 0.0 | events | kept | x.y % | z % |
        sed -nE 's/^\| ([a-z0-9-]+ [0-9]+\.[0-9]+) \| ([0-9,]+) \| ([0-9,]+) \| [0-9.]+ % \| [0-9.]+ % \|$/expected\t\1\t\2\t\3/p' \
            "$corpus/README.md" | tr -d , >>"$raw"
    fi
}

# ---- g: the reader ---------------------------------------------------------------------------------------------------

# time_stats ROUND NAME FILE: notes the wall time of `fdr stats`.
time_stats()
{
    local start end
    start=$(date +%s%N)
    "$fdr" stats "$3" >/dev/null
    end=$(date +%s%N)
    note stats "$1" "$2" "$((end - start))"
}

part_reader()
{
    local stream full=$work/full.fdr round files=() name
    if have_corpus; then
        say "reader: a full snapshot of 64 MiB of all streams, three times over"
        "$fdr" replay "$corpus"/*.evt.zst --repeat 3 --buffer 64M --output "$full" --json >"$work/full.json"
        for stream in "$corpus"/*.evt.zst; do
            name=$work/$(basename "$stream" .evt.zst).fdr
            "$fdr" replay "$stream" --buffer 64M --output "$name" --json >/dev/null
            "$fdr" check "$name" >/dev/null || note failed reader "$(basename "$name")"
            files+=("$name")
        done
    else
        skip "reader/corpus" "$no_corpus; instead a full snapshot of the call benchmark"
        mkdir -p "$work/snapshot"
        "$bench/bench_call" -n 80000000 -b 64M -o "$work/snapshot" fdr >/dev/null
        mv "$work/snapshot"/*.fdr "$full"
    fi
    "$fdr" check "$full" >/dev/null || note failed reader full
    note full "$("$fdr" info --json "$full" | tr -d '\n')"
    for ((round = 1; round <= rounds; round++)); do
        say "reader, round $round of $rounds"
        time_stats "$round" full "$full"
        for name in "$full" "${files[@]}"; do
            "$bench/bench_read" -r 1 "$name" | awk -F'\t' -v OFS='\t' -v r="$round" \
                '{sub(/.*\//, "", $1); sub(/\.fdr$/, "", $1); print "read", r, $1, $2, $3, $4}' >>"$raw" ||
                note failed reader "$(basename "$name")"
        done
    done
}

# ---- h: whole programs -----------------------------------------------------------------------------------------------

part_whole()
{
    if [ ! -f "$here/whole.sh" ]; then
        skip whole "no benchmarks/whole.sh"
        return 0
    fi
    say "whole programs"
    rm -f "$out/whole.json"
    if ! FDR_BUILD=$build FDR_SOURCE=$source bash "$here/whole.sh" --rounds "$rounds" --json "$out/whole.json" \
        >"$out/whole.md" 2>>"$out/stderr.txt"; then
        say "whole programs: failed, or some left out (see $out/stderr.txt)"
        note failed whole whole.sh
    fi
    if [ -s "$out/whole.json" ]; then note whole "$(tr -d '\n' <"$out/whole.json")"; fi
}

# ---- s: hooks in C++ -------------------------------------------------------------------------------------------------

# cxx_build NAME COMPILER MODULE: MODULE is a pkg-config module, or none.
cxx_build()
{
    local flags=()
    if [ "$3" != none ]; then
        read -ra flags <<<"$(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs "$3")"
    fi
    "$2" -O2 -g "$here/hooks_cxx.cpp" -o "$work/$1" "${flags[@]}" 2>>"$out/stderr.txt"
}

part_cxx()
{
    local clang compiler default round variant line passes
    clang=$(command -v clang++ || echo clang++-14)
    for compiler in g++ "${clang##*/}"; do
        command -v "$compiler" >/dev/null || { skip "cxx/$compiler" "no $compiler"; continue; }
        default="fdr-instrument"
        if [ "$compiler" != g++ ]; then default="fdr-instrument-clang"; fi
        say "C++, $compiler"
        if ! { cxx_build cxx-none "$compiler" none && cxx_build cxx-default "$compiler" "$default" &&
            cxx_build cxx-all "$compiler" fdr-instrument-all; }; then
            note failed cxx "$compiler"
            continue
        fi
        for ((round = 1; round <= rounds; round++)); do
            for variant in none default all; do
                passes=5000
                if [ "$variant" = all ]; then passes=200; fi
                if line=$(FDR_FINALIZE=none FDR_BUFFER=64M FDR_DIR=$work "$work/cxx-$variant" "$passes" 2>>"$out/stderr.txt"); then
                    note cxx "$round" "$compiler" "$variant" "$line"
                else
                    note failed cxx "$compiler $variant"
                fi
            done
        done
    done
}

# ---- t: FDR_OVERHEAD -------------------------------------------------------------------------------------------------

# Slices of some 0.1 s of equal work: everything muted (0%), and FDR_OVERHEAD=5%, in turn. The first 15 do not count.
part_overhead()
{
    local name line flags
    local -A sizes=([fib]=200 [sort]=20 [hash]=50 [matrix]=60 [tree]=12 [interpreter]=25 [many]=100 [long]=40 [list]=50
        [threads]=15 [bursts]=1)
    say "FDR_OVERHEAD"
    read -ra flags <<<"$(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs fdr-instrument)"
    if ! "${CC:-gcc}" -O2 -g -finstrument-functions "$here/overhead_programs.c" -o "$work/overhead_programs" "${flags[@]}" \
        -lpthread 2>>"$out/stderr.txt"; then
        note failed overhead overhead_programs.c
        return
    fi
    for name in fib sort hash matrix tree interpreter many long list threads bursts; do
        FDR_FINALIZE=none FDR_BUFFER=64M FDR_DIR=$work "$here/overhead.py" "$work/overhead_programs" "$name" \
            "${sizes[$name]}" $((15 + 9 * rounds)) 5% >"$work/slices" 2>>"$out/stderr.txt" || note failed overhead "$name"
        tail -n +16 "$work/slices" | while read -r line; do note overhead "$name" "$line"; done
    done
}

# ---- counters: sampled, or at every edge ------------------------------------------------------------------------------

part_counters()
{
    say "counters"
    rm -f "$out/counters.json"
    if ! FDR_BUILD=$build FDR_SOURCE=$source bash "$here/counters.sh" --rounds "$rounds" --json "$out/counters.json" \
        >"$out/counters.md" 2>>"$out/stderr.txt"; then
        say "counters: failed (see $out/stderr.txt)"
        note failed counters counters.sh
    fi
    if [ -s "$out/counters.json" ]; then note counters "$(tr -d '\n' <"$out/counters.json")"; fi
}

# ---- o: samples -----------------------------------------------------------------------------------------------------------

# sample_lines COMMAND...: notes each line of the command with six columns.
sample_lines()
{
    "$@" 2>>"$out/stderr.txt" | awk -F'\t' -v OFS='\t' 'NF == 6 {print "samples", $0}' >>"$raw" || note failed samples "$1"
}

part_samples()
{
    say "samples"
    mkdir -p "$work/samples"
    sample_lines "$bench/bench_sampling" cost 30
    sample_lines "$bench/bench_sampling" record "$rounds"
    sample_lines python3 "$here/sampling.py" shares "$build" "$work/samples" 5
    if [ -x /usr/bin/python3 ]; then
        sample_lines python3 "$here/sampling.py" bytes "$build" "$work/samples" 20
    else
        skip samples/bytes "no /usr/bin/python3"
    fi
}

# ---- m: memory that ages: bin sizes, the cost of reductions, the balance -----------------------------------------------

memory_streams="npb-is.r0.t0 npb-lu.r0.t0 comd.r0.t0 lua-json.r0.t0 sqlite.r0.t0"
balance_streams="npb-is.r0.t0 comd.r0.t0 sqlite.r0.t0"
share_streams="comd.r0.t0 sqlite.r0.t0"
bin_sizes="512 1K 4K 16K 64K"

# replay_for NAME VARIANT STREAM MIB LOSSLESS OPTIONS...: replays the stream so often that it would fill MIB without a
# reduction. One pass takes LOSSLESS bytes.
replay_for()
{
    local name=$1 variant=$2 stream=$3 repeat=$((($4 * 1048576 + $5 - 1) / $5))
    shift 5
    replay "$name" "$variant" "$stream" --timer tsc --repeat "$repeat" "$@"
    note repeat "$name" "$variant" "$repeat"
}

# replay_steps NAME VARIANT STREAM REPEAT BUFFER: doubles REPEAT until 1000 steps have given memory back, at most to 8
# times.
replay_steps()
{
    local name=$1 stream=$3 repeat=$4 most=$(($4 * 8)) steps=0
    while [ "$steps" -lt 1000 ] && [ "$repeat" -le "$most" ]; do
        json=$("$fdr" replay "$stream" --timer tsc --buffer "$5" --repeat "$repeat" --json 2>>"$out/stderr.txt") ||
            { note failed memory "$name $2"; return 0; }
        steps=$(figure reductions)
        repeat=$((repeat * 2))
    done
    note replay "$name" "$2" "$(tr -d '\n' <<<"$json")"
    note repeat "$name" "$2" "$((repeat / 2))"
}

# lossless STREAM: prints the bytes of bins that one pass takes when nothing is reduced.
lossless()
{
    json=$("$fdr" replay "$1" --timer tsc --buffer 256M --json 2>>"$out/stderr.txt") && [ "$(figure bytes_stored)" != 0 ] &&
        figure bytes_stored
}

part_memory()
{
    local stream name bin buffer once turn
    have_corpus || { skip memory "$no_corpus"; return 0; }
    for name in $memory_streams; do
        stream=$corpus/$name.evt.zst
        [ -f "$stream" ] || continue
        say "memory, $name"
        name=$(stream_name "$stream")
        for bin in $bin_sizes; do
            for buffer in 1M 2M 8M; do
                replay "$name" "bin $bin $buffer" "$stream" --buffer "$buffer" --bin "$bin" --repeat 4 --timer tsc
            done
        done
        replay "$name" "never full" "$stream" --buffer 256M --repeat 4 --timer tsc
        once=$(lossless "$stream") || { note failed memory "$name"; continue; }
        # Three turns, because one interrupt of 40 us is a third of the time of all steps of a short run.
        for turn in 1 2 3; do
            replay "$name" "giving back $turn" "$stream" --buffer 8M --repeat 32 --timer tsc
            replay_for "$name" "hundred $turn" "$stream" 100 "$once" --buffer 256M
            replay_for "$name" "hundredth $turn" "$stream" 100 "$once" --buffer 1M
        done
    done
    for stream in "$corpus"/*.evt.zst; do
        say "memory balance, $(stream_name "$stream")"
        replay_steps "$(stream_name "$stream")" "balance 1M" "$stream" 4 1M
    done
    for name in $balance_streams; do
        stream=$corpus/$name.evt.zst
        if [ -f "$stream" ]; then replay_steps "$(stream_name "$stream")" "balance 64M" "$stream" 64 64M; fi
    done
}

# ---- size of bins as in the dissertation: figures 5.7 to 5.10 -------------------------------------------------------------

part_bins()
{
    local stream name bin buffer once whole percent
    have_corpus || { skip bins "$no_corpus"; return 0; }
    for stream in "$corpus"/*.r0.t0.evt.zst; do
        name=$(stream_name "$stream")
        say "bins, $name"
        once=$(lossless "$stream") || { note failed bins "$name"; continue; }
        for bin in $bin_sizes; do
            for buffer in 10 32 100; do
                replay_for "$name" "fill $bin ${buffer}M" "$stream" $((buffer * 11 / 10)) "$once" \
                    --strategy first --buffer "${buffer}M" --bin "$bin"
            done
        done
    done
    for name in $share_streams; do
        stream=$corpus/$name.evt.zst
        [ -f "$stream" ] || continue
        say "giving back, $name"
        name=$(stream_name "$stream")
        once=$(lossless "$stream") || { note failed bins "$name"; continue; }
        for bin in $bin_sizes; do
            replay_for "$name" "share $bin whole" "$stream" 24 "$once" --buffer 256M --bin "$bin"
            whole=$(($(figure bytes_stored) + $(figure meta_bytes)))
            for percent in 10 20 30 40 50 60 70 80 90 100; do
                replay_for "$name" "share $bin $percent" "$stream" 24 "$once" --bin "$bin" \
                    --buffer "$((whole * percent / 102400))K"
            done
        done
    done
}

# ---- j, k, l, n: no stall ------------------------------------------------------------------------------------------------

# stall_lines ROUND WORD COMMAND...: notes the command's lines, each with the round and the word in front.
stall_lines()
{
    local round=$1 word=$2
    shift 2
    "$@" 2>>"$out/stderr.txt" | awk -F'\t' -v OFS='\t' -v r="$round" -v w="$word" \
        '/^(latency|faults|reductions|snapshot|rate|steps)\t/ {$1 = "stall_" $1 OFS r OFS w; print}' >>"$raw" || note failed stall "$word"
}

part_stall()
{
    local round strategy
    for ((round = 1; round <= rounds; round++)); do
        say "stalls, round $round of $rounds"
        for strategy in telescope whole last; do
            stall_lines "$round" $strategy "$bench/bench_latency" -s $strategy
        done
        stall_lines "$round" snapshot "$bench/bench_snapshot" -d "$work" -r 3
    done
    if [ -x "$build/tests/test_steps" ]; then
        say "stalls: steps of reductions"
        stall_lines 1 steps env FDR_STEP_ROUNDS=5 FDR_STEP_LARGE=1 "$build/tests/test_steps"
    else
        skip stall/steps "test_steps is not built (Debian: libcmocka-dev)"
    fi
}

# ---- r, p: from the signal to the bundle, cost of the handlers before; triggers, snapshots from outside -------------------

part_crash()
{
    local round mode threads place dir line begin word
    for ((round = 1; round <= rounds; round++)); do
        say "crashes, round $round of $rounds"
        for mode in fdr bare; do
            if line=$("$bench/bench_call" -n "$calls" "$mode" 2>>"$out/stderr.txt"); then note crashpath "$round" "$mode" "${line##*"$tab"}"; fi
        done
        for place in memory disk; do
            dir=$work/bundles
            if [ "$place" = memory ]; then dir=$(mktemp -d /dev/shm/fdr-bench.XXXXXX); fi
            for threads in 1 8; do
                mkdir -p "$dir" && rm -f "$dir"/*.fdr
                if line=$("$bench/bench_crash" "$dir" "$threads" 2>>"$out/stderr.txt"); then
                    note crash "$place" "$threads" "$(cut -f2 <<<"$line")" "$(cut -f3 <<<"$line")"
                    begin=$(date +%s%N)
                    "$fdr" crash "$dir"/*.crash.fdr >/dev/null 2>>"$out/stderr.txt" && note postmortem $(($(date +%s%N) - begin))
                else
                    note failed crash "$place $threads"
                fi
            done
            rm -rf "$dir"
        done
        for word in "call $calls" "latency $work" "outside $work"; do
            # shellcheck disable=SC2086
            if line=$("$bench/bench_trigger" $word 2>>"$out/stderr.txt"); then
                note trigger "${line%%"$tab"*}" "$(cut -f2 <<<"$line")" "$(cut -f3 <<<"$line")"
            else
                note failed trigger "${word%% *}"
            fi
        done
    done
}

# ---- the comparison harness ------------------------------------------------------------------------------------------

part_peers()
{
    [ -f "$harness/harness.h" ] || { skip peers "no harness.h in FDR_PEERS"; return 0; }
    local compiler=${CC:-gcc} e
    # shellcheck disable=SC2046
    "$compiler" -O2 -D_GNU_SOURCE -I"$harness" "$here/peer_fdr.c" -o "$work/peer_fdr" \
        $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs fdr) -pthread
    e="env FDR_SIGNAL=none FDR_DIR=$work"
    {
        echo "fdr, 64 MiB, lossless, whole$tab$e FDR_BUFFER=64M $work/peer_fdr"
        echo "fdr, 64 MiB, lossless, last$tab$e FDR_BUFFER=64M FDR_STRATEGY=last $work/peer_fdr"
        echo "fdr, calls < 1000 s dropped$tab$e FDR_MIN_DURATION=1000s $work/peer_fdr"
        echo "fdr, FDR_DEPTH=1$tab$e FDR_DEPTH=1 $work/peer_fdr"
        echo "fdr, FDR_ENABLE=0$tab$e FDR_ENABLE=0 $work/peer_fdr"
    } >"$work/peers.tsv"
    ROUNDS=$rounds PEERS_EXTRA=$work/peers.tsv PEERS_OUT=$out/peers bash "$harness/run.sh" time | tee "$out/peers.md"
}

# ---- all ---------------------------------------------------------------------------------------------------------------

: >"$out/stderr.txt"
note machine cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1)"
note machine cores "$(nproc)"
note machine kernel "$(uname -sr)"
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[^=]*=//p' "$build/CMakeCache.txt" | head -1)
note machine compiler "$("${compiler:-cc}" --version 2>/dev/null | head -1), $(sed -n 's/^CMAKE_C_FLAGS_RELWITHDEBINFO:[^=]*=//p' "$build/CMakeCache.txt")"
note machine system "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)"
note machine clock "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2>/dev/null || echo unknown)"
note machine load "$(cut -d' ' -f1-3 /proc/loadavg)"
note machine rounds "$rounds"

if wanted call; then part_call; fi
if wanted size; then part_size; fi
if wanted steps || wanted filter || wanted size; then part_streams; fi
if wanted reader; then part_reader; fi
if wanted whole; then part_whole; fi
if wanted cxx; then part_cxx; fi
if wanted overhead; then part_overhead; fi
if wanted counters; then part_counters; fi
if wanted samples; then part_samples; fi
if wanted memory; then part_memory; fi
if wanted bins; then part_bins; fi
if wanted stall; then part_stall; fi
if wanted crash; then part_crash; fi

part_mpi()
{
    FDR_SOURCE=$source FDR_BUILD=$build python3 "$here/mpi.py" --pairs "${MPI_PAIRS:-30}" --json "$out/mpi.json" || note failed mpi programs
    FDR_SOURCE=$source FDR_BUILD=$build python3 "$here/mpi_figures.py" --rounds "$rounds" --json "$out/mpi_figures.json" || note failed mpi figures
}
if wanted mpi; then part_mpi; fi
if wanted traces; then
    FDR_SOURCE=$source FDR_BUILD=$build FDR_CORPUS=$corpus python3 "$here/traces.py" --rounds "$rounds" --json "$out/traces.json" ||
        note failed traces traces.py
fi

if wanted exports; then
    FDR_SOURCE=$source FDR_BUILD=$build FDR_CORPUS=$corpus python3 "$here/exports.py" --json "$out/exports.json" ||
        note failed exports exports.py
fi

# ---- the page ----

if wanted page; then
    FDR_SOURCE=$source FDR_BUILD=$build FDR_CORPUS=$corpus python3 "$here/page.py" --rounds "$rounds" --json "$out/page.json" || note failed page page
fi

# ---- a job of many ranks ----

part_scale() {
    local stream=$corpus/comd.r0.t0.evt.zst from=()
    say "a job of many ranks"
    if [ -f "$stream" ]; then from=(--stream "$stream"); else say "scale: no $stream: all calls are of one function"; fi
    FDR_SOURCE=$source FDR_BUILD=$build python3 "$here/scale.py" --ranks "${SCALE_RANKS:-64,256,1024,4096}" \
        --json "$out/scale.json" "${from[@]}" || note failed scale
}
if wanted scale; then part_scale; fi

if ! [[ $parts =~ ^\ (peers|mpi|page|scale|traces|exports)\ $ ]]; then
    python3 "$here/report.py" table "$raw"
    python3 "$here/report.py" details "$raw" >"$out/details.md"
    if [ -n "$write" ]; then python3 "$here/report.py" write "$raw" "$write"; fi
    say "the tables behind it: $out/details.md; raw figures: $raw"
fi
if wanted peers; then part_peers; fi
if grep -q "^failed" "$raw"; then die "$(grep -c '^failed' "$raw") measurements failed, see $out/stderr.txt"; fi
