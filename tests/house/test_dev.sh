#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house,slow timeout=600
# The verdict of `./dev test`: the tests that run, those named as not run, excused or failed, and the exit status. Its
# last lines are those of ctest. Small scripts replace ctest, cmake and the package manager.
set -euo pipefail
source=${FDR_SOURCE:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/build" "$work/fuzz" "$work/scripts" "$work/tests" "$work/tests/"{room,house,bins}
cp "$source/dev" "$work/dev"
cp "$source"/scripts/{promises,verdict}.py "$work/scripts"
mkdir "$work/docs" && cp "$source/docs/DESIGN.md" "$work/docs/" # its table of promises
cd "$work"
touch fuzz/fuzz_one.c scripts/cross.sh
# each test is its first lines only
printf '/* SPDX */\n/* ctest: promise=P3 clock=tsc */\n' >tests/test_one.c
printf '/* SPDX */\n/* ctest: label=unit,threads excuse=NUMA,perf */\n' >tests/room/test_two.c
printf '#!\n# SPDX\n# ctest: label=house,slow\n' >tests/house/test_cross.sh
printf '#!\n# SPDX\n# ctest: label=house,slow\n' >tests/bins/test_numa_qemu.sh

printf '#!/bin/sh\nexit 1\n' >bin/apt-get
# cmake: builds the requested parts; the build named $broken fails
cat >bin/cmake <<'END'
#!/bin/bash
echo "cmake $*" >>asked
if [[ $* == "--build --preset ${broken:-none}"* ]]; then exit 1; fi
if [[ $* == "--build --preset dev"* ]]; then
    mkdir -p build/dev/tests
    printf '#!/bin/sh\nexit %s\n' "${soak:-0}" >build/dev/tests/test_telescope
    chmod +x build/dev/tests/test_telescope
fi
END
# ctest: test_one passes; test_two is what $two says, of build $of (dev): run, fail, skip; it prints $says
cat >bin/ctest <<'END'
#!/bin/bash
echo "ctest $*" >>asked
build=$2
while [ "$1" != --output-junit ]; do shift; done
if [ "${no_results:-}" = "$build" ]; then exit 1; fi
one() { printf '<testcase name="%s" status="%s"><system-out>%s</system-out></testcase>\n' "$@"; }
two=${two:-run}
if [ "$(sed 's/fast/dev/' <<<"$build")" != "${of:-dev}" ]; then two=run; fi
{
    echo '<testsuite>'
    one test_one run ''
    case $two in
        skip) one test_two notrun "$says" ;;
        *) one test_two "$two" "${says:-}" ;;
    esac
    if [ "$build" = dev ]; then
        one test_cross "${cross:-run}" 'skipped: no compiler'
        one test_numa_qemu run ''
    fi
    echo '</testsuite>'
} >"$2"
if [ "$two" = fail ]; then printf '\n50%% tests passed, 1 tests failed out of 2\n'; else printf '\n100%% tests passed, 0 tests failed out of 2\n'; fi
printf '\nTotal Test time (real) =   0.03 sec\n'
[ "$two" != fail ] || exit 8
END
# dpkg-query: all packages are installed, except those of cross compilation if $without is set
cat >bin/dpkg-query <<'END'
#!/bin/sh
shift 3
for name; do
    case ${without:-}$name in crossgcc-aarch64-* | crosslibc6-dev-arm64-cross | crossqemu-user) ;; *) echo "$name installed" ;; esac
