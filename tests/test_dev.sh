#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `./dev test` says at its end: parts that the time budget left out, tests that failed beside others, that skipped
# themselves, and that cannot run here are named; the last lines are those of ctest. ctest, cmake and the package manager are stood in for.
set -euo pipefail
unset FDR_TEST_ALL FDR_TEST_BUDGET # each case says what it is about
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "${FDR_SOURCE:?}/dev" "$work/dev"
mkdir "$work/bin" "$work/build" "$work/fuzz" "$work/scripts"
touch "$work/fuzz/fuzz_one.c" "$work/scripts/cross.sh"
cd "$work"

printf '#!/bin/sh\nexit 0\n' >bin/cmake
printf '#!/bin/sh\necho installed\n' >bin/dpkg-query
printf '#!/bin/sh\nexit 1\n' >bin/apt-get
# Of three tests the second one fails as $second says: "never", "beside" others, "always".
cat >bin/ctest <<'END'
#!/bin/bash
good() { echo "$1/$2 Test #$1: test_$1 ........   Passed    0.01 sec"; }
bad() { echo "$1/$2 Test #$1: test_$1 ........$3    0.01 sec"; }
end() { printf '\n%s%% tests passed, %s tests failed out of %s\n\nTotal Test time (real) =   0.03 sec\n' "$@"; }
case "$*" in
    *"-R ^(test_2)"*)
        if [ "$second" = always ]; then bad 1 1 '***Failed'; end 0 1 1; exit 8; fi
        good 1 1
        end 100 0 1
        ;;
    *)
        good 1 3
        if [ "$second" = never ]; then good 2 3; else bad 2 3 'Subprocess aborted***Exception:'; fi
        if [ -n "${short:-}" ]; then exit; fi
        echo "3/3 Test #3: ${skips:-test_3} ........***Skipped    0.01 sec"
        if [ "$second" = never ]; then end 100 0 3; exit 0; fi
        end 66 1 3
        exit 8
        ;;
esac
END
chmod +x bin/*

bad=0
# expect STATUS WHAT TEXT...: what the last run came to; each text is a whole line of it.
expect()
{
    local status=$1 what=$2 text
    shift 2
    [ "$status" = "$came" ] || { echo "$what: status $came"; bad=1; }
    for text in "$@"; do grep -qxF -- "$text" log || { echo "$what: no line '$text'"; bad=1; }; done
    [[ $(tail -n 1 log) == 'Total Test time'* ]] || { echo "$what: ends with '$(tail -n 1 log)'"; bad=1; }
}
run()
{
    came=0
    env PATH="$work/bin:$PATH" "$@" ./dev test >log 2>&1 || came=$?
}

run second=never FDR_TEST_BUDGET=100
expect 0 "no time" '== NOT RUN: fuzz, asan, tsan (FDR_TEST_BUDGET is used up)' '== dev test: ok' \
    '100% tests passed, 0 tests failed out of 3'

run second=beside FDR_TEST_BUDGET=5000
expect 0 "fails beside others" '== passed only alone: asan/test_2 tsan/test_2 dev/test_2' '== dev test: ok'
if grep -q 'NOT RUN' log; then echo "nothing was left out"; bad=1; fi
if ! tail -n 7 log | grep -q '^66% tests passed'; then echo "what the complete run came to is not at the end"; bad=1; fi

if ! grep -qxF '== skipped themselves: test_3' log; then echo "a skipped test is not named"; bad=1; fi

# the ones that need more than setup installs
run second=never FDR_TEST_BUDGET=100 skips=test_cross
expect 0 "test_cross is skipped" '== skipped themselves: test_cross' '== dev test: ok'
run second=never FDR_TEST_BUDGET=100 skips=test_cross FDR_TEST_ALL=1
expect 1 "test_cross is skipped in CI" '== dev test: FAILED (test_cross was skipped)'
run second=beside FDR_TEST_BUDGET=100 skips=test_numa_qemu FDR_TEST_ALL=1
expect 1 "test_numa_qemu is skipped in CI beside one that fails" '== dev test: FAILED (test_numa_qemu was skipped)'
echo 'exit 1' >scripts/cross.sh
run second=never FDR_TEST_BUDGET=100 skips=test_cross FDR_TEST_ALL=1
expect 0 "no libraries of aarch64" '== CANNOT RUN: test_cross (no libraries of aarch64 to be had)' '== dev test: ok'
true >scripts/cross.sh
cat >bin/dpkg-query <<'END'
#!/bin/sh
case "$4" in qemu-system-x86 | linux-image-* | busybox-static | cpio) ;; *) echo installed ;; esac
END
run second=never FDR_TEST_BUDGET=100 skips=test_numa_qemu FDR_TEST_ALL=1
expect 0 "no package" '== CANNOT RUN: test_numa_qemu (not to be had: qemu-system-x86 linux-image-cloud-amd64 busybox-static cpio)' \
    '== dev test: ok'
printf '#!/bin/sh\necho installed\n' >bin/dpkg-query

run second=always FDR_TEST_BUDGET=100
expect 1 "fails" '== dev test: FAILED (dev)'
if grep -q 'passed only alone' log; then echo "it did not pass"; bad=1; fi

# the sanitizers' time is over in the middle
cat >bin/timeout <<'END'
#!/bin/bash
shift 2 # --foreground SECONDS
short=1 "$@"
exit 124
END
chmod +x bin/timeout
run second=never FDR_TEST_BUDGET=5000
expect 0 "cut short" '== NOT RUN: asan behind 2 of 3 tests, tsan behind 2 of 3 tests (FDR_TEST_BUDGET is used up)'
run second=beside FDR_TEST_BUDGET=5000
expect 0 "cut short behind one that fails" '== passed only alone: asan/test_2 tsan/test_2 dev/test_2'

[ "$bad" = 0 ] || { echo; cat log; }
exit "$bad"
