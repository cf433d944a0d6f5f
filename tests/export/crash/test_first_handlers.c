/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=300 promise=P7,P10 without=asan,tsan (they replace sigaction themselves)
 * P10: FDR_CRASH=first changes nothing for a program with handlers of its own. Each program runs without fdr, with fdr
 * from the start, and with fdr after its handlers. It prints what it sees; the three texts and statuses are equal. P7:
 * those that die leave a bundle, those that repair a fault leave nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/support/deaths.h"
#include "tests/support/syscall_lists.h"

typedef void handler(int);
handler *bsd_signal(int, handler *);
handler *__sysv_signal(int, handler *);

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
enum { FAULTS = sizeof faults / sizeof *faults, PAGE = 4096 };
static int out = -1; /* a pipe to the test */
static char *page;   /* no access, until a handler repairs it */
static sigjmp_buf back;
static volatile sig_atomic_t times, depth;

static void touch(void) { *(volatile char *)page = 1; }
static void close_page(void) { mprotect(page, PAGE, PROT_NONE); }
static void open_page(void) { mprotect(page, PAGE, PROT_READ | PROT_WRITE); }
static uint64_t word(const sigset_t *set)
{
    uint64_t w;
    memcpy(&w, set, sizeof w);
    return w;
}

static void say_masks(const char *what)
{
    sigset_t a, b;
    sigprocmask(SIG_BLOCK, NULL, &a);
    pthread_sigmask(SIG_BLOCK, NULL, &b);
    dprintf(out, "%s: blocked %llx, %llx\n", what, (unsigned long long)word(&a), (unsigned long long)word(&b));
}

static void set(int number, handler *h, int flags, uint64_t mask)
{
    struct sigaction a = {.sa_handler = h, .sa_flags = flags};
    memcpy(&a.sa_mask, &mask, sizeof mask);
    if (sigaction(number, &a, NULL)) dprintf(out, "sigaction(%d): %s\n", number, strerror(errno));
}
static uint64_t bit(int number) { return 1ull << (number - 1); }

/* ---- handlers ---- */

static void repairs(int n, siginfo_t *info, void *context)
{
    (void)context;
    times++;
    if (n != SIGSEGV || info->si_addr != page || info->si_code != SEGV_ACCERR) dprintf(out, "not that fault\n");
    open_page();
}
static void reports(int n)
{
    dprintf(out, "handler of %d\n", n);
    say_masks("handler");
    open_page();
}
static void only_says(int n) { dprintf(out, "handler of %d\n", n); }
static void deeper(int n)
{
    depth++;
    dprintf(out, "depth %d\n", (int)depth);
    say_masks("deeper");
    if (depth < 4) touch();
    else open_page();
    dprintf(out, "back at %d of %d\n", (int)depth, n);
    depth--;
}
static void raises(int n)
{
    times++;
    if (times == 1) {
        raise(n);
        say_masks("raised");
        open_page();
    }
    dprintf(out, "%d. handler ends\n", (int)times);
}
static void dies_by_default(int n)
{
    dprintf(out, "restores\n");
    signal(n, SIG_DFL);
    raise(n);
    dprintf(out, "behind raise\n");
}
static void faults_itself(int n)
{
    dprintf(out, "%d. handler of %d\n", (int)++times, n);
    touch();
}
static void aborts(int n)
{
    dprintf(out, "handler of %d\n", n);
    abort();
}
static void exits(int n) { _exit(n); }
static void jumps(int n) { siglongjmp(back, n); }
static void unblocks_and_jumps(int n)
{
    sigset_t it;
    sigemptyset(&it);
    sigaddset(&it, n);
    sigprocmask(SIG_UNBLOCK, &it, NULL);
    siglongjmp(back, n);
}
static void unblocks(int n)
{
    sigset_t it, old;
    sigemptyset(&it);
    sigaddset(&it, n);
    pthread_sigmask(SIG_UNBLOCK, &it, &old);
    dprintf(out, "was blocked: %d\n", sigismember(&old, n));
    deeper(n);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    say_masks("again");
}

/* ---- programs: `before` installs handlers, `then` runs ---- */