done
END
chmod +x bin/*

bad=0
# expect STATUS WHAT TEXT...: checks the last run. Each TEXT must be a whole line of its output. !PATTERN must not be in
# the output.
expect()
{
    local status=$1 what=$2 text
    shift 2
    [ "$status" = "$came" ] || { echo "$what: status $came"; bad=1; }
    for text in "$@"; do
        if [[ $text == !* ]]; then
            if grep -qE -- "${text#!}" log; then echo "$what: there is '${text#!}'"; bad=1; fi
        else
            grep -qxF -- "$text" log || { echo "$what: no line '$text'"; bad=1; }
        fi
    done
    if [ "$bad" != 0 ]; then cat log; exit 1; fi
}
ends_with_ctest()
{
    [[ $(tail -n 1 log) == 'Total Test time'* ]] || { echo "$1: ends with '$(tail -n 1 log)'"; bad=1; }
    tail -n 4 log | grep -q "^$2% tests passed" || { echo "$1: the result of ctest is not at the end"; bad=1; }
}
# run [VARIABLE=VALUE...] -- ARGUMENT...
run()
{
    local set=()
    while [ "$1" != -- ]; do set+=("$1"); shift; done
    shift
    came=0
    rm -f asked
    env PATH="$work/bin:$PATH" "${set[@]}" ./dev test "$@" >log 2>&1 </dev/null || came=$?
}
asked() { grep -qE -- "$1" asked || { echo "./dev test did not run '$1'"; cat asked; bad=1; }; }
not_asked() { if grep -qE -- "$1" asked; then echo "./dev test ran '$1'"; cat asked; bad=1; fi; }

# the run of `./dev test`
run --
expect 0 newcomer '== dev test: ok, 2 passed, 0 failed, 0 not run, 0 excused' '!excused in part' '!FAILED' '!NOT RUN'
ends_with_ctest newcomer 100
asked 'ctest --preset fast '
not_asked 'asan|tsan|fuzz'
run two=fail --
expect 1 "one fails" '== FAILED: test_two' '== dev test: FAILED, 1 passed, 1 failed, 0 not run, 0 excused'
ends_with_ctest "one fails" 50
run no_results=fast --
expect 1 "ctest breaks" '== NOT RUN: all tests of dev' '!dev test: ok'
run broken=dev --
expect 1 "dev does not build" 'dev test: the build failed'
not_asked ctest

# skips
run two=skip says='skipped: this machine has one NUMA node' --
expect 0 "an excuse" '== excused: test_two (this machine has one NUMA node)' \
    '== dev test: ok, 1 passed, 0 failed, 0 not run, 1 excused'
ends_with_ctest "an excuse" 100
run two=skip says='test_two: no NUMA: skipped' --
expect 0 "an excuse in other words" '== excused: test_two (test_two: no NUMA)'
run two=skip says='skipped: no fdr command in this build' --
expect 1 "a reason that is no excuse" '== NOT RUN: test_two (no fdr command in this build)' \
    '== dev test: FAILED, 1 passed, 0 failed, 1 not run, 0 excused'
run two=skip says='' --
expect 1 "no reason" '== NOT RUN: test_two (no reason given)'
run two=notrun says='Unable to find executable: test_two' --
expect 1 "no program" '== NOT RUN: test_two (Unable to find executable: test_two)'
run two=run says=$'[  SKIPPED ] P3_of_perf\n[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] P3_of_perf' --
expect 0 "a part is left out" '== excused in part: test_two (P3_of_perf)' \
    '== dev test: ok, 2 passed, 0 failed, 0 not run, 0 excused'

# `./dev test full`
run -- full
expect 0 full '== dev test: ok, 8 passed, 0 failed, 0 not run, 0 excused' '!FAILED' '!NOT RUN'
ends_with_ctest full 100
for what in 'ctest --preset asan' 'ctest --preset tsan' 'ctest --preset dev' 'cmake --build --preset fuzz'; do asked "$what"; done
run two=fail of=tsan -- full
expect 1 "one fails under a sanitizer" '== FAILED: tsan/test_two' '== dev test: FAILED, 7 passed, 1 failed, 0 not run, 0 excused'
ends_with_ctest "one fails under a sanitizer" 100
run two=skip of=asan says='skipped: not here' -- full
expect 1 "a skip under a sanitizer" '== NOT RUN: asan/test_two (not here)'
run broken=asan -- full
expect 1 "a build that fails" '== NOT RUN: all tests of asan' '== dev test: FAILED, 6 passed, 0 failed, 1 not run, 0 excused'
asked 'ctest --preset tsan'
run broken=fuzz -- full
expect 1 "fuzzing fails" '== FAILED: fuzz' '== dev test: FAILED, 8 passed, 1 failed, 0 not run, 0 excused'
run soak=3 -- full
expect 1 "the soak fails" '== FAILED: soak'

# tests that need more packages than setup installs
run cross=notrun -- full
expect 1 "test_cross skips itself, though all is installed" '== NOT RUN: test_cross (no compiler)'
echo 'exit 1' >scripts/cross.sh
run cross=notrun -- full
expect 0 "no libraries of aarch64" '== excused: test_cross (no libraries of aarch64 to be had)' \
    '== dev test: ok, 7 passed, 0 failed, 0 not run, 1 excused'
true >scripts/cross.sh
run cross=notrun without=cross -- full
expect 0 "no package" '== excused: test_cross (not to be had: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)'
ends_with_ctest "no package" 100

# some tests
run -- one
expect 0 "a test by name" '== dev test: ok, 4 passed, 0 failed, 0 not run, 0 excused'
asked 'cmake --build --preset dev --target test_one fdr_products'
asked 'ctest --preset dev .* -R \^\(test_one\)\$$'
run -- test_two cross
asked 'ctest --preset dev .* -R \^\(test_two\|test_cross\)\$$'
run -- P3
asked 'ctest --preset dev .* -R \^\(test_one\|test_one_tsc\)\$$'
for name in three full P11; do
    run -- one "$name"
    expect 64 "an unknown name" "dev test: no test has the name '$name'"
    [ "$(wc -l <log)" = 1 ] || { echo "more than one line:"; cat log; bad=1; }
    [ ! -e asked ] || { echo "something ran"; bad=1; }
done

# clang-tidy over single files
tidy()
{
    came=0
    rm -f asked
    PATH=$work/bin:$PATH ./dev tidy "$@" >log 2>&1 || came=$?
}
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "tidy $*" >>asked\nexit "${tidy:-0}"\n' >bin/clang-tidy-14
chmod +x bin/clang-tidy-14
mkdir -p build/dev && true >build/dev/compile_commands.json
tidy fuzz/fuzz_one.c tests/test_one.c
expect 0 "tidy of two files" 'dev tidy: ok'
asked 'tidy -p build/dev .* fuzz/fuzz_one.c tests/test_one.c$'
tidy=1 tidy fuzz/fuzz_one.c
expect 1 "tidy with a finding" 'dev tidy: FAILED'
tidy
expect 1 "tidy of nothing" 'dev tidy: which FILE?'
tidy nowhere.c
expect 1 "tidy of no file" "dev tidy: no file 'nowhere.c'"
tidy dev
expect 1 "tidy of a script" "dev tidy: 'dev' is no C file; a header is checked with the files that include it"
exit "$bad"
