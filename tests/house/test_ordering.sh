#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house
# Atomics are spelled out in base/atomic.h only, but for relaxed ones in the public headers and the adapters, which may
# not include it. Outside it and base/racy.h every acquire and release has a label (X:name) on its line or in the comment
# right before it; every label in the code is in the table of docs/ORDERING.md, and every label in that table is in the
# code; where the table pairs two labels, both are there.
set -euo pipefail
cd "${FDR_SOURCE:-$(dirname "$0")/../..}"
shopt -s nullglob extglob globstar
files=(include/fdr/*.@(h|hpp) base/!(atomic|racy).[ch] base/*/*.[ch]
    {format,bins,policies,recorder,sampler,export}/**/*.[ch] {reader,convert,tools,adapters}/**/*.[ch])

# Atomics spelled out.
spelled=$(grep -nE '__atomic_|__sync_|__c11_atomic|stdatomic|_Atomic|std::atomic' "${files[@]}" base/racy.h |
    grep -vE '^(include/fdr|adapters)/.*__ATOMIC_RELAXED' || true)

# Uses without a label. "Right before": the lines of one comment that ends on the line above.
unlabelled=$(awk '
    FNR == 1 { before = "" }
    {
        code = $0
        sub(/\/\*.*/, "", code)
        if (code ~ /fdri_(atomic|racy)_((load|peek)_acquire|store_release|(cas|add|sub|or|and|swap)_acq_rel(_u(16|32|64))?|fence_acquire|fence_release)[ \t]*\(/ ||
            code ~ /__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL|SEQ_CST|CONSUME)|memory_order_(acquire|release|acq_rel|seq_cst)/)
            if ($0 !~ /[RALG]:[a-z]+/ && before !~ /[RALG]:[a-z]+/)
                print FILENAME ":" FNR ": acquire or release without a label"
        if ($0 ~ /^[ \t]*(\/\*|\*)/) before = before " " $0
        else before = ""
    }' "${files[@]}")

in_code=$(grep -ohE '\b[RALG]:[a-z]+' "${files[@]}" | sort -u)
# Rows of the table: | `R:x`, ... | `A:x`, ... | ...
in_table=$(awk -F'|' '/^\|.*`[RALG]:[a-z]+`.*\|/ { print $2 $3 }' docs/ORDERING.md | grep -oE '[RALG]:[a-z]+' | sort -u)

bad=0
if [ -n "$spelled" ]; then
    printf '%s\n' "$spelled" "atomics spelled out outside base/atomic.h"
    bad=1
fi
if [ -n "$unlabelled" ]; then
    printf '%s\n' "$unlabelled"
    bad=1
fi
while IFS= read -r label; do
    [ -z "$label" ] || { echo "$label is in the code, but not in the table of docs/ORDERING.md"; bad=1; }
done < <(comm -23 <(echo "$in_code") <(echo "$in_table"))
while IFS= read -r label; do
    [ -z "$label" ] || { echo "$label is in the table of docs/ORDERING.md, but not in the code"; bad=1; }
done < <(comm -13 <(echo "$in_code") <(echo "$in_table"))

count=$(echo "$in_code" | grep -c .)
if [ "$count" -lt 10 ]; then
    echo "only $count labels found"
    exit 1
fi
echo "$count labels in ${#files[@]} files"
[ "$bad" = 0 ]
