#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house,slow
# scripts/same_code.py on two small programs. Different names and places count as the same code. A different constant,
# text or call, or a further function, counts as different code.
set -euo pipefail
source_dir=${FDR_SOURCE:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# object BUILD FILE TEXT: compiles TEXT as FILE of the build
object()
{
    mkdir -p "$work/$1/CMakeFiles/x.dir"
    printf '%s\n' "$3" >"$work/$2.c"
    cc -O2 -c "$work/$2.c" -o "$work/$1/CMakeFiles/x.dir/$2.c.o"
}
text='#include <stdio.h>
#include <string.h>
int counter, other;
__attribute__((noinline)) int first(int n) { counter += n; return n * 3; }
int second(const char *s) { puts("a text"); other++; return first((int)strlen(s)); }
int third(void) { return other * 7; }'
# expect STATUS WHAT [SED]: compares TEXT with the same text changed by SED, in a file of another name
expect()
{
    local came=0
    rm -rf "$work/b"
    object b moved "$(sed "${3:-}" <<<"$text")"
    python3 "$source_dir/scripts/same_code.py" A "$work/a" B "$work/b" >"$work/log" || came=$?
    [ "$came" = "$1" ] || { echo "$2: status $came"; cat "$work/log"; bad=1; }
}
object a original "$text"
expect 0 'the same in another file'
expect 0 'other names' 's/first/renamed_function/g; s/counter/total/g'
expect 1 'another constant' 's/n \* 3/n * 5/'
expect 1 'another text' 's/a text/a test/'
expect 1 'another function of the C library' 's/puts/perror/'
expect 1 'another variable' 's/other \* 7/counter * 7/'
# shellcheck disable=SC2016 # $ is sed's: the last line
expect 1 'one function more' \
    '$s/$/ int fourth(void) { return 4; }/'
expect 1 'one function less' '/^int third/d'
exit "$bad"
