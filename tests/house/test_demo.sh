#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=demo,slow timeout=600 excuse=network
# The demo, shortened, ends well, resolves names, leaves no process or live file, and builds nothing the second time.
# Without package sources it says so in one line. The test skips itself if there is no network.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "not with sanitizers"; exit 77; fi
if [ ! -x "$FDR_BUILD/bin/fdr" ]; then echo "no fdr command (jansson or zstd missing)"; exit 77; fi
if ! "$FDR_BUILD/bin/fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "no symbols without libdw"; exit 77; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FDR_DEMO_SECONDS=6
# Sources that ./dev demo has fetched before need no network.
FDR_DEMO_DIR=$work/demo
mkdir -p "$FDR_DEMO_DIR/apt/download"
if [ -d "$FDR_SOURCE/build/demo/apt/download/lua5.4" ]; then
    cp -r "$FDR_SOURCE/build/demo/apt/download/lua5.4" "$FDR_DEMO_DIR/apt/download/"
fi
export FDR_DEMO_DIR
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }

status=0
bash "$FDR_SOURCE/scripts/demo.sh" >"$work/first" 2>&1 || status=$?
if [ "$status" != 0 ]; then
    if grep -q 'no network' "$work/first"; then echo "skipped: no network, so no source package"; exit 77; fi
    tail -40 "$work/first"
    echo "test_demo: the demo ends with status $status"
    exit 1
fi
if tail -1 "$work/first" | grep -q '^demo: ok: '; then tail -1 "$work/first"; else fail "no clear last line"; fi
for name in luaV_execute luaD_precall main; do
    grep -qw "$name" "$work/first" || fail "the name $name does not appear"
done
grep -A6 '^ledger' "$work/first" | grep -qE '^ *region +[0-9]' || fail "the ledger is not shown"
# The program runs on while a snapshot is copied. `fdr info` must say by how much the right side may exceed the
# presented events.
for file in "$FDR_DEMO_DIR"/out/*.fdr; do
    "$FDR_BUILD/bin/fdr" info "$file" | tr -d , | awk '
        /^  the program went on during the copy: / { more = $NF }
        $1 == "region" { lines++; bad += $3 + $4 + $5 + $6 > $2 + more }
        END { exit lines != 1 || bad }' || fail "the ledger of $file says nothing of what came while it was copied"
done
# The newest events depend on the machine. The totals hold every function with a finished call; main is still open.
for file in "$FDR_DEMO_DIR"/out/*.fdr; do
    "$FDR_BUILD/bin/fdr" stats --all "$file" >"$work/stats"
    for name in luaV_execute luaH_resize luaD_precall; do
        grep -qw "$name" "$work/stats" || fail "the name $name is not in the totals of $file"
    done
done
if grep -E '\[unknown\]|lua\+0x|^ *0x' "$work/first"; then fail "calls without a name"; fi
if grep -E '^(damage|fdr): ' "$work/first"; then fail "damage or complaints"; fi
# the output names no host of package sources
hosts=$(sed -nE 's@^[^#]*https?://([^/ ]+).*@\1@p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | sort -u || true)
for host in $hosts; do
    if grep -qF "$host" "$work/first"; then fail "the host of a package source is printed"; fi
done
for file in "$FDR_DEMO_DIR"/out/*.fdr; do
    size=$(stat -c %s "$file")
    if [ "$size" -gt $((64 * 1048576 + 65536)) ]; then fail "$file: $size bytes, more than the buffer and 64 KiB"; fi
done

grep -qF "id=\"story\"" "$FDR_DEMO_DIR/out/page.html" || fail "no page"
if grep -q 'Every call of the last 0 ns' "$FDR_DEMO_DIR/out/page.html"; then fail "the page believes that no call is whole"; fi
bash "$FDR_SOURCE/scripts/demo.sh" >"$work/second" 2>&1 || fail "the second run: $(tail -1 "$work/second")"
grep -q 'built before' "$work/second" || fail "the second run builds again"

# an apt that finds no sources
mkdir -p "$work/bin"
printf '#!/bin/sh\nexit 100\n' >"$work/bin/apt-get"
chmod +x "$work/bin/apt-get"
status=0
PATH=$work/bin:$PATH FDR_DEMO_DIR=$work/none bash "$FDR_SOURCE/scripts/demo.sh" >"$work/none.out" 2>"$work/none.err" || status=$?
if [ "$status" != 1 ] || ! grep -q 'cannot get the source package lua5.4' "$work/none.err"; then
    fail "without sources: status $status, $(cat "$work/none.err")"
fi
if [ "$bad" != 0 ]; then cat "$work/first"; echo "test_demo: $bad failed"; exit 1; fi
echo "test_demo: all good"
