#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make.sh BUILD: makes the recordings in this folder, by a build whose libfdr writes format 1: the commit before format 2.
# Each NAME.fdr.xz has beside it what that build's own fdr shows of it: NAME.json.xz (info) and NAME.txt.xz (dump, stats).
# FDR_SOURCE is the source tree of that build. tests/format/test_format1.py reads them with the present fdr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${FDR_SOURCE:?}"
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The seeds of the fuzzer, made smaller.
mkdir -p "$work/source/fuzz"
ln -s "$FDR_SOURCE/include" "$work/source/include"
sed 's/walk(1000, 20000/walk(1000, 3000/' "$FDR_SOURCE/fuzz/seed.c" >"$work/source/fuzz/seed.c"
sed 's/FDR_BUFFER=128K FDR_BIN=1K/FDR_BUFFER=80K FDR_BIN=512/' "$FDR_SOURCE/fuzz/make_seeds.sh" >"$work/make_seeds.sh"
FDR_SOURCE=$work/source FDR_BUILD=$build bash "$work/make_seeds.sh" fuzz_reader "$work/all"
mkdir "$work/governor"
"${CC:-cc}" -O1 -o "$work/seed" "$work/source/fuzz/seed.c" \
    -I "$FDR_SOURCE/include" -L "$build/lib" "-Wl,-rpath,$build/lib" -lfdr -pthread
env FDR_DIR="$work/governor" FDR_ARENA=anonymous FDR_SIGNAL=none FDR_BUFFER=1M FDR_OVERHEAD=0% "$work/seed" calls
mv "$work/governor"/*.fdr "$work/all/governor.fdr"
rm -f "$work/seed"
names=(telescope-killed whole last first telescope samples readings ended calls-crashed watched governor)
for name in "${names[@]}"; do
    file=$work/all/$name.fdr
    xz -9e -c "$file" >"$here/$name.fdr.xz"
    "$build/bin/fdr" info --json "$file" | xz -9e -c >"$here/$name.json.xz"
    { "$build/bin/fdr" dump "$file"; "$build/bin/fdr" stats "$file"; } | xz -9e -c >"$here/$name.txt.xz"
done
