#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house,models,slow timeout=900 promise=P2,P3,P7
# P2, P3, P7: spin searches each model of the lock-free code (*.pml) to the end and finds no error. In each mutant, the
# protocol with one step broken, it must find an error; this shows that the search can fail. Without spin this test
# fails.
set -euo pipefail
cd "${FDR_SOURCE:-$(dirname "$0")/../..}"
source=$PWD
command -v spin >/dev/null || { echo "spin is not installed (Debian: spin; ./dev setup): the models are not checked"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0 models=0 broken=0

complain() { echo "FAILED: $*"; bad=1; }

# search MUTANT: prints the verdict of a complete search: ok, wrong, or incomplete. Mutants have few states before the
# error, and most of their time would go to clearing the usual table of 2^24 places.
search()
{
    local said table=24
    [ "$1" = 0 ] || table=18
    said=$(MUTANT=$1 ./pan -m200000 -w$table 2>&1) || true
    if grep -qE 'max search depth too small|out of memory|memory limit|error: ' <<<"$said"; then echo incomplete; return; fi
    if grep -q 'errors: 0' <<<"$said"; then
        states=$(grep -oE '[0-9.e+]+ states, stored' <<<"$said" | head -1)
        echo ok
        echo "$states" >states
    elif grep -qE 'errors: [1-9]' <<<"$said"; then
        echo wrong
        grep -m1 -E '^pan:[0-9]+:' <<<"$said" | sed 's/ (at depth.*//' >why
    else
        echo incomplete
    fi
}

# check_model FILE VARIANT: VARIANT is empty, or flags for the preprocessor separated by commas
check_model()
{
    local file=$1 variant=$2 verdict number name
    rm -rf "$work/run"
    mkdir "$work/run"
    cd "$work/run"
    # shellcheck disable=SC2086
    spin -a ${variant//,/ } "$source/$file" >spin.log 2>&1 || { complain "$file: spin refuses it"; cat spin.log; cd "$source"; return; }
    cc -O1 -w -DSAFETY -DVECTORSZ=2048 -o pan pan.c
    verdict=$(search 0)
    [ "$verdict" = ok ] || complain "$file $variant: $verdict: $(cat why 2>/dev/null)"
    echo "$file $variant: $verdict, $(cat states 2>/dev/null)"
    models=$((models + 1))
    rm -f states why
    while read -r number name; do
        verdict=$(search "$number")
        [ "$verdict" = wrong ] || complain "$file $variant: mutant $name is not found wrong ($verdict)"
        echo "    $name: $(cat why 2>/dev/null)"
        rm -f why
        broken=$((broken + 1))
    done < <(sed -n '/mutants:/,/\*\//p' "$source/$file" | sed -nE 's/^ \*( mutants:)? +([0-9]+) ([a-z0-9_]+) .*$/\2 \3/p')
    cd "$source"
}

while IFS= read -r file; do
    variants=$(sed -nE 's/^ \* variants: *(.*)$/\1/p' "$file")
    for variant in ${variants:-''}; do check_model "$file" "$variant"; done
done < <(find . -name '*.pml' -not -path './build*' -not -path './.git/*' | sort)

[ "$models" -gt 0 ] || complain "no model found"
[ "$broken" -gt "$models" ] || complain "too few mutants: $broken"
echo "$models models, $broken mutants"
[ "$bad" = 0 ]
