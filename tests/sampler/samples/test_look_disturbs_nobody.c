/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,unit,threads timeout=300 wrap=fdr_sample promise=P10
 * P10: under FDR_SAMPLE=wall no call of the program ends early, and no signal is sent. A filter of system calls kills
 * the process at the first attempt. Meanwhile the looks say where each thread waits. Also as an ordinary user, in a
 * process that may not read its own state, and where /proc cannot be opened any more. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>

enum { LOOKS = 3 };

static fdr_region waits_in; /* atomic: the region in which the thread waits */
static unsigned looks;      /* atomic: looks that found it waiting there, at a known place or not */
static unsigned disturbed;  /* atomic: signals that reached a handler, calls that ended early */

uint64_t __real_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look);
uint64_t __wrap_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look);
uint64_t __wrap_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look)
{
    bool there = look->path_count == 2 && look->path[0] == __atomic_load_n(&waits_in, __ATOMIC_RELAXED);
    uint64_t step = __real_fdr_sample(s, look);
    if (there && step && look->flags == FDR_LOOK_OUTSIDE) __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    return step;
}

/* ---- the program, without SA_RESTART ---- */

static void on_any(int number) { (void)number, __atomic_fetch_add(&disturbed, 1, __ATOMIC_RELAXED); }

static int ends[2];
static sem_t never, wanted;

static int in_usleep(void) { return usleep(50000); }
static int in_nanosleep(void) { return nanosleep(&(struct timespec){0, 20000000}, NULL); }
static int in_poll(void) { return poll(NULL, 0, 20); }
static int in_sem_timedwait(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (until.tv_nsec += 20000000) >= 1000000000;
    until.tv_nsec %= 1000000000;
    return sem_timedwait(&never, &until) == -1 && errno == ETIMEDOUT ? 0 : -1;
}
static int in_read(void)
{
    char c;
    sem_post(&wanted);
    return read(ends[0], &c, 1) == 1 ? 0 : -1;
}
static void *writes(void *unused)
{
    for (;;) {
        sem_wait(&wanted);
        usleep(20000);
        if (write(ends[1], "x", 1) != 1) _exit(5);
    }
    return unused;
}

static const struct {
    const char *region;
    int (*wait)(void);
    const char *states[2];
} ways[] = {{"sleeps", in_usleep, {"[blocked in clock_nanosleep]", "[blocked in nanosleep]"}},
            {"sleeps short", in_nanosleep, {"[blocked in clock_nanosleep]", "[blocked in nanosleep]"}},
            {"polls", in_poll, {"[blocked in poll]", "[blocked in ppoll]"}},
            {"waits for a semaphore", in_sem_timedwait, {"[blocked in futex_wait]", ""}},
            {"reads a pipe", in_read, {"[blocked in read]", ""}}};
enum { WAYS = sizeof ways / sizeof *ways };

/* Waits in each way until looks have seen it. */
static void wait_in_all_ways(void)
{
    pthread_t t;
    if (pipe(ends) || sem_init(&never, 0, 0) || sem_init(&wanted, 0, 0)) _exit(6);
    if (pthread_create(&t, NULL, writes, NULL)) _exit(6);
    for (int i = 0; i < WAYS; i++) {
        fdr_region r = fdr_region_define(ways[i].region, "test", 1);
        __atomic_store_n(&looks, 0u, __ATOMIC_RELAXED);
        __atomic_store_n(&waits_in, r, __ATOMIC_RELAXED);
        fdr_enter(r);
        while (__atomic_load_n(&looks, __ATOMIC_RELAXED) < LOOKS)
            if (ways[i].wait()) __atomic_fetch_add(&disturbed, 1, __ATOMIC_RELAXED);
        fdr_leave(r);
    }
}

/* ---- filters of system calls: of `count` numbers ---- */

static const int signalling[] = {
    SYS_tgkill,       SYS_tkill,         SYS_kill,      SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
    SYS_timer_create, SYS_timer_settime, SYS_setitimer, SYS_perf_event_open};
static const int opening[] = {SYS_openat, SYS_perf_event_open};

static void filter(const int *calls, unsigned count, uint32_t action)
{
    struct sock_filter code[40];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < count; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog all = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all))
        _exit(7);
}
#define FILTER(calls, action) filter(calls, sizeof(calls) / sizeof *(calls), action)

/* ---- the recording, in a child ---- */

static char dir[64];

static void begin(void)
{
    struct fdr_config c = {.size = sizeof c,
                           .arena = "anonymous",
                           .buffer = "8M",
                           .dir = dir,
                           .sample = "1kHz,wall",
                           .signal = "none",
                           .crash = "0"};
    FILTER(signalling, SECCOMP_RET_KILL_PROCESS);
    for (int s = 1; s < 32; s++)
        if (s != SIGKILL && s != SIGSTOP && s != SIGCHLD && s != SIGSYS && s != SIGSEGV)
            sigaction(s, &(struct sigaction){.sa_handler = on_any}, NULL);
    if (fdr_init(&c)) _exit(8);
    FDR_REGION("first") {}
}

