#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: scripts/same_code.sh A [B]
#
# Compares the machine code of every function of the libraries and the command between commits A and B; B defaults to
# the working tree. Names and addresses do not count, so a commit that only moves or renames leaves the code the same.
# Exit status: 0 the same, 1 different (each function is named), 2 a commit does not build. Builds stay in
# build/same_code/COMMIT.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 1 ] || [ $# = 2 ] || { sed -n '3,4s/^# //p' "$0" >&2; exit 64; }
place=build/same_code

# export_tree COMMIT FOLDER: the sources of COMMIT, or of the working tree where COMMIT is "tree".
export_tree()
{
    mkdir -p "$2"
    if [ "$1" = tree ]; then
        git ls-files -co --exclude-standard | while IFS= read -r file; do [ ! -e "$file" ] || echo "$file"; done |
            tar -c -T - | tar -x -C "$2"
    else
        git archive "$1" | tar -x -C "$2"
    fi
}

# built COMMIT: builds the commit unless that was done before, and prints the folder of its objects. Assertions are off,
# because they contain line numbers.
built()
{
    local folder=$place/$1
    if [ "$1" = tree ]; then rm -rf "$folder/source"; fi
    if [ "$1" = tree ] || [ ! -f "$folder/done" ]; then
        rm -rf "$folder/source"
        export_tree "$1" "$folder/source"
        if ! { cmake -S "$folder/source" -B "$folder/build" -G Ninja -DFDR_TESTS=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo \
            "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG" && cmake --build "$folder/build" &&
            ninja -C "$folder/build" -t cleandead; } >"$folder/log" 2>&1; then
            tail -n 20 "$folder/log" >&2
            echo "same_code: $1 does not build" >&2
            return 2
        fi
        touch "$folder/done"
    fi
    echo "$folder/build"
}

a=$(git rev-parse --verify --short=12 "$1^{commit}") || exit 64
b=tree
if [ $# = 2 ]; then b=$(git rev-parse --verify --short=12 "$2^{commit}") || exit 64; fi
from=$(built "$a") || exit 2
to=$(built "$b") || exit 2
exec python3 scripts/same_code.py "$a" "$from" "$b" "$to"
