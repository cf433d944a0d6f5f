/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,stress,threads,slow timeout=180 promise=P10
 * ctest: without=tsan (its lock of threads stays taken when one is cancelled) */
/* P10: sampling hurts no program. This one forks, execs, loads and unloads libraries, jumps and unwinds out of calls,
 * and makes, cancels and ends threads. It takes snapshots, has its own handlers, profiler and alternate stack, and
 * crashes at the end. It runs with every source of samples: perf events, CPU timers only (seccomp), wall time, the
 * unwinder, and as an unprivileged user. The test asserts no times, only that all threads appear and that the program
 * ends as it should. FDR_SOAK_SECONDS=3600 makes each run that long. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <glob.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
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
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];
static _Thread_local volatile double sink; /* per thread, so nothing races here */
static _Atomic int urgent, profiled;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the program's activity ---- */

__attribute__((noinline)) static void spin(int n)
{
    double x = 1;
    for (int i = 0; i < n * 1000; i++) x = x * 1.0000001 + 0.1;
    sink = x;
}

static void calls(void)
{
    FDR_REGION("outer")
    {
        spin(20);
        FDR_REGION("inner") { spin(40); }
    }
}

static jmp_buf back;
static void leaps(void)
{
    if (setjmp(back) == 0) {
        fdr_enter(fdr_region_define("leaping", NULL, 0));
        spin(5);
        longjmp(back, 1);
    }
}

static void *records(void *argument)
{
    for (int i = 0; i < 20; i++) calls();
    return argument;
}
static _Atomic bool silent_stop;
static void *silent(void *argument) /* calls no function of fdr */
{
    stack_t own = {.ss_size = 256 << 10, .ss_sp = malloc(256 << 10)};
    sigaltstack(&own, NULL);
    while (!silent_stop) spin(50);
    own.ss_flags = SS_DISABLE;
    sigaltstack(&own, NULL);
    free(own.ss_sp);
    return argument;
}

/* Leaves a call by the unwinder that exceptions use: by cancellation, or by pthread_exit. */
static void *unwound(void *argument)
{
    FDR_REGION("unwound")
    {
        spin(20);
        if (argument) pthread_exit(argument);
        for (;;) {
            spin(5);
            pthread_testcancel();
        }
    }
    return NULL;
}

static void unwinds(void)
{
    pthread_t ends, cancelled;
    static char something;
    pthread_create(&ends, NULL, unwound, &something);
    pthread_create(&cancelled, NULL, unwound, NULL);
    pthread_cancel(cancelled);
    pthread_join(ends, NULL);
    pthread_join(cancelled, NULL);
}

static void forks(void)
{
    pid_t child = fork();
    if (child == 0) {
        spin(100);
        if (getpid() % 2) execl("/bin/true", "true", (char *)NULL);
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0) _exit(41);
}

static void loads(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW), *other = dlopen("libjansson.so.4", RTLD_NOW);
    spin(5);
    if (other) dlclose(other);
    if (library) dlclose(library);
}

static void on_urgent(int number)
{
    (void)number;
    urgent++;
}

static void on_profile(int number)
{
    (void)number;
    profiled++;
}

static _Noreturn void program(double seconds)
{
    struct sigaction theirs = {.sa_handler = on_urgent}, profiler = {.sa_handler = on_profile, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 10000}, {0, 10000}};
    sigaction(SIGPROF, &profiler, NULL); /* another profiler: SIGPROF must stay its own */
    setitimer(ITIMER_PROF, &every, NULL);
    sigaction(SIGURG, &theirs, NULL); /* installed before fdr's handler, which passes foreign signals on */
    if (fdr_init(NULL)) _exit(42);
    pthread_t thread[4], quiet;
    prctl(PR_SET_NAME, "fdr-quiet"); /* fdr's own threads have such names and are not sampled; this thread must be */
    pthread_create(&quiet, NULL, silent, NULL);
    prctl(PR_SET_NAME, "test_sampling_stress");
    double end = now() + seconds;
    int round = 0;
    while (now() < end || round < 4 || (!urgent && round < 100)) {
        for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, records, NULL);
        calls();
        leaps();
        forks();
        loads();
        unwinds();
        if (round++ % 8 == 0 || !urgent) raise(SIGURG); /* a pending signal absorbs a second one */
        for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
        if (round % 16 == 1 && fdr_snapshot("round")) _exit(43);
    }
    if (!urgent) _exit(44);
    if (!profiled) _exit(46);
    if (fdr_snapshot("end")) _exit(45);
    abort();
}

/* ---- restrictions ---- */

static void refuse(long number, unsigned error)
{
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) _exit(77);
}

/* As with perf_event_paranoid 3, in a container that forbids perf events, or with a kernel built without them. */
static void without_perf(void) { refuse(SYS_perf_event_open, EACCES); }
static void no_perf_at_all(void) { refuse(SYS_perf_event_open, ENOSYS); }
static void without_reading_memory(void) { refuse(SYS_process_vm_readv, EPERM); }

static void nobody(void)
{
    if (getuid() == 0 && (setgid(65534) || setuid(65534))) _exit(77);
}

/* ---- one run, and the checks of its snapshots ---- */

struct seen {
    uint64_t samples, with_region, with_stack, threads, silent, complaints;
};

static void look_through(struct fdr_file *f, struct seen *s)
{
    struct fdr_select select = {.classes = 1u << FDR_IN_SAMPLE};
    const struct fdr_sample_stream *stream;
    size_t n = fdr_sample_streams(f, &stream);
    for (size_t i = 0; i < n; i++) {
        s->threads += stream[i].kept > 0;
        s->silent += stream[i].kept > 0 && stream[i].parent == UINT32_MAX && strstr(stream[i].name, "fdr-quiet");
    }
    struct fdr_iter *it = fdr_iter_open(f, &select);
    struct fdr_read_event e;
    while (fdr_iter_next(it, &e)) {
        s->samples++;
        s->with_region += e.sample->region_count > 0;
        s->with_stack += e.sample->frame_count > 0;
    }
    fdr_iter_close(it);
}

