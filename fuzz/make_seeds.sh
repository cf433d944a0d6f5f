#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make_seeds.sh TARGET FOLDER: makes small real recordings of every kind, as seeds for one fuzz target. FDR_SOURCE is
# the source tree, FDR_BUILD a build of it.
set -euo pipefail
: "${FDR_SOURCE:?}" "${FDR_BUILD:?}"
[ "$1" = fuzz_reader ] || exit 0
folder=$(mkdir -p "$2" && cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=$FDR_BUILD source=$FDR_SOURCE
unset "${!FDR_@}"
export FDR_DIR=$work/out FDR_LIVE_DIR=$work/live FDR_LIVE_FORCE=1 FDR_SIGNAL=none FDR_CRASH=0
mkdir "$FDR_DIR" "$FDR_LIVE_DIR"
chmod 700 "$FDR_LIVE_DIR"

"${CC:-cc}" -O1 -o "$work/seed" "$source/fuzz/seed.c" \
    -I "$source/include" -L "$build/lib" "-Wl,-rpath,$build/lib" -lfdr -pthread

# seed NAME "WHAT [THEN]" [VARIABLE=VALUE...]: stores the program's snapshot as FOLDER/NAME.fdr
seed()
{
    local name=$1 how
    read -ra how <<<"$2"
    shift 2
    rm -f "$FDR_DIR"/*
    env FDR_BUFFER=128K FDR_BIN=1K FDR_ARENA=anonymous "$@" "$work/seed" "${how[@]}" 2>"$work/err" ||
        { cat "$work/err"; echo "make_seeds: $name failed"; exit 1; }
    mv "$FDR_DIR"/*.fdr "$folder/$name.fdr"
}

# killed NAME WHAT [VARIABLE=VALUE...]: stores the live file that SIGKILL leaves
killed()
{
    local name=$1 what=$2
    shift 2
    rm -f "$FDR_LIVE_DIR"/*
    { env FDR_BUFFER=128K FDR_BIN=1K "$@" "$work/seed" "$what" live || true; } 2>/dev/null
    mv "$FDR_LIVE_DIR"/*.fdr "$folder/$name.fdr"
}

# crashed NAME WHAT [VARIABLE=VALUE...]: stores the bundle of a crash
crashed()
{
    local name=$1 what=$2
    shift 2
    rm -f "$FDR_DIR"/*
    { env FDR_BUFFER=128K FDR_BIN=1K FDR_CRASH=1 FDR_ARENA=anonymous "$@" \
        "$work/seed" "$what" crash ||
        true; } 2>/dev/null
    mv "$FDR_DIR"/*.crash.fdr "$folder/$name.fdr"
}

# outside NAME ARENA: stores a snapshot taken by another process while threads record
outside()
{
    local pid
    rm -f "$FDR_LIVE_DIR"/* "$work/out.fdr"
    env FDR_BUFFER=192K FDR_BIN=1K "FDR_ARENA=$2" "$work/seed" going held >"$work/ready" 2>/dev/null &
    pid=$!
    for _ in {1..3000}; do
        if [ -s "$work/ready" ] || ! kill -0 "$pid" 2>/dev/null; then break; fi
        sleep 0.01
    done
    # The system may forbid reading another process's memory; then this seed is missing.
    "$build/bin/fdr" snapshot "$pid" -o "$work/out.fdr" >/dev/null 2>&1 || true
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
    if [ -s "$work/out.fdr" ]; then mv "$work/out.fdr" "$folder/$1.fdr"; else echo "make_seeds: no seed $1"; fi
}

# core FROM TO: makes a core file with the arena of FROM in one segment
core()
{
    python3 - "$folder/$1.fdr" "$folder/$2.core" <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
ident = b"\177ELF\2\1\1" + bytes(9)
head = ident + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
load = struct.pack("<IIQQQQQQ", 1, 6, 4096, 0x7F0000000000, 0, len(data), len(data), 4096)
open(sys.argv[2], "wb").write((head + load).ljust(4096, b"\0") + data)
PY
}

# flip FROM TO STEP: flips one bit in every STEP bytes, from the middle of the superblock on
flip()
{
    python3 - "$folder/$1.fdr" "$folder/$2.fdr" "$3" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
for i in range(400, len(data), int(sys.argv[3])): data[i] ^= 1 << i % 8
open(sys.argv[2], "wb").write(data)
PY
}

for strategy in whole last first telescope; do
    seed "$strategy" calls "FDR_STRATEGY=$strategy"
    seed "$strategy-points" points "FDR_STRATEGY=$strategy" FDR_RESOLUTION=128ns
    killed "$strategy-killed" points "FDR_STRATEGY=$strategy"
done
seed lossless deep FDR_BUFFER=192K
seed coarse deep FDR_RESOLUTION=1us FDR_BUFFER=192K
seed filtered points FDR_MIN_DURATION=1us FDR_DEPTH=6
seed lanes lanes
seed rewinds rewinds FDR_BIN=512
seed rewinds-coarse rewinds FDR_RESOLUTION=128ns
seed threads threads FDR_BUFFER=192K
killed threads-killed threads FDR_BUFFER=192K
killed deep-killed deep FDR_BUFFER=192K
seed ended ended FDR_BUFFER=192K
seed samples samples FDR_BUFFER=192K
seed samples-whole samples FDR_BUFFER=192K FDR_STRATEGY=whole
killed samples-killed samples FDR_BUFFER=192K
seed readings readings FDR_BUFFER=192K
seed pinned points FDR_PIN=1ms
seed pinned-coarse deep FDR_PIN=1ms FDR_RESOLUTION=128ns FDR_BUFFER=192K
seed moving going FDR_BUFFER=192K
seed moving-last going FDR_BUFFER=192K FDR_STRATEGY=last
seed moving-small going FDR_BIN=512
seed fired "calls fired"
seed watched "points watched" FDR_WATCHDOG=100ms
crashed calls-crashed calls
crashed threads-crashed threads FDR_BUFFER=64K
core last calls
flip threads threads-damaged 9001
flip samples samples-damaged 7001
flip moving moving-damaged 8009
flip whole-points points-damaged 3001
flip first-killed killed-damaged 5003
head -c 90000 "$folder/last-points.fdr" >"$folder/cut.fdr"
if [ -x "$build/bin/fdr" ]; then
    outside outside mapped
    outside outside-anonymous anonymous
    "$build/bin/fdr" recover "$folder/threads-damaged.fdr" -o "$work/recovered.fdr" >/dev/null 2>&1 || true
fi
if [ -s "$work/recovered.fdr" ]; then mv "$work/recovered.fdr" "$folder/recovered.fdr"; fi
