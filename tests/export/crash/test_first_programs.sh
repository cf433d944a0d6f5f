#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=signals timeout=300 promise=P7,P10
# P7, P10: FDR_CRASH=first in whole programs: linked with libfdr, fully static, preloaded, and an interpreter with a
# crash handler of its own. Each installs its handler after fdr, ends as without fdr, and leaves a bundle. Where another
# sigaction stands in front, fdr says so in one line.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
lib=$FDR_BUILD/lib
include=$FDR_SOURCE/include
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "skipped: not with sanitizers"; exit 77; fi

work=$(mktemp -d)
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-test-XXXXXX)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
export FDR_LIVE_DIR FDR_BUFFER=4M FDR_DIR=$work/bundles
mkdir "$FDR_DIR"
cd "$work"
ulimit -c 0
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }

cat >program.c <<'END'
#ifdef RECORDS
#include <fdr/fdr.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void reports(int number)
{
    if (write(1, "report\n", 7)) {}
    signal(number, SIG_DFL);
    raise(number);
}
static volatile int *volatile nowhere;
int main(void)
{
#ifdef RECORDS
    if (fdr_init(0)) return 1;
#endif
    struct sigaction a = {.sa_handler = reports}, old;
    if (sigaction(SIGSEGV, &a, &old)) return 2;
    printf("found %d\n", old.sa_handler == SIG_DFL);
    fflush(stdout);
    return *nowhere;
}
END
records=(-DRECORDS -I "$include" -L "$lib" "-Wl,-rpath,$lib")
gcc program.c -o plain
gcc program.c "${records[@]}" -lfdr -o linked
read -ra needs <<<"$(pkg-config --static --libs liburcu-bp numa)"

# dies WHAT BUNDLES LINES COMMAND...: the text is that of the plain program, the status 139; BUNDLES files are left, and
# LINES lines about FDR_CRASH
dies()
{
    local what=$1 bundles=$2 lines=$3 status=0
    shift 3
    rm -f "$FDR_DIR"/* "$FDR_LIVE_DIR"/*
    { "$@" >out 2>err || status=$?; } 2>/dev/null
    [ "$status" = 139 ] || fail "$what: status $status: $(cat err)"
    [ "$(find "$FDR_DIR" -name '*.crash.fdr' | wc -l)" = "$bundles" ] || fail "$what left: $(ls "$FDR_DIR" "$FDR_LIVE_DIR")"
    [ "$(grep -c '^fdr: FDR_CRASH' err)" = "$lines" ] || fail "$what said: $(cat err)"
}
same_text() { cmp -s out plain.txt || fail "$1 printed: $(cat out)"; }

{ ./plain >plain.txt || true; } 2>/dev/null
export FDR_CRASH=first
dies linked 1 0 ./linked
same_text linked
preloaded=(env "LD_PRELOAD=$lib/libfdr-instrument.so" FDR_SAMPLE=1Hz)
dies preloaded 1 0 "${preloaded[@]}" ./plain
same_text preloaded
dies "an interpreter" 1 0 "${preloaded[@]}" /usr/bin/python3 -c 'import faulthandler as f; f.enable(); f._sigsegv()'
grep -q "^Fatal Python error: Segmentation fault" err || fail "no report of the interpreter: $(cat err)"
if gcc -static program.c "${records[@]}" -l:libfdr.a "${needs[@]}" -pthread -lrt -ldl -o static 2>err; then
    dies static 1 0 ./static
    same_text static
else echo "no static program: $(tail -1 err)"; fi

# the program finds another library's function first
cat >other.c <<'END'
#include <signal.h>
int __sigaction(int, const struct sigaction *, struct sigaction *);
int sigaction(int number, const struct sigaction *to, struct sigaction *old) { return __sigaction(number, to, old); }
END
gcc -shared -fPIC other.c -o other.so
dies "preloaded behind another library" 0 1 env "LD_PRELOAD=./other.so $lib/libfdr-instrument.so" FDR_SAMPLE=1Hz ./plain
grep -q "FDR_CRASH=first: the program finds another sigaction before fdr's" err || fail "it said: $(cat err)"
if gcc -fsanitize=address program.c "${records[@]}" -lfdr -o sanitized 2>/dev/null; then
    ASAN_OPTIONS=allow_user_segv_handler=1 dies sanitized 0 1 ./sanitized
    grep -q "FDR_CRASH=first: AddressSanitizer has its own sigaction" err || fail "it said: $(cat err)"
fi
exit "$bad"