static void say_action(const char *what, const struct sigaction *a)
{
    static const struct {
        handler *h;
        const char *name;
    } known[] = {{SIG_DFL, "default"},
                 {SIG_IGN, "ignored"},
                 {reports, "reports"},
                 {only_says, "only_says"},
                 {(handler *)(void *)repairs, "repairs"},
                 {deeper, "deeper"}};
    const char *name = "another";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].h == a->sa_handler) name = known[i].name;
    dprintf(out, "%s: %s, flags %x, mask %llx, %s\n", what, name, (unsigned)a->sa_flags,
            (unsigned long long)word(&a->sa_mask), a->sa_restorer ? "restorer" : "no restorer");
}
static void say_actions(const char *what)
{
    for (int i = 0; i < FAULTS; i++) {
        struct sigaction now;
        memset(&now, 0, sizeof now);
        sigaction(faults[i], NULL, &now);
        say_action(what, &now);
    }
}

static void barrier_before(void)
{
    struct sigaction a = {.sa_sigaction = repairs, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
}
static void barrier(void)
{
    for (int i = 0; i < 1000; i++) close_page(), touch();
    dprintf(out, "%d faults\n", (int)times);
    say_masks("end");
}

static void actions_before(void)
{
    for (int i = 0; i < FAULTS; i++) {
        static const int flags[] = {0,
                                    SA_RESTART,
                                    SA_NODEFER | SA_ONSTACK,
                                    (int)SA_RESETHAND,
                                    SA_SIGINFO,
                                    SA_NOCLDSTOP | SA_NOCLDWAIT | 0x400 | 0x800,
                                    ~0};
        set(faults[i], i % 2 ? reports : only_says, flags[i], 0xffffffffffffffffull << i);
    }
}
static void actions(void)
{
    say_actions("set");
    for (int i = 0; i < FAULTS; i++) {
        struct sigaction a = {.sa_handler = deeper, .sa_flags = SA_NODEFER}, old, again;
        memset(&old, 0, sizeof old);
        memset(&again, 0, sizeof again);
        sigaction(faults[i], &a, &old);
        say_action("before", &old);
        sigaction(faults[i], &old, &a); /* put back */
        say_action("between", &a);
        sigaction(faults[i], NULL, &again);
        say_action("after", &again);
        struct sigaction *one = &again, *volatile same = one;
        sigaction(faults[i], one, same);
    }
    say_actions("at the end");
    dprintf(out, "wrong: %d %d\n", sigaction(0, NULL, NULL), sigaction(65, NULL, NULL));
}

static void names_before(void) { signal(SIGBUS, only_says); }
static void names(void)
{
    static handler *(*const name[])(int, handler *) = {signal, bsd_signal, ssignal, sysv_signal, __sysv_signal};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        struct sigaction a = {.sa_handler = deeper};
        a.sa_handler = name[i](SIGBUS, i % 2 ? reports : only_says);
        say_action("found", &a);
        say_actions("signal");
        raise(SIGBUS);
        say_actions("raised");
        a.sa_handler = name[i](SIGUSR1, SIG_DFL);
        dprintf(out, "SIG_ERR: %d %d\n", name[i](SIGBUS, SIG_ERR) == SIG_ERR, name[i](99, SIG_DFL) == SIG_ERR);
    }
}

static void reset_before(void) { set(SIGSEGV, reports, (int)SA_RESETHAND | SA_RESTART, bit(SIGUSR1) | bit(SIGFPE)); }
static void reset(void)
{
    touch();
    say_actions("reset");
    close_page();
    touch();
}

static void nodefer_before(void) { set(SIGSEGV, deeper, SA_NODEFER, bit(SIGUSR2) | bit(SIGBUS)); }
static void repaired(void)
{
    touch();
    say_masks("end");
}

static void masks_before(void)
{
    set(SIGSEGV, reports, 0, ~0ull);
    set(SIGUSR1, only_says, 0, 0);
}
static void masks(void)
{
    sigset_t mine;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    sigaddset(&mine, SIGHUP);
    for (int i = 0; i < 3; i++) {
        if (i == 1) sigprocmask(SIG_BLOCK, &mine, NULL), raise(SIGUSR1);
        if (i == 2) sigprocmask(SIG_UNBLOCK, &mine, NULL);
        close_page(), touch();
        say_masks("between");
    }
}

static void raises_before(void) { set(SIGSEGV, raises, 0, 0); }
static void all_blocked(void) /* in a thread that blocks all it can but the fault */
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 0; i < 3; i++) {
        times = 0;
        close_page(), touch();
        say_masks("between");
    }
}

