#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house
# The examples of README.md are programs. Every ```c block whose first line is /* example: NAME */ compiles without a
# warning and runs. The shown output of the first example equals fdr's output except for the numbers. docs/SETTINGS.md
# has a row for each setting.
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
    (cd "$work" && cc -std=gnu11 -Wall -Wextra -Werror -g "${sanitize[@]}" -I "$source_dir/include" "$name.c" -o "$name" \
        -L "$lib" -Wl,-rpath,"$lib" "${libraries[@]}" -pthread && FDR_DIR=$work timeout 60 "./$name")
    count=$((count + 1))
done
if [ "$count" = 0 ]; then echo "README.md has no example"; exit 1; fi

# docs/SETTINGS.md has a row for each setting, and no others. Each text in struct fdr_config is a setting, except
# `name`, which has no variable.
awk '/^struct fdr_config/, /^};/' "$source_dir/include/fdr/fdr.h" |
    sed -nE 's/^ +const char \*([a-z_]+);.*/FDR_\U\1/p' | grep -vx FDR_NAME | sort >"$work/fields"
sed -nE 's/^\| .(FDR_[A-Z_]+). \|.*/\1/p' "$source_dir/docs/SETTINGS.md" | grep -vx FDR_SYMBOLS | sort >"$work/rows"
if [ ! -s "$work/fields" ]; then echo "include/fdr/fdr.h: no settings found in struct fdr_config"; exit 1; fi
if ! diff "$work/fields" "$work/rows"; then echo "docs/SETTINGS.md: < has no row, > is no setting"; exit 1; fi

# shown TEXT: prints the block of README.md that begins with TEXT
shown()
{
    awk -v text="$1" '/^```/ { inside = !inside; first = 1; ours = 0; next }
        inside && first { first = 0; ours = index($0, text) == 1 } inside && ours' "$source_dir/README.md"
}
plain() { sed -E 's/[0-9][0-9,.]*/N/g; s/ (ns|us|ms|s)\b/ U/g; s/ +/ /g'; }
fdr=${FDR_BUILD}/bin/fdr
if [ -x "$fdr" ]; then
    cd "$work"
    rm -f hello.*.fdr
    FDR_DIR=$work FDR_BUFFER=64M timeout 60 ./hello
    for verb in info dump stats; do
        case $verb in
            info) shown 'why ' ;;
            dump) shown '     0.' ;;
            stats) shown '   exclusive' ;;
        esac | plain >"$verb.readme"
        "$fdr" "$verb" hello.*.fdr | if [ "$verb" = dump ]; then tail -12; else cat; fi >"$verb.said"
        plain <"$verb.said" >"$verb.plain"
        if [ ! -s "$verb.readme" ]; then echo "README.md shows no fdr $verb"; exit 1; fi
        while IFS= read -r line; do
            if ! grep -qxF -- "$line" "$verb.plain"; then
                printf 'README.md: fdr %s says nothing like: %s\n' "$verb" "$line"
                cat "$verb.said"
                exit 1
            fi
        done <"$verb.readme"
    done
fi
echo "$count examples"
