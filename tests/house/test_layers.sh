#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house
# The layer table of docs/ARCHITECTURE.md: who may include whom. Then: OS and CPU conditionals only in base/.
set -euo pipefail
cd "${FDR_SOURCE:-$(dirname "$0")/../..}"

# Per folder: the header paths it may include, as extended regular expressions. "fdr/" is include/fdr.
declare -A may=()

# allowed CELL: the last column of the table as a regular expression, each part with a | behind it.
allowed()
{
    local part
    while IFS= read -r part; do
        case $part in
            itself | 'standard C' | 'the OS'*) ;;
            'public headers') printf 'fdr/|' ;;
            */*.h) sed 's/\./\\./g; s/\*/[a-z]+/g; s/$/$|/' <<<"$part" | tr -d '\n' ;;
            base | format | bins | policies) printf '%s/|' "$part" ;;
            *) echo "docs/ARCHITECTURE.md: not understood in the layer table: '$part'" >&2; exit 1 ;;
        esac
    done < <(sed 's/;.*//; s/, /\n/g; s/`//g' <<<"$1")
}

while IFS='|' read -r _ names _ cell _; do
    rule=$(allowed "$(sed 's/^ *//; s/ *$//' <<<"$cell")")
    for name in $(tr -d '`,' <<<"$names"); do
        name=${name%/}
        may[$name]="$rule${name#include/}/"
    done
done < <(sed -n '/^| folder | its one job | may include |/,/^$/p' docs/ARCHITECTURE.md | tail -n +3 | sed '/^$/d')
# What the build writes: the version.
for name in recorder reader tools; do may[$name]="${may[$name]:?is not in the layer table}|fdr_build\.h\$"; done
# Where system headers are restricted, the ones that are allowed.
standard='assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|threads|time|uchar|wchar|wctype'
bytes_only='assert|inttypes|limits|stdalign|stdatomic|stdbool|stddef|stdint|string'
declare -A system=([include/fdr]="$standard|exception" [policies]=$standard [format]=$bytes_only)

folders=(base format bins policies recorder sampler export reader convert tools adapters examples benchmarks)
project='(base|format|bins|policies|recorder|sampler|export|reader|convert|tools|adapters|examples|benchmarks|tests|fdr)/'
bad=0
checked=0
complain() { printf '%s\n' "$*"; bad=$((bad + 1)); }

# check_include <folder> <file> <line number> <quote or angle> <path>
check_include()
{
    local folder=$1 where="$2:$3" kind=$4 path=$5
    checked=$((checked + 1))
    if [[ $path =~ ^$project ]] || [[ $path == fdr_build.h ]] || [[ $kind == '"' ]]; then
        # A header named without a folder lies beside the file that includes it.
        if [[ $path != */* && $path != fdr_build.h ]]; then path=$folder/$path; fi
        if [[ ! $path =~ ^(${may[$folder]}) ]]; then
            complain "$where: $folder/ may not include $path"
        fi
    elif [[ -n ${system[$folder]:-} && ! $path =~ ^(${system[$folder]})(\.h)?$ ]]; then
        complain "$where: $folder/ may not include <$path>"
    elif [[ $folder != base && $path =~ ^(immintrin|x86intrin|emmintrin|nmmintrin|cpuid|arm_neon|arm_acle)\.h$ ]]; then
        complain "$where: the processor is the business of base/: <$path>"
    fi
}

for folder in include/fdr "${folders[@]}"; do
    [ -d "$folder" ] || continue
    while IFS= read -r line; do
        file=${line%%:*}
        rest=${line#*:}
        number=${rest%%:*}
        text=${rest#*:}
        if [[ $text =~ include[[:space:]]*([\"\<])([^\">]+) ]]; then
            check_include "$folder" "$file" "$number" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
        fi
    done < <(grep -rnE --include='*.[ch]' --include='*.hpp' '^[[:space:]]*#[[:space:]]*include' "$folder" || true)

    [ "$folder" != base ] || continue
    machine='__linux__|__linux|__unix__|__APPLE__|__FreeBSD__|__ANDROID__|_WIN32|__x86_64__|__amd64__|__i386__|__aarch64__|__arm__|__riscv|__powerpc|__s390x__|__SSE|__AVX|__BMI|__ARM_|__BYTE_ORDER__'
    while IFS= read -r line; do
        complain "${line%%:*}: OS and CPU conditionals belong to base/: ${line#*:}"
    done < <(grep -rnE --include='*.[ch]' --include='*.hpp' "^[[:space:]]*#[[:space:]]*(if|ifdef|ifndef|elif)\b.*($machine)" "$folder" || true)
done

# The table covers every folder with C sources.
while IFS= read -r folder; do
    case " ${folders[*]} tests fuzz include scripts build " in
        *" $folder "*) ;;
        *) complain "$folder/ holds C sources and is not in the layer table" ;;
    esac
done < <(find . -mindepth 2 -name '*.[ch]' -not -path './build*' -not -path './.*' | cut -d/ -f2 | sort -u)

# Headers say which file does what; none is forgotten.
for folder in recorder reader sampler; do
    listed=$(sed -n '/^ \*   /p' "$folder"/*.h | grep -oE '[a-z_*]+\.c')
    for file in "$folder"/*.c; do
        while IFS= read -r name; do
            # shellcheck disable=SC2053 # it may be a pattern
            if [[ ${file##*/} == $name ]]; then continue 2; fi
        done <<<"$listed"
        complain "$file is in no list of $folder/*.h"
    done
done

if [ "$checked" = 0 ]; then echo "no include line found"; exit 1; fi
echo "$checked include lines, $bad against the table"
[ "$bad" = 0 ]