static void ignores_before(void)
{
    for (int i = 0; i < FAULTS; i++) signal(faults[i], SIG_IGN);
}
static void ignores(void)
{
    char line[128];
    for (int i = 0; i < FAULTS; i++) raise(faults[i]);
    say_actions("ignored");
    FILE *f = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, "SigIgn", 6)) dprintf(out, "%s", line);
    fclose(f);
    set(SIGFPE, only_says, 0, 0);
    raise(SIGFPE);
    signal(SIGFPE, SIG_IGN);
    raise(SIGFPE);
    if (fork() == 0) {
        dup2(out, 1);
        execl("/bin/grep", "grep", "SigIgn", "/proc/self/status", (char *)0);
    }
    wait(NULL);
}
static void ignored_fault(void) { touch(); }

static void plain_before(void) { set(SIGSEGV, only_says, 0, 0); }
static void default_before(void) { set(SIGSEGV, dies_by_default, 0, 0); }
static void default_nodefer_before(void) { set(SIGSEGV, dies_by_default, SA_NODEFER, 0); }
static void nested_before(void) { set(SIGSEGV, faults_itself, 0, 0); }
static void nested_other_before(void) { set(SIGSEGV, faults_itself, 0, ~0ull), set(SIGBUS, only_says, 0, 0); }
static void aborts_before(void) { set(SIGSEGV, aborts, 0, ~0ull); }
static void exits_before(void) { set(SIGSEGV, exits, 0, 0); }
static void abort_before(void) { set(SIGABRT, only_says, 0, 0); }
static void resets_all(void)
{
    plain_before();
    signal(SIGSEGV, SIG_DFL);
    touch();
}

static void jumps_before(void) { set(SIGSEGV, jumps, 0, bit(SIGUSR1)), set(SIGFPE, unblocks_and_jumps, 0, 0); }
static void jumped(void)
{
    for (volatile int i = 0; i < 100; i++)
        if (!sigsetjmp(back, 1)) touch();
    for (volatile int i = 0; i < 100; i++)
        if (!sigsetjmp(back, 0)) raise(SIGFPE);
    say_masks("jumped");
}
static void unblocks_before(void) { set(SIGSEGV, unblocks, 0, bit(SIGUSR1)); }

static void *on_stacks(void *unused)
{
    (void)unused;
    stack_t s = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    sigaltstack(&s, NULL);
    for (volatile int i = 0; i < 100; i++) {
        if (!sigsetjmp(back, 1)) touch();
        sigaltstack(NULL, &s);
        if (s.ss_flags) dprintf(out, "still on the stack\n");
    }
    return NULL;
}
static void says_where(int n)
{
    stack_t s;
    sigaltstack(NULL, &s);
    if (!times++ || s.ss_flags != depth) dprintf(out, "alternate stack: %d\n", s.ss_flags == SS_ONSTACK);
    depth = s.ss_flags;
    siglongjmp(back, n);
}
static void stacks_before(void) { set(SIGSEGV, says_where, SA_ONSTACK, 0); }
static void stacks(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_t t;
        times = 0;
        set(SIGSEGV, says_where, i % 2 ? 0 : SA_ONSTACK, 0);
        pthread_create(&t, NULL, on_stacks, NULL);
        pthread_join(t, NULL);
    }
}

static volatile int bottomless = 1;
static int overflow(int n)
{
    if (!bottomless) return 0;
    volatile char room[4096];
    memset((char *)room, n, sizeof room);
    return overflow(n + 1) + room[n & 4095];
}
static void overflows_before(void) { set(SIGSEGV, jumps, SA_ONSTACK, 0); }
static void *overflows_in_thread(void *unused)
{
    stack_t s = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    sigaltstack(&s, NULL);
    for (volatile int i = 0; i < 3; i++)
        if (!sigsetjmp(back, 1)) overflow(0);
        else dprintf(out, "overflow %d\n", i);
    return unused;
}
static void overflows(void)
{
    pthread_t t;
    pthread_create(&t, NULL, overflows_in_thread, NULL);
    pthread_join(t, NULL);
}

static void vforks(void)
{
    for (volatile int i = 0; i < 2; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            struct sigaction a = {.sa_handler = i ? SIG_IGN : SIG_DFL};
            sigaction(SIGSEGV, &a, NULL);
            signal(SIGFPE, SIG_IGN);
            raise(SIGFPE);
            raise(SIGSEGV); /* i == 0: dies */
            _exit(7);
        }
        int status;
        waitpid(pid, &status, 0);
        dprintf(out, "vfork child: %x\n", status & ~0x80);
    }
    say_actions("parent");
    touch();
}
static void forks(void)
{
    int status;
    if (fork() == 0) {
        say_actions("child");
        touch();
        signal(SIGSEGV, SIG_DFL);
        say_actions("child");
        _exit(5);
    }
    wait(&status);
    dprintf(out, "child: %x\n", status);
    touch();
}

