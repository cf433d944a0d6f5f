#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house
# Every file of the project names its license near its top.
set -euo pipefail
cd "${FDR_SOURCE:?}"

files()
{
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -co --exclude-standard
    else
        find . -type f -not -path './.git/*' -not -path './build*' | sed 's@^\./@@'
    fi
}

ours=()
while IFS= read -r file; do
    [ -f "$file" ] || continue
    case $file in
        fuzz/seeds/* | tests/golden/* | web/bundle/* | web/package-lock.json | *.fdr | *.evt | *.evt.zst | *.xz | *.png | *.svg) continue ;;
    esac
    ours+=("$file")
done < <(files)
count=${#ours[@]}
named=$(awk 'FNR > 8 { nextfile } /SPDX-License-Identifier"?: "?MIT/ { print FILENAME; nextfile }' "${ours[@]}")
bad=0
while IFS= read -r file; do
    [ -n "$file" ] || continue
    echo "$file: no SPDX-License-Identifier: MIT"
    bad=$((bad + 1))
done < <(comm -23 <(printf '%s\n' "${ours[@]}" | sort) <(sort <<<"$named"))
echo "$count files, $bad without a license line"
[ "$count" -gt 0 ] && [ "$bad" = 0 ]
