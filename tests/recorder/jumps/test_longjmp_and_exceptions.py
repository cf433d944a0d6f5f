#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# ctest: label=house,slow timeout=300 promise=P5,P9
# P5, P9: longjmp and exceptions leave functions, in programs whose main loop goes on. Each program counts its own calls
# by call path, and the recorded tree of calls must equal these counts.
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

build, source = os.environ["FDR_BUILD"], os.environ["FDR_SOURCE"]
fdr, lib = f"{build}/bin/fdr", f"{build}/lib"
if os.environ.get("FDR_SANITIZE") or os.environ.get("FDR_COVERAGE") == "ON":
    print("not with sanitizers: their runtimes have hooks of their own")
    sys.exit(77)
if not os.path.exists(fdr) or "dw" not in subprocess.run([fdr, "version", "--build"], capture_output=True,
                                                         text=True).stdout.split():
    print("skipped: no fdr command, or none with symbols")
    sys.exit(77)
work = tempfile.mkdtemp(prefix="fdr-jumps-")
live = tempfile.mkdtemp(prefix="fdr-test-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
bad = 0

# Counts the program's own calls by path. enter() appends a name to the thread's path; leave() and jumps shorten it. The
# program prints lines "calls PATH" at its end.
TRUTH = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <fdr/fdr.h>
#define HIDDEN __attribute__((no_instrument_function))
#define APART __attribute__((noinline, noclone))
#ifdef __cplusplus
#include <atomic>
#endif
enum { NODES = 4096 };
static struct node { const char *name; int parent; long calls; } node[NODES] = {{"", -1, 0}};
static int nodes = 1;
static long left; /* calls that had no leave */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int at;
static volatile int sink;
static HIDDEN int child(int parent, const char *name)
{
    for (int i = 1; i < nodes; i++) if (node[i].parent == parent && !strcmp(node[i].name, name)) return i;
    node[nodes].name = name;
    node[nodes].parent = parent;
    return nodes++;
}
static __thread int known[NODES]; /* the newest child of each */
static HIDDEN void enter(const char *name)
{
    int c = known[at];
    if (!c || node[c].name != name) {
        pthread_mutex_lock(&lock);
        c = known[at] = child(at, name);
        pthread_mutex_unlock(&lock);
    }
    at = c;
    __atomic_add_fetch(&node[c].calls, 1, __ATOMIC_RELAXED);
}
static HIDDEN void leave(void) { at = node[at].parent; }
static HIDDEN void landed(int to) /* a jump came out where `to` is open */
{
    for (; at != to; at = node[at].parent) __atomic_add_fetch(&left, 1, __ATOMIC_RELAXED);
}
static HIDDEN void path(int n) { if (node[n].parent > 0) path(node[n].parent), printf(";"); printf("%s", node[n].name); }
static HIDDEN void __attribute__((destructor)) print(void)
{
    for (int i = 1; i < nodes; i++) printf("%ld ", node[i].calls), path(i), printf("\n");
    printf("left %ld\n", left);
    fflush(stdout);
}
static HIDDEN unsigned next(uint64_t *state) { return (unsigned)((*state = *state * 6364136223846793005u + 1442695040888963407u) >> 33); }
"""

# Main loops: jumps from depths 1 to 50 through functions with and without variables on the stack. They are called
# directly, by pointer, or inlined into the loop. A second thread does the same.
LOOP = TRUTH + r"""
static __thread jmp_buf back;
APART static void leaf(int n) { enter("leaf"); sink += n; leave(); }
static inline void part(int n) { enter("part"); sink += n; leaf(n); leave(); }
APART static void down(int n, uint64_t *r)
{
    enter("down");
    if (next(r) % 4 == 0) part(n);
    if (n <= 1) longjmp(back, 1);
    down(n - 1, r);
    sink++;
    leave();
}
APART static void wide(int n, uint64_t *r)
{
    volatile char room[2000];
    enter("wide");
    room[n] = 1;
    leaf(n);
    if (n <= 1) longjmp(back, 1);
    down(n - 1, r);
    sink += room[n];
    leave();
}
APART static void fine(int n, uint64_t *r) { enter("fine"); part(n), leaf((int)(*r & 1)); leave(); }
APART static void once(int n, uint64_t *r) { enter("once"); if (n <= 1) longjmp(back, 1); down(n - 1, r); leave(); }
static void (*const by_pointer[])(int, uint64_t *) = {down, wide, fine};
APART static void loop(int jumps, uint64_t seed)
{
    enter("loop");
    struct state { uint64_t r; int n, here; } *volatile s = (struct state *)calloc(1, sizeof *s);
    s->r = seed, s->n = jumps, s->here = at;
    if (setjmp(back)) landed(s->here);
    while (s->n-- > 0) {
        unsigned kind = next(&s->r) % 8;
        int depth = 1 + (int)(next(&s->r) % 50);
        if (kind < 2) down(depth, &s->r);
        else if (kind == 2) wide(depth, &s->r);
        else if (kind == 3) once(depth, &s->r);
        else if (kind == 4) fine(depth, &s->r);
        else by_pointer[kind % 3](depth, &s->r);
    }
    free((void *)s);
    leave();
}
APART static void *thread(void *none) { enter("thread"); loop(JUMPS / 2, 7); leave(); return none; }
int main(void)
{
    pthread_t t;
    enter("main");
    pthread_create(&t, NULL, thread, NULL);
    loop(JUMPS, 1);
    pthread_join(t, NULL);
    leave();
    return 0;
}
"""

# Jumps out of handlers, on the interrupted stack, on an alternate stack, and on one that is a part of the former.
HANDLERS = TRUTH + r"""
static sigjmp_buf back;
APART static void inside(void) { enter("inside"); sink++; leave(); }
static void handler(int n) { enter("handler"); inside(); if (n) siglongjmp(back, 1); leave(); }
APART static void work(int n) { enter("work"); inside(); if (n % 3) raise(n % 2 ? SIGUSR2 : SIGUSR1); sink++; leave(); }
static void returning(int n) { (void)n; enter("returning"); inside(); leave(); }
static HIDDEN void install(int number, void (*f)(int), int flags)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = f;
    a.sa_flags = flags;
    sigaction(number, &a, NULL);
}
APART static void rounds(int returns, int jumps_inside)
{
    enter("rounds");
    volatile int n = 0;
    volatile int here = at;
    install(SIGUSR1, returns ? returning : handler, SA_ONSTACK);
    install(SIGUSR2, returns ? returning : handler, 0);
    if (sigsetjmp(back, 1)) landed(here);
    for (; n < 2000;) {
        n++;
        if (jumps_inside) { inside(); raise(n % 2 ? SIGUSR1 : SIGUSR2); }
        else work(n);
    }
    leave();
}
APART static void on_stack(char *memory, size_t bytes)
{
    enter("on_stack");
    stack_t s, none;
    memset(&s, 0, sizeof s), memset(&none, 0, sizeof none);
    s.ss_sp = memory, s.ss_size = bytes;
    none.ss_flags = SS_DISABLE;
    sigaltstack(&s, NULL);
    rounds(1, 0);
    if (memory != NULL) rounds(0, 0), rounds(0, 1);
    sigaltstack(&none, NULL);
    leave();
}
APART static void local(void)
{
    enter("local");
    char room[65536];
    stack_t s;
    memset(&s, 0, sizeof s);
    s.ss_sp = room, s.ss_size = sizeof room;
    sigaltstack(&s, NULL);
    rounds(1, 0); /* nobody is taken for left */
    s.ss_flags = SS_DISABLE;
    sigaltstack(&s, NULL);
    leave();
}
enum { BYTES = 1 << 16 };
static char *area[2]; /* above the thread's own stack, and below it */
APART static void both(void)
{
    enter("both");
    on_stack(area[0], BYTES);
    on_stack(area[1], BYTES);
    local();
    leave();
}
static void *thread(void *none) { enter("thread"); both(); leave(); return none; }
int main(void)
{
    enter("main");
    char *all = (char *)mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    area[0] = all, area[1] = all + (3 << 20) + BYTES;
    mprotect(all + BYTES, 4096, PROT_NONE);
    mprotect(all + (3 << 20), 4096, PROT_NONE);
    both();
    pthread_attr_t a;
    pthread_t t;
    pthread_attr_init(&a);
    pthread_attr_setstack(&a, all + BYTES + 4096, (3 << 20) - BYTES - 4096);
    pthread_create(&t, &a, thread, NULL);
    pthread_join(t, NULL);
    leave();
    return 0;
}
"""

# Coroutines on stacks of their own, above and below the thread's. The recorder sees one nested order of calls and must
# close no call before its leave.
COROUTINES = TRUTH + r"""
enum { BYTES = 1 << 16 };
static __thread ucontext_t scheduler, routine[2];
static __thread int running;
static char *area[3];
APART static void leaf(void) { enter("leaf"); sink++; leave(); }
APART static void step(int n) { enter("step"); leaf(); if (n) step(n - 1); leaf(); leave(); }
APART static void yield(void) { swapcontext(&routine[running], &scheduler); }
static void body(void)
{
    for (;;) {
        enter("body_step"), leave();
        step(sink & 7);
        swapcontext(&routine[running], &scheduler);
        step(3);
    }
}
APART static void nested(int n)
{
    enter("nested");
    step(n & 3);
    swapcontext(&routine[running], &scheduler); /* left open: the scheduler's calls come inside */
    leaf();
    leave();
}
static HIDDEN void body_nested(void) { for (int n = 0;; n++) { nested(n); swapcontext(&routine[running], &scheduler); } }
static HIDDEN void make(int k, void (*f)(void))
{
    getcontext(&routine[k]);
    routine[k].uc_stack.ss_sp = area[k];
    routine[k].uc_stack.ss_size = BYTES;
    makecontext(&routine[k], f, 0);
}
static HIDDEN void resume(int k) { running = k; swapcontext(&scheduler, &routine[k]); }
APART static void rounds(void)
{
    enter("rounds");
    make(0, body_nested);
    make(1, body_nested);
    for (int n = 0; n < 2000; n++) {
        resume(n & 1); /* enters nested */
        leaf();
        step(n % 5);
        resume(n & 1); /* and leaves it */
        step(n % 3);
    }
    leave();
}
static void *thread(void *none) { enter("thread"); rounds(); leave(); return none; }
int main(void)
{
    enter("main");
    (void)body, (void)yield;
    char *all = (char *)mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    area[0] = all, area[1] = all + (3 << 20) + BYTES;
    mprotect(all + BYTES, 4096, PROT_NONE);
    rounds();
    pthread_attr_t a;
    pthread_t t;
    pthread_attr_init(&a);
    pthread_attr_setstack(&a, all + BYTES + 4096, (3 << 20) - BYTES - 4096);
    pthread_create(&t, &a, thread, NULL);
    pthread_join(t, NULL);
    leave();
    return 0;
}
"""

# A function that the compiler inlines into itself by way of another one, as iterators of iterators do. Some calls end in
# a jump.
INLINED = TRUTH + r"""
static jmp_buf back;
struct step { struct step *in; int jumps; };
HIDDEN APART static void note(const char *name) { enter(name); } /* small, so that the hooks lie near each other */
HIDDEN APART static void done(void) { leave(); }
static inline void next_step(struct step *s);
APART static void leaf(int jumps) { enter("leaf"); if (jumps) longjmp(back, 1); leave(); }
static inline void wrapper(struct step *s) { note("wrapper"); next_step(s); done(); }
static inline void next_step(struct step *s)
{
    note("next_step");
    if (s->in) wrapper(s->in);
    else leaf(s->jumps);
    done();
}
static void (*volatile by_pointer)(struct step *) = next_step;
APART static void start(struct step *s) { enter("start"); by_pointer(s); leave(); }
int main(void)
{
    static struct step steps[5];
    for (int i = 0; i < 4; i++) steps[i].in = &steps[i + 1];
    volatile int n = 0, here;
    enter("main");
    here = at;
    if (setjmp(back)) landed(here);
    while (n < 20000) { n++; steps[4].jumps = n % 3 == 0; start(&steps[n % 5]); }
    leave();
    return 0;
}
"""

# A region entered by id ends with the function that entered it.
REGIONS = TRUTH + r"""
static jmp_buf back;
static fdr_region one, two;
APART static void inside(int n) { enter("inside"); if (n % 5) longjmp(back, 1); leave(); }
APART static void work(int n)
{
    enter("work");
    fdr_enter(one), enter("one");
    fdr_enter(two), enter("two");
    if (n % 3 == 0) longjmp(back, 1);
    inside(n);
    leave(), fdr_leave(two);
    leave(), fdr_leave(one);
    leave();
}
int main(void)
{
    one = fdr_region_define("one", NULL, 0), two = fdr_region_define("two", NULL, 0);
    volatile int n = 0, here;
    enter("main");
    here = at;
    if (setjmp(back)) landed(here);
    while (n < 20000) { n++; work(n); }
    leave();
    return 0;
}
"""

# Exceptions through C functions compiled without support for exceptions: their leaves never come.
MIDDLE = r"""
static volatile int sink;
void middle(int n, void (*f)(int), void (*enter)(const char *), void (*leave)(void))
{
    enter("middle");
    if (n) middle(n - 1, f, enter, leave);
    else f(0);
    sink++;
    leave();
}
"""
EXCEPTIONS = TRUTH + r"""
#include <stdexcept>
extern "C" void middle(int n, void (*f)(int), void (*enter)(const char *), void (*leave)(void));
struct scope { HIDDEN scope(const char *name) { enter(name); } HIDDEN ~scope() { leave(); } };
APART static void thrower(int n) { scope s("thrower"); if (n == 0) throw std::runtime_error("x"); thrower(n - 1); }
extern "C" APART void callback(int n) { scope s("callback"); thrower(n + 3); }
APART static void serve(int n) { scope s("serve"); middle(n % 20, callback, enter, leave); }
int main()
{
    enter("main");
    int here = at;
    for (int n = 0; n < 5000; n++) {
        try { serve(n); } catch (const std::exception &) { landed(here); }
    }
    leave();
    return 0;
}
"""


def fail(*what):
    global bad
    bad += 1
    print("FAIL:", *what)


HOOKS = ["-finstrument-functions"]
# Hooks at the first instruction and before the return. The programs count inlined functions, too, so none is inlined.
ENTRY = [f"-specs={work}/entry.specs", "-fno-inline"]
with open(f"{work}/entry.specs", "w") as specs:
    for part in "cc1", "cc1plus":
        specs.write(f"*{part}:\n+ -p -mfentry -minstrument-return=call\n\n")


def compiled(name, text, compiler, flags, more=(), hooks=HOOKS):
    suffix = ".cpp" if "++" in compiler else ".c"
    with open(f"{work}/{name}{suffix}", "w") as f:
        f.write(text)
    made = subprocess.run([compiler, *flags, "-g", *hooks, f"-I{source}/include", f"{work}/{name}{suffix}",
                           *more, "-o", f"{work}/{name}", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lfdr-instrument", "-lfdr",
                           "-pthread"], capture_output=True, text=True)
    if made.returncode and compiler.startswith("clang++"):
        print("skipped:", compiler, "does not compile C++ here")
        return False
    if made.returncode:
        fail(name, "does not compile:", made.stderr[:400])
    return made.returncode == 0


def paths(node, above, found):
    """Adds the calls of a tree to `found`, by path."""
    for n in node:
        here = above + [n["name"].split("(")[0]]
        found[";".join(here)] = found.get(";".join(here), 0) + n["calls"] + n["open"]
        paths(n["children"], here, found)


def recorded(what, name, jumps_left=True, settings=()):
    before = bad
    for f in os.listdir(work):
        if f.endswith(".fdr"):
            os.unlink(f"{work}/{f}")
    env = {k: v for k, v in os.environ.items() if not k.startswith("FDR_")}
    env |= {"FDR_LIVE_DIR": live, "FDR_DIR": work, "FDR_FINALIZE": "snapshot", "FDR_BUFFER": "64M"} | dict(settings)
    ran = subprocess.run([f"{work}/{name}"], env=env, capture_output=True, text=True, timeout=120)
    files = [f for f in os.listdir(work) if f.endswith(".fdr")]
    if ran.returncode or ran.stderr or len(files) != 1:
        fail(what, "status", ran.returncode, ran.stderr[:300], files)
        return
    file = f"{work}/{files[0]}"
    want, left = {}, 0
    for line in ran.stdout.splitlines():
        if line.startswith("left "):
            left = int(line.split()[1])
        else:
            calls, path = line.split(" ", 1)
            want[path] = want.get(path, 0) + int(calls)
    tool = lambda *a: subprocess.run([fdr, *a, file], capture_output=True, text=True)
    checked = tool("check")
    if checked.returncode:
        fail(what, "fdr check:", checked.stdout[:300])
    info = json.loads(tool("info", "--json").stdout)
    got = {}
    paths(json.loads(tool("tree", "--json").stdout), [], got)
    wrong = [f"{p}: {got.get(p, 0)} calls, made {want.get(p, 0)}" for p in sorted(set(got) | set(want))
             if got.get(p, 0) != want.get(p, 0)]
    if wrong:
        fail(what, f"{len(wrong)} paths differ, first", *wrong[:6])
    unbalanced = sum(l["unbalanced"] for l in info["locations"])
    stray = sum(l["stray_leaves"] for l in info["locations"])
    if (unbalanced != left and jumps_left != "some") or stray:
        fail(what, f"{unbalanced} calls closed without their leave, {left} were left; {stray} leaves of nothing open")
    if jumps_left and not left:
        fail(what, "no call was left: this says nothing")
    deepest = max(p.count(";") + 1 for p in want)
    for r in info["ledger"]:
        if r["presented"] != r["kept"] + r["filtered"] + r["reduced"] + r["lost"] or r["lost"] or r["depth"] > deepest:
            fail(what, "ledger:", r)
            break
    if bad == before:
        print(f"ok: {what}: {sum(want.values())} calls on {len(want)} paths, {left} left without a leave")


def main():
    have = lambda *names: [c for c in names if shutil.which(c)]
    c = have("gcc") + have("clang-14", "clang")[:1]
    cxx = have("g++") + have("clang++-14", "clang++")[:1]
    flags = [["-O0"], ["-O2", "-fno-optimize-sibling-calls"]]
    for compiler in c:
        for level in flags:
            name = f"{compiler}{level[0]}"
            if compiled("loop", LOOP, compiler, level + ["-DJUMPS=100000" if level[0] == "-O2" else "-DJUMPS=10000"]):
                recorded(f"loop {name}", "loop")
                if level[0] == "-O0":
                    recorded(f"loop {name} by the monotonic clock", "loop", settings={"FDR_TIMER": "monotonic"}.items())
            if compiled("handlers", HANDLERS, compiler, level):
                recorded(f"handlers {name}", "handlers")
            if compiled("coroutines", COROUTINES, compiler, level):
                recorded(f"coroutines {name}", "coroutines", jumps_left=False)
            if compiled("inlined", INLINED, compiler, ["-O3"] if level[0] == "-O2" else level):
                recorded(f"inlined {name}", "inlined")
            if compiled("regions", REGIONS, compiler, level):
                recorded(f"regions {name}", "regions")
    for compiler in cxx:
        with open(f"{work}/middle.c", "w") as f:
            f.write(MIDDLE)
        subprocess.run([c[0], "-c", "-g", "-O1", "-finstrument-functions", f"{work}/middle.c", "-o", f"{work}/middle.o"], check=True)
        for level in flags:
            if compiled("exceptions", EXCEPTIONS, compiler, level, [f"{work}/middle.o"]):
                recorded(f"exceptions {compiler}{level[0]}", "exceptions", "some" if "clang" in compiler else True)
    if platform.machine() == "x86_64" and have("g++"):
        at_entry()


def at_entry():
    for level in ["-O0", "-no-pie", "-fno-pie"], ["-O2", "-fcf-protection"]:
        what = f"{' '.join(level)}, hooked at entry"
        for name, text, left in (("loop", LOOP, True), ("handlers", HANDLERS, True), ("regions", REGIONS, True),
                                 ("coroutines", COROUTINES, False)):
            if compiled(name, text, "gcc", level + ["-fno-optimize-sibling-calls", "-DJUMPS=10000"], hooks=ENTRY):
                recorded(f"{name} {what}", name, jumps_left=left)
        if compiled("exceptions", EXCEPTIONS, "g++", level, [f"{work}/middle.o"], ENTRY):
            recorded(f"exceptions {what}", "exceptions", "some")


try:
    main()
finally:
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(live, ignore_errors=True)
if bad:
    print(f"test_longjmp_and_exceptions: {bad} failed")
sys.exit(bad != 0)