/* Counts the messages that perf events are missing, and prints all other messages. */
static uint64_t complaints(const char *directory)
{
    char path[160], line[400];
    uint64_t n = 0;
    snprintf(path, sizeof path, "%s/said", directory);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strstr(line, "sampling by CPU timers")) n++;
        else print_message("%s", line);
    }
    if (f) fclose(f);
    unlink(path);
    return n;
}

static struct seen run(const char *setting, void (*prepare)(void))
{
    const char *soak = getenv("FDR_SOAK_SECONDS"), *sanitizers = getenv("FDR_SANITIZE");
    double seconds = soak ? atof(soak) : sanitizers && *sanitizers ? 1 : 3;
    char pattern[128], message[300];
    struct seen s = {0};
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/run-XXXXXX", dir);
    assert_non_null(mkdtemp(pattern));
    chmod(pattern, 0777);
    pid_t child = fork();
    if (child == 0) {
        setenv("FDR_SAMPLE", setting, 1);
        setenv("FDR_DIR", pattern, 1);
        setenv("FDR_BUFFER", "8M", 1);
        setenv("FDR_KEEP", "8,newest", 1);      /* keeps the directory small in runs of any length */
        setenv("FDR_CRASH_DEADLINE", "60s", 1); /* for a busy machine, at low priority */
        setenv("FDR_ARENA", "anonymous", 1);
        setenv("FDR_STRATEGY", "whole", 1);
        if (prepare) prepare();
        strcat(pattern, "/said");
        if (!freopen(pattern, "w", stderr)) _exit(40);
        program(seconds);
    }
    int status = 0;
    waitpid(child, &status, 0);
    s.complaints = complaints(pattern);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        rmdir(pattern);
        skip(); /* the restriction does not work here */
    }
    if (!WIFSIGNALED(status)) print_message("%s: exit %d\n", setting, WEXITSTATUS(status));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    strcat(pattern, "/*.fdr");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    bool crashed = false;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct fdr_file *f;
        assert_int_equal(fdr_file_open(found.gl_pathv[i], &f, message, sizeof message), FDR_WHOLE);
        assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
        crashed |= !strcmp(fdr_file_info(f)->state, "crashed");
        if (!strcmp(fdr_file_info(f)->reason, "end")) look_through(f, &s);
        fdr_file_close(f);
        unlink(found.gl_pathv[i]);
    }
    globfree(&found);
    *strrchr(pattern, '/') = 0;
    rmdir(pattern);
    assert_true(crashed);
    print_message(
        "%s: %llu samples of %llu threads, %llu in regions, %llu with a stack, %llu threads never called fdr\n",
        setting, (unsigned long long)s.samples, (unsigned long long)s.threads, (unsigned long long)s.with_region,
        (unsigned long long)s.with_stack, (unsigned long long)s.silent);
    assert_true(s.samples > 0 && s.with_region > 0 && s.threads > 1 && s.silent > 0);
    return s;
}

static void P10_cpu_time(void **state)
{
    (void)state;
    assert_true(run("1kHz", NULL).with_stack > 0);
}
static void P10_wall_time(void **state)
{
    (void)state;
    assert_true(run("1kHz,wall,signal", NULL).with_stack > 0);
}
static void P10_without_perf_events(void **state)
{
    (void)state;
    struct seen s = run("1kHz", without_perf);
    assert_true(s.with_stack > 0);
    assert_int_equal(s.complaints, 1);
}
static void P10_no_perf_at_all(void **state)
{
    (void)state;
    struct seen s = run("1kHz", no_perf_at_all);
    assert_true(s.with_stack > 0);
    assert_int_equal(s.complaints, 1);
}
static void P10_stacks_that_cannot_be_read(void **state)
{
    (void)state;
    run("2kHz,wall,signal", without_reading_memory);
}
static void P10_the_unwinder(void **state)
{
    (void)state;
    struct seen s = run("500Hz,unwind", NULL);
#ifdef __SANITIZE_THREAD__
    /* its runtime runs handlers later, from other places, so the interrupted code is not in the samples */
    assert_true(s.samples > 0);
#else
    assert_true(s.with_stack > 0);
#endif
}
static void P10_as_user_nobody(void **state)
{
    (void)state;
    if (getuid() == 0) assert_true(run("1kHz", nobody).with_stack > 0);
}
static void nobody_without_perf(void)
{
    nobody();
    without_perf();
}
static void P10_as_user_nobody_without_perf_events(void **state)
{
    (void)state;
    if (getuid()) return;
    struct seen s = run("1kHz", nobody_without_perf);
    assert_true(s.with_stack > 0);
    assert_int_equal(s.complaints, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_cpu_time),
                                       cmocka_unit_test(P10_wall_time),
                                       cmocka_unit_test(P10_without_perf_events),
                                       cmocka_unit_test(P10_no_perf_at_all),
                                       cmocka_unit_test(P10_stacks_that_cannot_be_read),
                                       cmocka_unit_test(P10_the_unwinder),
                                       cmocka_unit_test(P10_as_user_nobody),
                                       cmocka_unit_test(P10_as_user_nobody_without_perf_events)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    snprintf(dir, sizeof dir, "/tmp/fdr-test-sampling-XXXXXX");
    if (!mkdtemp(dir) || chmod(dir, 0777)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
