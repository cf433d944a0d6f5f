#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house
# Every memory order in the code is explained in docs/ORDERING.md. Only base/atomic.h spells atomics out. Exceptions are
# relaxed ones in public headers, which may not include it, and in adapters. Elsewhere than in base/atomic.h and base/racy.h
# every acquire and release has a label (X:name) on its line or in the comment right before. The labels of the code are
# those of the table in docs/ORDERING.md; both labels of each pair exist.
set -euo pipefail
cd "${FDR_SOURCE:-$(dirname "$0")/../..}"
shopt -s nullglob extglob globstar
files=(include/fdr/*.@(h|hpp) base/!(atomic|racy).[ch] base/*/*.[ch]
    {format,bins,policies,recorder,sampler,retention,export}/**/*.[ch] {reader,convert,tools,adapters}/**/*.[ch])

# Atomics spelled out elsewhere.
spelled=$(grep -nE '__atomic_|__sync_|__c11_atomic|stdatomic|_Atomic|std::atomic' "${files[@]}" base/racy.h |
    grep -vE '^(include/fdr|adapters)/.*__ATOMIC_RELAXED' || true)

# Uses without a label. A comment counts if it ends on the line above.
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
# Rows of the table are: | `R:x`, ... | `A:x`, ... | ...
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