/* Runs f in a child, and returns its wait status. */
static int status_of(void (*f)(void))
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        f();
        _exit(__atomic_load_n(&disturbed, __ATOMIC_RELAXED) ? 9 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static bool is_state_of(const char *state, int way)
{
    return !strcmp(state, ways[way].states[0]) || !strcmp(state, ways[way].states[1]);
}

/* Counts the looks of each way in the only file of `dir`; placed[]: those with the expected state and a place. */
static void count_looks(const char *path, unsigned in[WAYS], unsigned placed[WAYS], unsigned unknown[WAYS])
{
    struct fdr_file *f;
    struct fdr_read_event e;
    char message[300] = "";
    struct fdr_select select = {.classes = 1u << FDR_IN_SAMPLE};
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    struct fdr_iter *iter = fdr_iter_open(f, &select);
    for (int i = 0; i < WAYS; i++) in[i] = placed[i] = unknown[i] = 0;
    while (fdr_iter_next(iter, &e)) {
        const struct fdr_sample_path *p = e.sample;
        assert_true(p && p->state != UINT32_MAX && p->frame_count == 0 && p->weight > 0);
        const char *state = fdr_definition(f, FDR_REGION_DEFINITION, p->state)->name;
        const char *region = p->region_count ? fdr_definition(f, FDR_REGION_DEFINITION, p->region[0])->name : "";
        for (int i = 0; i < WAYS; i++) {
            if (strcmp(region, ways[i].region)) continue;
            in[i]++;
            placed[i] += is_state_of(state, i) && p->pc;
            unknown[i] += !p->pc;
        }
    }
    fdr_iter_close(iter);
    fdr_file_close(f);
}

static void run_and_count(void (*f)(void), unsigned in[WAYS], unsigned placed[WAYS], unsigned unknown[WAYS])
{
    char path[128];
    snprintf(dir, sizeof dir, "/tmp/fdr-looks-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/looks.fdr", dir);
    int status = status_of(f);
    if (status) fail_msg("%s: status %x", path, status);
    count_looks(path, in, placed, unknown);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

static void keep_snapshot(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/looks.fdr", dir);
    if (fdr_snapshot("end") || rename(fdr_last_snapshot(), path) || chmod(path, 0666)) _exit(10);
}

/* ---- the tests ---- */

static void plain(void)
{
    begin();
    wait_in_all_ways();
    keep_snapshot();
}

static void P10_no_call_ends_early(void **state)
{
    unsigned in[WAYS], placed[WAYS], unknown[WAYS];
    char text[300] = "";
    (void)state;
    int fd = open("/proc/self/syscall", O_RDONLY);
    bool readable = fd >= 0 && read(fd, text, sizeof text - 1) > 0;
    close(fd);
    run_and_count(plain, in, placed, unknown);
    for (int i = 0; i < WAYS; i++) {
        assert_true(in[i] >= LOOKS);
        if (readable && !placed[i]) fail_msg("%s: none of %u looks says so", ways[i].region, in[i]);
    }
}

/* Changing the user makes the process not dumpable: its `syscall` in /proc is root's. */
static void ordinary(void)
{
    if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) _exit(11);
    begin();
    wait_in_all_ways();
    keep_snapshot();
}

static void P10_ordinary_user_learns_what_may_be_read(void **state)
{
    unsigned in[WAYS], placed[WAYS], unknown[WAYS];
    (void)state;
    if (getuid()) {
        print_message("an ordinary user is what this test runs as\n");
        skip();
    }
    run_and_count(ordinary, in, placed, unknown);
    for (int i = 0; i < WAYS; i++) assert_true(in[i] >= LOOKS && unknown[i] == in[i]);
}

/* No file can be opened any more: the open calls are still seen, and states are unknown. */
static void refused(void)
{
    begin();
    wait_in_all_ways(); /* the threads are known */
    int out = open(".", O_RDONLY);
    FILTER(opening, SECCOMP_RET_ERRNO | EPERM);
    fdr_region r = fdr_region_define("refused", "test", 1);
    __atomic_store_n(&looks, 0u, __ATOMIC_RELAXED);
    __atomic_store_n(&waits_in, r, __ATOMIC_RELAXED);
    fdr_enter(r);
    while (__atomic_load_n(&looks, __ATOMIC_RELAXED) < LOOKS)
        if (usleep(20000)) __atomic_fetch_add(&disturbed, 1, __ATOMIC_RELAXED);
    fdr_leave(r);
    close(out);
    if (fdr_snapshot("refused") == 0) _exit(12); /* the filter holds for this thread, too */
}

static void P10_filter_refuses_proc(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp");
    assert_int_equal(status_of(refused), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_no_call_ends_early),
                                       cmocka_unit_test(P10_ordinary_user_learns_what_may_be_read),
                                       cmocka_unit_test(P10_filter_refuses_proc)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
