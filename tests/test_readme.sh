#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The examples of README.md are programs: every ```c block whose first line is /* example: NAME */ compiles without
# a warning against this build and runs.
set -euo pipefail
source_dir=${FDR_SOURCE:?}
lib=${FDR_BUILD:?}/lib
if [ ! -f "$source_dir/README.md" ]; then echo "no README.md"; exit 77; fi
if [ ! -e "$lib/libfdr.so" ]; then echo "libfdr is not built"; exit 1; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v out="$work" '
    /^```/ && inside { inside = 0; file = ""; next }
    /^```c[ \t]*$/ { inside = 1; first = 1; next }
    inside && first {
        first = 0
        if (match($0, /example: *[A-Za-z0-9_-]+/)) {
            name = substr($0, RSTART, RLENGTH); sub(/example: */, "", name); file = out "/" name ".c"
        }
    }
    inside && file != "" { print > file }' "$source_dir/README.md"

shopt -s nullglob
count=0
sanitize=()
if [ -n "${FDR_SANITIZE:-}" ]; then sanitize=("-fsanitize=$FDR_SANITIZE"); fi
for file in "$work"/*.c; do
    name=$(basename "$file" .c)
    echo "example $name"
    libraries=(-lfdr)
    if grep -q 'fdr/reader\.h' "$file"; then libraries+=(-lfdr-reader); fi
    cc -std=gnu11 -Wall -Wextra -Werror -g "${sanitize[@]}" -I "$source_dir/include" "$file" -o "$work/$name" \
        -L "$lib" -Wl,-rpath,"$lib" "${libraries[@]}" -pthread
    (cd "$work" && FDR_DIR=$work timeout 60 "./$name")
    count=$((count + 1))
done
if [ "$count" = 0 ]; then echo "README.md has no example"; exit 1; fi
echo "$count examples"
