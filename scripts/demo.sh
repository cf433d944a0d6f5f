#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A first minute with fdr, called by ./dev demo. It compiles a program of other people, the Lua interpreter from its
# Debian source package, with the compiler's function hooks. It runs the program for FDR_DEMO_SECONDS (12), takes two
# snapshots meanwhile, and reads them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=${FDR_SOURCE:-$(dirname "$here")}
build=${FDR_BUILD:-$source_dir/build/release}
fdr=$build/bin/fdr
demo=${FDR_DEMO_DIR:-$source_dir/build/demo}
seconds=${FDR_DEMO_SECONDS:-12}
# shellcheck source=scripts/source_package.sh
. "$here/source_package.sh"
# shellcheck source=scripts/lua.sh
. "$here/lua.sh"

die() { echo "demo: $*" >&2; exit 1; }
title() { printf '\n== %s\n' "$*"; }
exec 3>&1
# [pipe=TEXT] show COMMAND...: prints the fdr command as a person would type it, then its output. Status 0 is good, and
# 1 means damage, the subject of step 7. Any other status ends the demo.
show()
{
    local status=0
    printf '\n$ fdr %s%s\n' "$*" "${pipe:+ | $pipe}" >&3
    (cd "$demo/out" && "$fdr" "$@") || status=$?
    [ "$status" -le 1 ] || die "fdr $1 ended with status $status"
}
# first N: the first N lines, and the number of further lines
first() { awk -v n="$1" 'NR <= n { print } END { if (NR > n) printf "   ... %d more lines\n", NR - n }'; }

# first_of N TEXT: all lines before the one that begins with TEXT, and N from there on; then as `first`
first_of()
{
    awk -v n="$1" -v text="$2" 'index($0, text) == 1 && !last { last = NR + n }
        !last || NR < last { print } END { if (last && NR >= last) printf "   ... %d more lines\n", NR - last + 1 }'
}

for file in "$fdr" "$build/lib/libfdr.so" "$build/lib/libfdr-instrument.so"; do
    [ -e "$file" ] || die "$file is not built; run ./dev demo"
done
case $seconds in '' | *[!0-9]*) die "FDR_DEMO_SECONDS=$seconds is no number of seconds" ;; esac
[ "$seconds" -ge 5 ] || die "FDR_DEMO_SECONDS=$seconds: the demo needs at least 5"

mkdir -p "$demo"
title "1. A program nobody here wrote: Lua, from its Debian source package"
source_package lua5.4 "$demo" || die "no program to record; see the line above"
flags=(-O2 -g -finstrument-functions)
key="$build ${flags[*]} $(cc --version | head -1)"
if [ ! -x "$demo/bin/lua" ] || [ "$(cat "$demo/bin/key" 2>/dev/null)" != "$key" ]; then
    echo "cc ${flags[*]} ... -lfdr-instrument -lfdr    (its sources are not changed)"
    rm -rf "${demo:?}/bin" "${demo:?}/objects"
    mkdir -p "$demo/bin"
    if ! { lua_objects "$demo/lua5.4" "$demo/objects" "${flags[@]}" &&
        lua_link "$demo/objects" "$demo/bin/lua" -L "$build/lib" -Wl,-rpath,"$build/lib" -lfdr-instrument -lfdr; } \
        >"$demo/build.log" 2>&1; then
        tail -5 "$demo/build.log" >&2
        die "Lua does not build (log: $demo/build.log)"
    fi
    printf '%s\n' "$key" >"$demo/bin/key"
else
    echo "built before: $demo/bin/lua"
fi

title "2. It runs for $seconds s with the recorder on; kill -USR1 takes a snapshot, the program does not stop for it"
unset "${!FDR_@}"
rm -rf "$demo/out"
mkdir -p "$demo/out"
echo "$ FDR_BUFFER=64M lua demo.lua $seconds &"
(cd "$demo/out" && exec env FDR_BUFFER=64M "$demo/bin/lua" "$here/demo.lua" "$seconds") &
pid=$!
trap 'kill "$pid" 2>/dev/null || true' EXIT

# snapshot N: requests it and waits until its file exists
snapshot()
{
    local file i
    kill -USR1 "$pid" || die "the program ended before snapshot $1"
    for ((i = 0; i < 200; i++)); do
        file=$(compgen -G "$demo/out/*.$pid.$1.fdr" || true)
        if [ -n "$file" ]; then
            printf '$ kill -USR1 %s    -> %s, %s bytes\n' "$pid" "$(basename "$file")" "$(stat -c %s "$file")"
            return 0
        fi
        sleep 0.05
    done
    die "no snapshot after 10 s"
}
sleep $((seconds / 4))
snapshot 1
sleep $((seconds * 2 / 3 - seconds / 4))
snapshot 2
show list # reads all recordings of this machine: only now, that snapshot 2 does not wait for it
status=0
wait "$pid" || status=$?
trap - EXIT
[ "$status" = 0 ] || die "the program ended with status $status"
[ -z "$(compgen -G "$demo/out/*.live.fdr" || true)" ] || die "a live recording was left behind"

last=$(basename "$(compgen -G "$demo/out/*.$pid.2.fdr")")
json=$("$fdr" info --json "$demo/out/$last" 2>/dev/null || true)
# number KEY: the first member of this name
number() { grep -m1 -oE "\"$1\": *[0-9]+" <<<"$json" | grep -m1 -oE '[0-9]+$' || true; }
first_ns=$(number first_ns)
last_ns=$(number last_ns)
if [ -z "$first_ns" ] || [ -z "$last_ns" ]; then die "fdr info --json says nothing of $last"; fi

title "3. The story of the second snapshot; what it holds, and the ledger that has every call"
show "$last"
show info "$last" | first_of 14 ledger

title "4. Its last moments before the snapshot, every call of them"
pipe="tail -24" show dump --from -100ms "$last" | tail -24

title "5. Its whole run, back to the start, from the events that were kept: the outer 24 levels (what is deeper is time of theirs)"
show tree --depth ..24 --min-share 1 "$last" | first 34

title "6. Exact totals of every call since the start, kept or not"
show stats --limit 12 "$last"

title "7. Nothing is damaged"
(cd "$demo/out" && for file in *.fdr; do printf '\n$ fdr check %s\n' "$file"; "$fdr" check "$file" || exit 1; done) ||
    die "a snapshot is not whole"

title "8. All of it as one page: what happened, and a timeline down to the single call"
printf '\n$ fdr html %s -o page.html\n' "$last"
(cd "$demo/out" && "$fdr" html "$last" -o page.html) || die "fdr html failed"
echo "open $demo/out/page.html in a browser, for example: xdg-open $demo/out/page.html"

title "9. Where to look next"
printf '\n$ fdr export --to chrome --from -10ms %s -o last.json    (open it in ui.perfetto.dev or chrome://tracing)\n' "$last"
(cd "$demo/out" && "$fdr" export --to chrome --from -10ms "$last" -o last.json) ||
    die "the export failed"
cat <<END

    cd $demo/out && PATH=$build/bin:\$PATH
    fdr stats --by path $last | head
    fdr dump --region 'luaH_*' --min-duration 100us $last | tail
    fdr --help
Your own program: compile with -finstrument-functions, link -lfdr-instrument -lfdr (CMake: fdr::instrument),
or put FDR_REGION("name") { ... } where it matters (README.md).

END
reach=$(awk -v a="$first_ns" -v b="$last_ns" 'BEGIN { printf "%.1f", (b - a) / 1e9 }')
echo "demo: ok: two snapshots of a running program; the second reaches back ${reach} s in $(($(stat -c %s "$demo/out/$last") / 1048576)) MiB"
