#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=tools,slow timeout=300 promise=P8
# P8: if memory runs out, or the writer dies during reading, fdr check reports no false damage, and gives the reason. An
# injected library lets allocations fail, kills the writer, or lets reads fail.
set -u
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
if [ ! -x "$fdr" ]; then echo "test_check_out_of_memory: no $fdr (jansson or zstd missing): skipped"; exit 77; fi
if [ -n "${FDR_SANITIZE:-}" ]; then echo "sanitizers bring an allocator of their own"; exit 77; fi
work=$(mktemp -d)
live=/dev/shm/fdr-test-straits-$$
victim=
trap '[ -n "$victim" ] && kill -9 "$victim" 2>/dev/null; rm -rf "$work" "$live"' EXIT
cd "$work" || exit 1
mkdir -m 700 "$live"
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }

cat >program.c <<'END'
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static fdr_region r[16];
static void call(unsigned depth, unsigned *seed)
{
    *seed = *seed * 1103515245 + 12345;
    fdr_region mine = r[*seed >> 16 & 15];
    fdr_enter(mine);
    if (depth) call(depth - 1, seed);
    fdr_leave(mine);
}
static void *work(void *seed)
{
    for (unsigned s = (unsigned)(size_t)seed;;) call(s >> 8 & 15, &s);
    return NULL;
}
int main(int argc, char **argv)
{
    char name[16];
    unsigned seed = 1;
    pthread_t t;
    (void)argv;
    if (fdr_init(NULL)) return 90;
    for (int i = 0; i < 16; i++) snprintf(name, sizeof name, "region %d", i), r[i] = fdr_region_define(name, "file", 1);
    for (int i = 0; i < 20000; i++) call(20, &seed);
    if (argc == 1) return fdr_snapshot("whole");
    for (size_t i = 0; i < 4; i++) pthread_create(&t, NULL, work, (void *)i);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
END
# The library for LD_PRELOAD. FAIL_AT=N: allocations fail from the Nth one on, counted from the first opening of a
# *.fdr; with FAIL_FOR=M only M of them fail. VICTIM=PID: kills this process just before its maps are read for the first
# time. EIO=1: reads of a file fail behind its first 64 KiB.
cat >shim.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static long left = -1, refuse = -1; /* -1: for ever */
static int none(void)
{
    if (left < 0) return 0;
    if (left > 0) return left--, 0;
    if (refuse == 0) return 0;
    refuse -= refuse > 0;
    errno = ENOMEM;
    return 1;
}
void *malloc(size_t n) { return none() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return none() ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return none() ? NULL : __libc_realloc(p, n); }
int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list a;
    va_start(a, flags);
    mode_t mode = va_arg(a, mode_t);
    va_end(a);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "open");
    int fd = real(path, flags, mode);
    if (getenv("FAIL_AT") && left < 0 && strstr(path, ".fdr")) {
        left = atol(getenv("FAIL_AT"));
        refuse = getenv("FAIL_FOR") ? atol(getenv("FAIL_FOR")) : -1;
    }
    return fd;
}
ssize_t pread(int fd, void *to, size_t count, off_t at)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (getenv("EIO") && at + count > 65536) return errno = EIO, -1;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pread");
    return real(fd, to, count, at);
}
static void end(const char *maps, int pid)
{
    char byte;
    kill(pid, SIGKILL);
    for (ssize_t n = 1; n > 0; usleep(1000)) {
        int fd = openat(AT_FDCWD, maps, O_RDONLY);
        n = fd < 0 ? 0 : read(fd, &byte, 1);
        if (fd >= 0) close(fd);
    }
}
FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*real)(const char *, const char *);
    char maps[64];
    const char *victim = getenv("VICTIM");
    snprintf(maps, sizeof maps, "/proc/%s/maps", victim ? victim : "");
    if (victim && !strcmp(path, maps)) end(maps, atoi(victim));
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    return real(path, mode);
}
END
library=$(find "$FDR_BUILD" -maxdepth 2 -name 'libfdr.so' | head -1)
flags=
[ "${FDR_COVERAGE:-OFF}" = ON ] && flags=--coverage
# shellcheck disable=SC2086
${CC:-cc} $flags -O2 -I"$FDR_SOURCE/include" program.c "$library" -pthread -Wl,-rpath,"$(dirname "$library")" -o program || exit 1
${CC:-cc} -O2 -shared -fPIC shim.c -ldl -o shim.so || exit 1
export FDR_LIVE_DIR=$live FDR_DIR=$work FDR_BUFFER=4M

# ---- memory ends ----
./program || exit 1
file=$(ls ./*.fdr)
whole=$("$fdr" check "$file") || fail "not whole: $whole"
refused=0
last=0
short() { # short WORDS: runs fdr check while allocation $at fails
    local said code
    said=$(FAIL_AT=$at LD_PRELOAD=$work/shim.so "$fdr" check "$file" 2>err.txt)
    code=$?
    [ $code = 0 ] && [ "$said" = "$whole" ] && return
    refused=$((refused + 1))
    last=$at
    if [ $code != 2 ] || ! grep -q 'out of memory' err.txt; then fail "no memory $1 allocation $at: exit $code, $said $(cat err.txt)"; fi
}
for at in $(seq 0 1 60) $(seq 63 3 200) $(seq 217 61 1500); do short "from then on, at"; done
[ $refused -gt 50 ] || fail "memory ended $refused times only"
# One allocation fails, later ones succeed, with the file open. The parts left out must not be reported as damage.
refused=0
for at in $(seq $((last - 40)) $((last + 10))); do FAIL_FOR=1 short "once, at"; done
[ $refused -gt 10 ] || fail "memory was short $refused times only"
if FAIL_AT=60 LD_PRELOAD=$work/shim.so "$fdr" recover "$file" -o copy.fdr >/dev/null 2>&1 || [ -e copy.fdr ]; then
    fail "fdr recover without memory"
fi

# ---- the writer dies ----
for round in 1 2 3 4 5 6; do
    ./program on >ready.txt &
    victim=$!
    until [ -s ready.txt ] || ! kill -0 "$victim" 2>/dev/null; do sleep 0.05; done
    if [ ! -s ready.txt ]; then fail "round $round: the program ended at once"; break; fi
    sleep 0.2
    file=$(ls "$live"/*.fdr)
    said=$(VICTIM=$victim LD_PRELOAD=$work/shim.so "$fdr" check "$file" 2>&1)
    code=$?
    kill -0 "$victim" 2>/dev/null && fail "round $round: it was not looked at"
    wait "$victim" 2>/dev/null
    [ $code = 0 ] || fail "round $round: killed while it was read: exit $code: $said"
    "$fdr" check "$file" >out.txt || fail "round $round: $(cat out.txt)"
    said=$(EIO=1 LD_PRELOAD=$work/shim.so "$fdr" check "$file" 2>&1)
    code=$?
    if [ $code != 2 ] || [[ $said != *"Input/output error"* ]]; then fail "a disk that fails: exit $code: $said"; fi
    rm -f "$file" ready.txt
done
victim=
exit $((bad > 0))