static volatile pthread_t reader;
static volatile int has_read, wakes[2];
static void wakes_reader(int n)
{
    (void)n;
    times++;
    if (wakes[1] && times == 1 && write(wakes[1], "x", 1)) {}
}
static void *sends(void *unused)
{
    while (!has_read) pthread_kill(reader, SIGTRAP), usleep(1000);
    return unused;
}
static void interrupted(void)
{
    for (int restart = 0; restart < 2; restart++) {
        int p[2];
        char c;
        pthread_t t;
        if (pipe(p)) return;
        wakes[1] = restart ? p[1] : 0;
        reader = pthread_self();
        has_read = times = 0;
        set(SIGTRAP, wakes_reader, restart ? SA_RESTART : 0, 0);
        pthread_create(&t, NULL, sends, NULL);
        ssize_t n = read(p[0], &c, 1);
        dprintf(out, "read: %zd %s\n", n, n < 0 ? strerror(errno) : "");
        has_read = 1;
        pthread_join(t, NULL);
        signal(SIGTRAP, SIG_IGN); /* what is still pending goes */
    }
}

static void sets_errno(int n, siginfo_t *info, void *context)
{
    dprintf(out, "%d: errno %d, code %d, value %d, from itself %d, mask %llx\n", n, errno, info->si_code,
            info->si_value.sival_int, info->si_pid == getpid(),
            (unsigned long long)word(&((ucontext_t *)context)->uc_sigmask));
    errno = EXDEV;
}
static void infos_before(void)
{
    for (int i = 0; i < FAULTS; i++) {
        struct sigaction a = {.sa_sigaction = sets_errno, .sa_flags = SA_SIGINFO};
        sigaction(faults[i], &a, NULL);
    }
}
static void infos(void)
{
    for (int i = 0; i < FAULTS; i++) {
        errno = ENOTTY;
        sigqueue(getpid(), faults[i], (union sigval){.sival_int = 40 + i});
        dprintf(out, "errno %d\n", errno);
    }
}
static void once_before(void) { set(SIGSEGV, reports, (int)SA_RESETHAND | SA_NODEFER, 0); }
static void chained(void) /* a library finds the handler of the program, puts its own in front, and back */
{
    struct sigaction found, mine = {.sa_handler = reports};
    sigaction(SIGSEGV, &mine, &found);
    say_action("found", &found);
    touch();
    sigaction(SIGSEGV, &found, &mine);
    say_action("mine", &mine);
    close_page();
    touch();
}
static void nothing(void) {}

/* ---- the three runs ---- */

enum left { NOTHING, BUNDLE, LIVE };
static const struct program {
    const char *name;
    void (*before)(void), (*then)(void);
    enum left left;
    int cause; /* of the bundle */
} programs[] = {{"barrier", barrier_before, barrier, NOTHING, 0},
                {"actions", actions_before, actions, NOTHING, 0},
                {"actions never set", nothing, actions, NOTHING, 0},
                {"names", names_before, names, NOTHING, 0},
                {"reset", reset_before, reset, BUNDLE, SIGSEGV},
                {"once", once_before, reset, BUNDLE, SIGSEGV},
                {"nodefer", nodefer_before, repaired, NOTHING, 0},
                {"masks", masks_before, masks, NOTHING, 0},
                {"raised in handler", raises_before, repaired, NOTHING, 0},
                {"all blocked", raises_before, all_blocked, NOTHING, 0},
                {"all blocked, masks", masks_before, all_blocked, NOTHING, 0},
                {"ignored", ignores_before, ignores, NOTHING, 0},
                {"ignored fault", ignores_before, ignored_fault, LIVE, 0},
                {"no handler", nothing, ignored_fault, BUNDLE, SIGSEGV},
                {"handler removed", nothing, resets_all, BUNDLE, SIGSEGV},
                {"restores the default", default_before, ignored_fault, BUNDLE, SIGSEGV},
                {"restores the default, nodefer", default_nodefer_before, ignored_fault, BUNDLE, SIGSEGV},
                {"faults itself", nested_before, ignored_fault, BUNDLE, SIGSEGV},
                {"faults itself, all masked", nested_other_before, ignored_fault, BUNDLE, SIGSEGV},
                {"aborts in handler", aborts_before, ignored_fault, BUNDLE, SIGABRT},
                {"returns into abort", abort_before, abort, BUNDLE, SIGABRT},
                {"exits in handler", exits_before, ignored_fault, LIVE, 0},
                {"jumps", jumps_before, jumped, NOTHING, 0},
                {"unblocks in handler", unblocks_before, repaired, NOTHING, 0},
                {"alternate stacks", stacks_before, stacks, NOTHING, 0},
                {"stack overflow", overflows_before, overflows, NOTHING, 0},
                {"vfork", barrier_before, vforks, NOTHING, 0},
                {"fork", barrier_before, forks, NOTHING, 0},
                {"interrupted calls", nothing, interrupted, NOTHING, 0},
                {"details", infos_before, infos, NOTHING, 0},
                {"chained", barrier_before, chained, NOTHING, 0}};

