#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=signals promise=P10 excuse=root,set-user-id
# P10: a set-user-id program ignores all FDR_ variables, because the calling user sets them, and prints nothing about
# it. Its live file lies with the recordings of the program's owner. A failure shows as output on standard error, or as
# files in the calling user's folder.
set -euo pipefail
build=${FDR_BUILD:?}
source_dir=${FDR_SOURCE:?}
if [ -n "${FDR_SANITIZE:-}" ]; then echo "a sanitizer's runtime does not go with it"; exit 77; fi
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then echo "skipped: needs root and setpriv"; exit 77; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cp -L "$build/lib/libfdr.so.0" "$work/"
mkdir "$work/mine"
chown 65534:65534 "$work/mine"
cat >"$work/victim.c" <<'END'
#include <fdr/fdr.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
int main(void)
{
    char line[4096];
    if (!getauxval(AT_SECURE)) return 77;
    if (fdr_init(NULL)) return 3;
    fdr_enter(fdr_region_define("r", NULL, 0));
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *at = strstr(line, "/dev/shm/fdr-");
        if (at) fputs(at, stdout);
    }
    printf("%llu\n", (unsigned long long)fdr_usage().buffer_bytes);
    fdr_finalize();
    return 0;
}
END
cc -I "$source_dir/include" "$work/victim.c" -o "$work/victim" -L "$build/lib" "-Wl,-rpath,$work" -lfdr
chmod 4755 "$work/victim"
cd "$work/mine"
status=0
setpriv --reuid 65534 --regid 65534 --clear-groups env FDR_LIVE_DIR="$work/mine" FDR_LIVE_FORCE=1 FDR_DIR="$work/mine" \
    FDR_TRIGGERS='x: bogus' FDR_BUFFER=nonsense FDR_ARENA=anonymous FDR_FINALIZE=snapshot FDR_ENABLE=0 "$work/victim" >"$work/out" 2>"$work/err" || status=$?
if [ "$status" = 77 ]; then echo "skipped: no set-user-id programs on this file system"; exit 77; fi
bad=0
[ "$status" = 0 ] || { echo "status $status"; bad=1; }
grep -q '^/dev/shm/fdr-0/' "$work/out" || { echo "not recorded where its owner's recordings are:"; cat "$work/out" "$work/err"; bad=1; }
[ "$(tail -1 "$work/out")" -gt 1000000 ] || { echo "no recording"; bad=1; }
[ ! -s "$work/err" ] || { echo "it says:"; cat "$work/err"; bad=1; }
[ -z "$(ls -A "$work/mine")" ] || { echo "it left:"; ls -la "$work/mine"; bad=1; }
[ "$bad" = 0 ]
