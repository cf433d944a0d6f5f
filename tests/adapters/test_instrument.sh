#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house,slow timeout=300 promise=P5
# P5: with compiler instrumentation (fdr::instrument) `fdr stats` shows the exact number of calls of every function,
# under its name. Small programs in C, C++ and Fortran are built with each available compiler and recorded.
set -euo pipefail
: "${FDR_BUILD:?}" "${FDR_SOURCE:?}"
fdr=$FDR_BUILD/bin/fdr
lib=$FDR_BUILD/lib
include=$FDR_SOURCE/include
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" = ON ]; then echo "not with sanitizers"; exit 77; fi
if [ ! -x "$fdr" ]; then echo "no $fdr (jansson or zstd missing)"; exit 77; fi
if ! "$fdr" version --build | grep -q '^with:.*\bdw\b'; then echo "no symbols without libdw"; exit 77; fi
if [ ! -e "$lib/libfdr-instrument.so" ]; then echo "libfdr-instrument is not built"; exit 1; fi

work=$(mktemp -d)
trap 'rm -rf "$work" "$FDR_LIVE_DIR"' EXIT
unset "${!FDR_@}"
FDR_LIVE_DIR=$(mktemp -d /dev/shm/fdr-test-XXXXXX 2>/dev/null || mktemp -d)
export FDR_LIVE_DIR FDR_FINALIZE=snapshot FDR_BUFFER=8M
cd "$work"
bad=0
fail() { echo "FAIL: $*"; bad=$((bad + 1)); }

cat >calls.py <<'END'
# calls.py STATS.json NAME=COUNT...: exactly so many calls; NAME may end in * (then the sum)
import json, os, sys
rows = json.load(open(sys.argv[1]))
wrong = 0
for want in sys.argv[2:]:
    name, count = want.rsplit("=", 1)
    if name.endswith("*"): got = sum(r["calls"] for r in rows if r["name"].startswith(name[:-1]))
    else: got = sum(r["calls"] for r in rows if r["name"] == name)
    if got != int(count):
        print(f"  {name}: {got} calls, expected {count}")
        wrong += 1
nameless = [r["name"] for r in rows if r["calls"] and (r["name"].startswith(("0x", "[")) or "+0x" in r["name"])]
if nameless and not os.environ.get("NAMELESS_OK"):
    print("  without a name:", *nameless)
    wrong += 1
if wrong: print("  there are:", *sorted(r["name"] + "=" + str(r["calls"]) for r in rows if "std::" not in r["name"])[:60])
sys.exit(wrong != 0)
END

