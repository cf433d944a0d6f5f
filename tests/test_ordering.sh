#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Atomics outside base/: every acquire and release has a label (X:name) on its line or in the comment right before it;
# every label in the code is in the table of docs/ORDERING.md, and every label in that table is in the code; where the
# table pairs two labels, both are there.
set -euo pipefail
cd "${FDR_SOURCE:-$(dirname "$0")/..}"
shopt -s nullglob
files=(include/fdr/*.h format/*.[ch] bins/*.[ch] policies/*.[ch] recorder/*.[ch] sampler/*.[ch] export/*.[ch] adapters/*.[ch])

# Uses without a label. "Right before": the lines of one comment that ends on the line above.
unlabelled=$(awk '
    FNR == 1 { before = "" }
    {
        code = $0
        sub(/\/\*.*/, "", code)
        if (code ~ /fdr_((load|peek)_acquire|store_release|(cas|add|sub|or|and|swap)_acq_rel(_u(32|64))?|fence_acquire|fence_release)[ \t]*\(/ ||
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