enum when { NEVER, FIRST, LAST };
static const struct program *running;
static enum when when;

static void begin(void)
{
    struct fdr_config c = death_config(death_place_as_it_is());
    c.crash = "first";
    if (fdr_init(&c)) _exit(90);
    FDR_REGION("outer") {}
}
static void run(void)
{
    page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (when == FIRST) begin();
    running->before();
    if (when == LAST) begin();
    running->then();
    if (when != NEVER) fdr_finalize();
    say_actions("after fdr");
    exit(3);
}

/* Stores the text and returns the status. */
static int run_one(const struct program *p, enum when w, char *text, size_t bytes)
{
    int ends[2], status = -1;
    pid_t pid;
    death_place();
    assert_int_equal(pipe(ends), 0);
    running = p;
    when = w;
    out = ends[1];
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct rlimit none = {0, 0};
        close(ends[0]);
        death_child();
        setrlimit(RLIMIT_CORE, &none);
        if (!freopen("/dev/null", "w", stderr)) _exit(97);
        run();
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], text + used, bytes - 1 - used)) > 0;) used += (size_t)n;
    text[used] = 0;
    close(ends[0]);
    waitpid(pid, &status, 0);
    return status;
}

static void check_left(const struct program *p)
{
    const char *bundle = death_file(death_place_as_it_is()->dir), *live = death_file(death_place_as_it_is()->live);
    struct fdr_file *f;
    char message[256] = "";
    if (!*bundle != (p->left != BUNDLE)) fail_msg("%s left '%s'", p->name, bundle);
    if (!*live != (p->left != LIVE)) fail_msg("%s left '%s'", p->name, live);
    if (p->left != BUNDLE) return;
    if (fdr_file_open(bundle, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s: %s", p->name, message);
    assert_int_equal(fdr_file_info(f)->cause_signal, p->cause);
    assert_null(death_check(f));
    fdr_file_close(f);
}

static void P10_programs_with_handlers(void **state)
{
    static char text[3][1 << 16];
    (void)state;
    for (const struct program *p = programs; p < programs + sizeof programs / sizeof *programs; p++) {
        int status = run_one(p, NEVER, text[NEVER], sizeof text[0]);
        if (!*text[NEVER] && p->left == NOTHING) fail_msg("%s says nothing", p->name);
        for (enum when w = FIRST; w <= LAST; w++) {
            int other = run_one(p, w, text[w], sizeof text[0]);
            const char *order = w == FIRST ? "fdr first" : "fdr last";
            if (strcmp(text[w], text[NEVER]))
                fail_msg("%s, %s:\n%s--- without fdr\n%s", p->name, order, text[w], text[NEVER]);
            if ((status ^ other) & ~0x80) fail_msg("%s, %s: status %x, not %x", p->name, order, other, status);
            check_left(p);
        }
    }
}

/* fdr's part of a repaired fault: one system call, and the clock where it is no system call. */
static void repairs_under_filter(void)
{
    static const struct call allowed[] = {CALL(mprotect),   CALL(rt_sigreturn),  CALL(gettid),
                                          CALL(exit_group), CALL(clock_gettime), CALL(restart_syscall)};
    page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin();
    barrier_before();
    touch(); /* the first fault of a thread also asks for the process */
    if (!calls_filter(allowed, sizeof allowed / sizeof *allowed)) _exit(77);
    for (int i = 0; i < 1000; i++) close_page(), touch();
    _exit(times == 1001 ? 3 : 4);
}
static void P10_a_repaired_fault_costs_little(void **state)
{
    pid_t pid;
    (void)state;
    death_place();
    int status = death_of(NULL, repairs_under_filter, &pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_programs_with_handlers),
                                       cmocka_unit_test(P10_a_repaired_fault_costs_little)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