# record WHAT PROGRAM: runs the program in a folder of its own, with its output in WHAT/out. It must leave exactly one
# snapshot, $snapshot.
record()
{
    local what=$1 status=0 files
    shift
    rm -rf "$what" && mkdir "$what"
    (cd "$what" && FDR_DIR=$PWD timeout 60 "$@" >out 2>err) || status=$?
    snapshot=
    if [ "$status" != 0 ]; then fail "$what: status $status: $(tail -2 "$what/err" | tr '\n' ' ')"; return 1; fi
    if [ -s "$what/err" ]; then fail "$what: says $(head -3 "$what/err")"; return 1; fi
    files=("$what"/*.fdr)
    if [ ${#files[@]} != 1 ] || [ ! -s "${files[0]}" ]; then fail "$what: no snapshot"; return 1; fi
    snapshot=${files[0]}
}

# calls WHAT NAME=COUNT...: the same check of the newest snapshot
calls()
{
    local what=$1
    shift
    if [ -z "$snapshot" ]; then return 0; fi
    if ! "$fdr" check "$snapshot" >check.txt 2>&1; then fail "$what: fdr check: $(head -3 check.txt)"; fi
    "$fdr" stats --json "$snapshot" >stats.json 2>err.txt || fail "$what: fdr stats: $(head -3 err.txt)"
    if python3 calls.py stats.json "$@"; then echo "ok: $what ($# regions)"; else fail "$what: the calls are not exact"; fi
}

# lost WHAT: no event may be lost
lost()
{
    if [ -z "$snapshot" ]; then return 0; fi
    "$fdr" info --json "$snapshot" >info.json
    python3 -c 'import json, sys; sys.exit(sum(r["lost"] for r in json.load(open("info.json"))["ledger"]) != 0)' ||
        fail "$1: events are lost"
}

# opened WHAT NAME...: checks the calls open at the end in the first location, outermost first
opened()
{
    local what=$1
    shift
    if [ -z "$snapshot" ]; then return 0; fi
    "$fdr" info --json "$snapshot" >info.json
    python3 -c 'import json, sys
got = json.load(open("info.json"))["locations"][0]["open"]
if got != sys.argv[1:]: print("  open:", got); sys.exit(1)' "$@" || fail "$what: not the open calls"
}

# nested WHAT PATH...: these call paths exist, and no other path of their length
nested()
{
    local what=$1
    shift
    if [ -z "$snapshot" ]; then return 0; fi
    "$fdr" export --to folded -o - "$snapshot" | sed 's/ [0-9]*$//' |
        awk -F ';' 'NF == 4' | sort >paths.txt
    printf '%s\n' "$@" | sort | diff - paths.txt >diff.txt || fail "$what: not these call paths: $(cat diff.txt)"
}

hooks=(-g -finstrument-functions)
link=(-L "$lib" "-Wl,-rpath,$lib" -lfdr-instrument -lfdr)

# ---- the programs -----------------------------------------------------------------------------------------------------

cat >plain.c <<'END'
/* Constructors, destructors, recursion, longjmp, errno, fork; every function counts what it is called. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static jmp_buf back;
static volatile int sink;
__attribute__((constructor)) static void before_main(void) { sink++; }
__attribute__((destructor)) static void after_main(void) { sink++; }
static void at_exit(void) { sink++; }
static inline int tiny(int n) { return n + sink; }
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
void jump(int n) { if (n == 0) longjmp(back, 1); jump(n - 1); }
static void jumper(void) { if (setjmp(back) == 0) jump(9); }
static int first_on_thread(void) { return errno; }
static void *thread(void *wrong)
{
    errno = 4321;
    if (first_on_thread() != 4321 || errno != 4321) ++*(int *)wrong;
    return NULL;
}
static void only_in_child(void) { sink++; }
int down(int n) { return n == 0 ? sink : down(n - 1) + 1; }
int main(void)
{
    int wrong = 0;
    atexit(at_exit);
    errno = 1234;
    for (int i = 0; i < 1000; i++) sink += tiny(i);
    fib(15);
    if (errno != 1234) wrong++;
    for (int i = 0; i < 10; i++) jumper();
    for (int i = 0; i < 5; i++) {
        pthread_t t;
        pthread_create(&t, NULL, thread, &wrong);
        pthread_join(t, NULL);
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        only_in_child();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    down(900); /* dozens of blocks of levels */
    if (wrong || status) fprintf(stderr, "errno changed %d times, child %d\n", wrong, status);
    return wrong != 0;
}
END

cat >nested_exit.c <<'END'
#include <stdlib.h>
static volatile int sink;
static void handler(void) { sink++; }
__attribute__((destructor)) static void last(void) { sink++; }
__attribute__((noinline)) static void three(void) { exit(0); }
__attribute__((noinline)) static void two(void) { three(); }
__attribute__((noinline)) static void one(void) { two(); }
int main(void) { atexit(handler); one(); }
END

cat >signals.c <<'END'
/* A timer's handler, instrumented, interrupts instrumented code and hooks; also on an alternate stack. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile int handled, sink;
__attribute__((noinline)) static void inside(void) { sink++; }
static void handler(int n) { (void)n; inside(); inside(); handled++; }
__attribute__((noinline)) static void work(void) { sink++; }
int main(void)
{
    stack_t s = {.ss_sp = malloc(1 << 18), .ss_size = 1 << 18};
    sigaltstack(&s, NULL);
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &a, NULL);
    struct itimerval t = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &t, NULL);
    int n = 0;
    while (handled < 500) { work(); n++; }
    setitimer(ITIMER_REAL, &off, NULL);
    signal(SIGALRM, SIG_IGN);
    printf("work=%d handler=%d inside=%d\n", n, handled, 2 * handled);
}
END

cat >classes.cpp <<'END'
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>
static volatile int sink;
struct Global { Global(); ~Global(); };
Global::Global() { sink = sink + 1; }
Global::~Global() { sink = sink + 2; } /* no two bodies alike: the compiler would make them one function */
static Global global;
struct Local { Local(); ~Local(); };
Local::Local() { sink = sink + 3; }
Local::~Local() { sink = sink + 4; }
void thrower(int n)
{
    Local local;
    if (n == 0) throw std::runtime_error("x");
    thrower(n - 1);
}
int catcher() { try { thrower(4); } catch (const std::runtime_error &) { return 1; } return 0; }
namespace deep { template <class T> T twice(T x) { sink = sink + 1; return x + x; } }
struct Base { virtual ~Base() {} virtual int call(int) = 0; };
struct Derived : Base { int call(int n) override; };
int Derived::call(int n) { return n + sink; }
void work(Base &b, int n) { for (int i = 0; i < n; i++) b.call(i); }
struct AtThreadExit { ~AtThreadExit(); };
AtThreadExit::~AtThreadExit() { sink = sink + 5; }
static thread_local AtThreadExit at_thread_exit;
void thread_main() { (void)&at_thread_exit; Derived d; work(d, 1000); }
int main()
{
    int caught = 0;
    for (int i = 0; i < 100; i++) caught += catcher();
    for (int i = 0; i < 7; i++) deep::twice<int>(i);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(thread_main);
    for (auto &t : threads) t.join();
    return caught != 100;
}
END

cat >scopes.cpp <<'END'
// Regions by object and by macro among hooked functions: what happens inside of them is inside.
#include <fdr/fdr.hpp>
static volatile int sink;
static const fdr::region solve("solve");
__attribute__((noinline)) static void inside() { sink = sink + 1; }
__attribute__((noinline)) static void by_object() { fdr::scope in(solve); inside(); }
__attribute__((noinline)) static void by_macro() { FDR_REGION("macro") inside(); }
int main() { for (int i = 0; i < 5; i++) { by_object(); by_macro(); } }
END

cat >numbers.f90 <<'END'
module numbers
contains
    subroutine step(x)
        real(8), intent(inout) :: x
        x = x * 0.5d0 + 1
    end subroutine
    recursive integer function fib(n) result(r)
        integer, intent(in) :: n
        if (n < 2) then
            r = n
        else
            r = fib(n - 1) + fib(n - 2)
        end if
    end function
end module
program main
    use numbers
    real(8) :: x
    integer :: i
    x = 1
    do i = 1, 1000
        call step(x)
    end do
    if (fib(10) /= 55 .or. x > 3) stop 1
end program
END

# Two plugins of the same layout: the loader probably maps the second at the address of the first.
for name in alpha gamma; do
    cat >plugin_$name.c <<END
static volatile int sink;
__attribute__((constructor)) static void ${name}_up(void) { sink++; }
__attribute__((destructor)) static void ${name}_down(void) { sink++; }
__attribute__((noinline)) static int ${name}_inner(int n) { return n + sink; }
int run(int n) { int s = 0; for (int i = 0; i < n; i++) s += ${name}_inner(i); return s; }
END
done
cat >host.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static void use(const char *path, int n)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) { fprintf(stderr, "%s\n", dlerror()); exit(1); }
    int (*run)(int) = (int (*)(int))dlsym(plugin, "run");
    run(n);
    dlclose(plugin);
}
int main(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[argc - 1]); i++)
        for (int k = 1; k < argc - 1; k++) use(argv[k], 10);
    return 0;
}
END

