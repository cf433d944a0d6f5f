#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house promise=P10
# P10: fdr never collides with names of the program. The libraries export names that begin with fdr_ only, and exactly
# those that a public header declares. In the static libraries, internal names begin with fdr. dlopen can load libfdr.
set -euo pipefail
source_dir=${FDR_SOURCE:?}
lib=${FDR_BUILD:?}/lib
bad=0
complain() { printf '%s\n' "$*"; bad=$((bad + 1)); }

# declared HEADERS: the names that carry FDR_API
declared()
{
    local header
    # shellcheck disable=SC2086
    for header in $1; do cat "$source_dir/include/fdr/$header"; done | sed '/^[[:space:]]*#/d' | tr '\n' ' ' | sed 's@/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/@ @g' |
        grep -oE 'FDR_API[^;{]*[;{]' | grep -v '^FDR_API  *__attribute__' |
        sed -E 's/__attribute__ *\(\([^;]*\)\)//; s/\(.*//; s/[;{].*//' |
        grep -oE 'fdr_[a-z0-9_]+ *$' | tr -d ' ' | sort -u
}

# exported LIBRARY: its dynamic symbols, without the names of symbol versions
exported() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u; }

# check LIBRARY HEADER EXTRA: EXTRA is a regular expression of further exported names
check()
{
    local so=$lib/lib$1.so header=$2 extra=$3 name
    if [ ! -e "$so" ]; then complain "lib$1.so is not built"; return; fi
    while IFS= read -r name; do
        if [[ $name != fdr_* ]] && [[ ! $name =~ ^($extra)$ ]]; then complain "lib$1.so exports $name"; fi
    done < <(exported "$so")
    if [ -n "$header" ]; then
        while IFS= read -r name; do complain "lib$1.so exports $name, $header does not declare it"; done \
            < <(comm -13 <(declared "$header") <(exported "$so" | grep -vE "^($extra)$"))
        while IFS= read -r name; do complain "$header declares $name, lib$1.so does not export it"; done \
            < <(comm -23 <(declared "$header") <(exported "$so"))
    fi
    if [ -z "${FDR_SANITIZE:-}" ]; then
        while IFS= read -r name; do complain "lib$1.a: external name $name"; done \
            < <(nm -g --defined-only "$lib/lib$1.a" 2>/dev/null | awk 'NF == 3 { print $3 }' |
                grep -vE "^(fdr.*|$extra|__gcov.*|__x86\.get_pc_thunk.*)$" | sort -u)
    fi
    echo "lib$1.so: $(exported "$so" | wc -l) symbols"
}

check fdr 'fdr.h counters.h tally.h' \
    'setsid|daemon|sigaction|(bsd_|s|sysv_|__sysv_)?signal|sigprocmask|pthread_sigmask'
check fdr-reader reader.h 'none'
if [ -e "$lib/libfdr-instrument.so" ]; then
    check fdr-instrument '' '__cyg_profile_func_(enter|exit)|__fentry__|__return__|dlclose|_gfortran_set_options'
fi
if [ -e "$lib/libfdr-papi.so" ]; then check fdr-papi papi.h none; fi
# A plugin may bring libfdr into a program. glibc keeps 1.7 KiB of static thread-local storage for that.
if [ -z "${FDR_SANITIZE:-}" ]; then
    tls=$((16#$(readelf -lW "$lib/libfdr.so" | awk '$1 == "TLS" { print substr($6, 3) }')))
    echo "libfdr.so: $tls bytes of thread-local storage"
    if [ "$tls" -gt 1704 ]; then complain "libfdr.so has $tls bytes of thread-local storage, more than 1704: dlopen refuses it"; fi
fi
if [ "$bad" != 0 ]; then echo "$bad complaints"; exit 1; fi