cat >allocator.c <<'END'
/* An allocator that is instrumented itself: whatever the recorder allocates comes back through the hooks. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static char pool[1 << 24];
static size_t used;
static void *take(size_t n)
{
    size_t at = __atomic_fetch_add(&used, (n + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    if (at + n + 16 > sizeof pool) return NULL;
    *(size_t *)(void *)(pool + at) = n;
    return pool + at + 16;
}
void *malloc(size_t n) { return take(n); }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return take(n * m); }
void *realloc(void *p, size_t n)
{
    void *q = take(n);
    if (p && q) { size_t had = ((size_t *)p)[-2]; memcpy(q, p, had < n ? had : n); }
    return q;
}
static volatile int sink;
static void work(void) { sink++; free(malloc(10)); }
static void *thread(void *none) { for (int i = 0; i < 100; i++) work(); return none; }
int main(void)
{
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        pthread_create(&t, NULL, thread, NULL);
        pthread_join(t, NULL);
    }
    return 0;
}
END

cat >locks.c <<'END'
/* A profiler of locks that is instrumented itself: the recorder and liburcu take and leave theirs through it, also in
 * the destructors of a thread's own data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#define PLAIN __attribute__((no_instrument_function))
static unsigned long taken;
static int (*real[4])();
PLAIN static void *find(int i, const char *name) { return real[i] ? real[i] : (real[i] = dlsym(RTLD_NEXT, name)); }
#define REAL(i, type, name) ((type)find(i, name))
int pthread_mutex_lock(pthread_mutex_t *m) { taken++; return REAL(0, int (*)(pthread_mutex_t *), "pthread_mutex_lock")(m); }
int pthread_mutex_unlock(pthread_mutex_t *m) { return REAL(1, int (*)(pthread_mutex_t *), "pthread_mutex_unlock")(m); }
int pthread_setcancelstate(int is, int *was) { return REAL(2, int (*)(int, int *), "pthread_setcancelstate")(is, was); }
int pthread_setcanceltype(int is, int *was) { return REAL(3, int (*)(int, int *), "pthread_setcanceltype")(is, was); }
static volatile int sink;
static void work(void) { sink++; }
static void *thread(void *none) { for (int i = 0; i < 100; i++) work(); return none; }
int main(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t t[3];
        for (int k = 0; k < 3; k++) pthread_create(&t[k], NULL, thread, NULL);
        for (int k = 0; k < 3; k++) pthread_join(t[k], NULL);
    }
    return 0;
}
END

# ---- C, with every compiler, shared and static ---------------------------------------------------------------------------

fib15=1973 # calls of fib(15)
plain=(main=1 before_main=1 after_main=1 at_exit=1 tiny=1000 "fib=$fib15" jumper=10 jump=100 thread=5 first_on_thread=5
    only_in_child=0 down=901)
compilers=(gcc)
for cc in clang-14 clang; do if command -v $cc >/dev/null; then compilers+=("$cc"); break; fi; done
for cc in "${compilers[@]}"; do
    if ! command -v "$cc" >/dev/null; then continue; fi
    for level in -O0 -O2; do
        # gcc -O2 turns some recursions into loops; this test counts calls
        "$cc" "$level" "${hooks[@]}" -fno-optimize-sibling-calls plain.c -o plain "${link[@]}" -pthread
        record "plain-$cc$level" ../plain || true
        calls "plain-$cc$level" "${plain[@]}"
        "$cc" "$level" "${hooks[@]}" signals.c -o signals "${link[@]}"
        if record "signals-$cc$level" ../signals; then
            read -ra expected <"signals-$cc$level/out"
            calls "signals-$cc$level" main=1 "${expected[@]}"
            lost "signals-$cc$level"
        fi
    done
    "$cc" -O2 "${hooks[@]}" nested_exit.c -o nested_exit "${link[@]}"
    if record "nested_exit-$cc" ../nested_exit; then
        calls "nested_exit-$cc" main=0 one=0 two=0 three=0 handler=1 last=1
        opened "nested_exit-$cc" main one two three
    fi
    "$cc" -O2 -fno-builtin "${hooks[@]}" allocator.c -o allocator "${link[@]}" -pthread
    if record "allocator-$cc" ../allocator; then calls "allocator-$cc" work=300 thread=3; fi
    "$cc" -O2 -w -rdynamic "${hooks[@]}" locks.c -o locks "${link[@]}" -pthread -ldl
    # these are also called by fdr while it looks up a name; such calls have no name
    if record "locks-$cc" ../locks; then NAMELESS_OK=1 calls "locks-$cc" main=1 work=6000 thread=60; fi
    mkdir "watched-$cc"
    status=0
    (cd "watched-$cc" && FDR_DIR=$PWD FDR_TRIGGERS="slow: region pthread_mutex_* over 1ns holdoff 10s keep 1" \
        timeout 60 ../locks >out 2>&1) || status=$?
    if [ "$status" = 0 ]; then echo "ok: watched-$cc"; else fail "watched-$cc: status $status: $(tail -2 "watched-$cc/out")"; fi
done
read -ra needs <<<"$(pkg-config --libs liburcu-bp numa)"
gcc -O2 "${hooks[@]}" -fno-optimize-sibling-calls plain.c -o plain_static -L "$lib" -l:libfdr-instrument.a -l:libfdr.a \
    "${needs[@]}" -pthread -lrt -ldl
record plain-archive ../plain_static || true
calls plain-archive "${plain[@]}"

# ---- off: no file, nothing said, nothing created ---------------------------------------------------------------------------

gcc -O2 "${hooks[@]}" -fno-optimize-sibling-calls plain.c -o plain "${link[@]}" -pthread
mkdir off
if (cd off && FDR_ENABLE=0 FDR_DIR=$PWD FDR_LIVE_DIR=$PWD/live ../plain >out 2>err) && [ ! -s off/err ] &&
    [ "$(find off -type f -name '*.fdr' | wc -l)" = 0 ] && [ ! -e off/live ]; then
    echo "ok: FDR_ENABLE=0 leaves nothing"
else
    fail "FDR_ENABLE=0: $(ls -A off) $(head -3 off/err)"
fi
# if the recording cannot start, the program runs on
mkdir nowhere
if (cd nowhere && FDR_BUFFER=4K FDR_DIR=/nonexistent/x FDR_LIVE_DIR=/nonexistent/y timeout 60 ../plain >out 2>err); then
    echo "ok: without a place to record the program runs: $(head -1 nowhere/err)"
else
    fail "without a place to record the program fails: $(head -3 nowhere/err)"
fi

# ---- C++ ---------------------------------------------------------------------------------------------------------------------

for cxx in g++ clang++-14; do
    if ! command -v "$cxx" >/dev/null; then continue; fi
    for level in -O0 -O2; do
        if ! "$cxx" "$level" -std=c++17 "${hooks[@]}" -fno-optimize-sibling-calls classes.cpp -o classes "${link[@]}" \
            -pthread 2>compile.txt; then
            # clang++ may need the newest libstdc++ that gcc brought
            echo "skipped: $cxx does not compile C++ here: $(head -1 compile.txt)"
            break
        fi
        record "classes-$cxx$level" ../classes || true
        calls "classes-$cxx$level" main=1 'Global::Global()=1' 'Global::~Global()=1' 'Local::Local()=500' \
            'Local::~Local()=500' 'thrower(int)=500' 'catcher()=100' 'int deep::twice<int>(int)=7' 'thread_main()=4' \
            'work(Base&, int)=4' 'Derived::call(int)=4000' 'AtThreadExit::~AtThreadExit()=4'
        "$cxx" "$level" -std=c++17 "${hooks[@]}" -I "$include" scopes.cpp -o scopes "${link[@]}"
        record "scopes-$cxx$level" ../scopes || true
        calls "scopes-$cxx$level" main=1 solve=5 macro=5 'inside()=10' 'fdr::*=0'
        nested "scopes-$cxx$level" 'main;by_object();solve;inside()' 'main;by_macro();macro;inside()'
    done
done

# ---- Fortran -------------------------------------------------------------------------------------------------------------------

if command -v gfortran >/dev/null; then
    for level in -O0 -O2; do
        gfortran "$level" "${hooks[@]}" -fno-optimize-sibling-calls numbers.f90 -o numbers "${link[@]}"
        record "numbers-gfortran$level" ../numbers || true
        calls "numbers-gfortran$level" main=1 MAIN__=1 numbers::step=1000 numbers::fib=177
    done
fi

# ---- libraries that come and go --------------------------------------------------------------------------------------------------

# One plugin is linked to the hooks. The other only expects the hooks in the program. Its reference carries the version
# of glibc's empty hooks; these must not win.
gcc -O2 "${hooks[@]}" -shared -fPIC plugin_alpha.c -o alpha.so "${link[@]}"
gcc -O2 "${hooks[@]}" -shared -fPIC plugin_gamma.c -o gamma.so
gcc -O2 "${hooks[@]}" host.c -o host "${link[@]}"
record one_plugin ../host ../alpha.so 20 || true
calls one_plugin main=1 use=20 run=20 alpha_inner=200 alpha_up=20 alpha_down=20
record bare_plugin ../host ../gamma.so 20 || true
calls bare_plugin main=1 use=20 run=20 gamma_inner=200 gamma_up=20 gamma_down=20
record two_plugins ../host ../alpha.so ../gamma.so 20 || true
calls two_plugins main=1 use=40 run=40 alpha_inner=200 gamma_inner=200 alpha_up=20 gamma_up=20 alpha_down=20 gamma_down=20

if [ "$bad" != 0 ]; then echo "test_instrument: $bad failed"; exit 1; fi
echo "test_instrument: all good"
