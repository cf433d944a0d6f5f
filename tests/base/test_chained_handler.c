/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10 wrap=fdri_system_previous_install
 * P10: the handler that a signal had before fdr's is called exactly once. This holds although libraries put handlers in
 * front of fdr's meanwhile. Each case runs in a process of its own, with the snapshot signal and with the signal of
 * samples. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/system/chained_handler.h"
#include "tests/support/observed_process.h"

static char directory[64];
static int number;
static volatile sig_atomic_t app_calls, library_calls;
static struct sigaction found;
static void (*found_plain)(int);
static sigjmp_buf out;

static void start(void)
{
    struct fdr_config c = {.size = sizeof c};
    c.dir = directory;
    c.buffer = "1M";
    c.crash = "0";
    c.signal = number == SIGURG ? "none" : number == SIGUSR1 ? "USR1" : "USR2";
    if (number == SIGURG) c.sample = "100Hz";
    if (fdr_init(&c)) _exit(90);
}

static void by_app(int n)
{
    (void)n;
    app_calls++;
}
static void by_library(int n, siginfo_t *info, void *context)
{
    library_calls++;
    if (found.sa_flags & SA_SIGINFO) found.sa_sigaction(n, info, context);
    else if (found.sa_handler != SIG_DFL && found.sa_handler != SIG_IGN) found.sa_handler(n);
}
static void by_plain(int n)
{
    library_calls++;
    if (found_plain != SIG_DFL && found_plain != SIG_IGN) found_plain(n);
}
static void by_leaving(int n)
{
    (void)n;
    library_calls++;
    siglongjmp(out, 1);
}

static void install_app(void) { signal(number, by_app); }
static void install_library(void)
{
    struct sigaction its;
    memset(&its, 0, sizeof its);
    its.sa_sigaction = by_library;
    its.sa_flags = SA_SIGINFO;
    sigaction(number, &its, &found);
}

static void expect(int line, int app, int library)
{
    if (app_calls == app && library_calls == library) return;
    dprintf(2, "line %d: %d, %d\n", line, (int)app_calls, (int)library_calls);
    _exit(1);
}
#define EXPECT(app, library) expect(__LINE__, app, library)

/* A library's handler stands in front of fdr's. The next recording installs fdr's in front of the library's. */
static void with_library(void *unused)
{
    (void)unused;
    install_app();
    start();
    install_library();
    raise(number);
    EXPECT(1, 1);
    fdr_finalize();
    raise(number);
    EXPECT(2, 2); /* fdr's handler stayed in the chain and passes the signal on */
    for (int i = 3; i < 9; i += 2) {
        start();
        raise(number);
        EXPECT(i, i);
        fdr_finalize();
        raise(number);
        EXPECT(i + 1, i + 1);
    }
}

/* A different library each time: of more than four not all are called, and none is called twice. */
#define ONE_OF_MANY(i)                                                                                                 \
    static void many_##i(int n)                                                                                        \
    {                                                                                                                  \
        many_calls[i]++;                                                                                               \
        if (many_found[i] != SIG_DFL) many_found[i](n);                                                                \
    }                                                                                                                  \
    static void many_##i(int n)
static void (*many_found[6])(int);
static int many_calls[6];
ONE_OF_MANY(0);
ONE_OF_MANY(1);
ONE_OF_MANY(2);
ONE_OF_MANY(3);
ONE_OF_MANY(4);
ONE_OF_MANY(5);

static void with_many(void *unused)
{
    static void (*const many[])(int) = {many_0, many_1, many_2, many_3, many_4, many_5};
    (void)unused;
    install_app();
    for (int i = 0; i < 6; i++) {
        start();
        many_found[i] = signal(number, many[i]);
        memset(many_calls, 0, sizeof many_calls);
        app_calls = 0;
        raise(number);
        EXPECT(1, 0);
        for (int k = 0; k < 6; k++)
            if (many_calls[k] > 1 || (k == i && !many_calls[k])) _exit(2);
        fdr_finalize();
    }
}

/* The same with handlers installed by signal(), which get only the signal's number. */
static void with_plain(void *unused)
{
    (void)unused;
    start();
    found_plain = signal(number, by_plain);
    fdr_finalize();
    start();
    raise(number);
    EXPECT(0, 1);
}

/* The library in front has removed its handler, and restored the one that it had found. */
static void put_back(void *unused)
{
    (void)unused;
    install_app();
    start();
    install_library();
    fdr_finalize();
    sigaction(number, &found, NULL);
    start();
    raise(number);
    EXPECT(1, 0);
    fdr_finalize();
    raise(number);
    EXPECT(2, 0);
}

static void raise_deeper(int levels)
{
    volatile char room[512];
    room[0] = (char)levels;
    if (levels > 0) raise_deeper(levels - 1);
    else raise(number);
    room[1] = room[0];
}

/* A handler that was left by longjmp is not called again by fdr, at whatever stack depth the next signal comes. */
static void left(void *unused)
{
    (void)unused;
    signal(number, by_leaving);
    start();
    for (int i = 1; i < 6; i++) {
        if (sigsetjmp(out, 1) == 0) raise_deeper(i * 3 % 7);
        EXPECT(0, i);
    }
}

/* fdr's handler stays installed for one signal; then the next recording uses another signal for snapshots. */
static void another_signal(void *unused)
{
    (void)unused;
    start();
    install_library();
    fdr_finalize();
    number = SIGUSR2;
    install_app();
    start();
    raise(SIGUSR1);
    EXPECT(0, 1);
    raise(SIGUSR2);
    EXPECT(1, 1);
}

/* If the system refuses the handler, a message says so. */
static bool none;
bool __real_fdri_system_previous_install(struct fdri_system_previous *p, int n, const struct sigaction *ours);
bool __wrap_fdri_system_previous_install(struct fdri_system_previous *p, int n, const struct sigaction *ours);
bool __wrap_fdri_system_previous_install(struct fdri_system_previous *p, int n, const struct sigaction *ours)
{
    errno = EPERM;
    return !none && __real_fdri_system_previous_install(p, n, ours);
}
static void no_handler(void *unused)
{
    int said[2];
    char text[400] = "";
    (void)unused;
    none = true;
    if (pipe(said) || dup2(said[1], 2) < 0) _exit(3);
    start();
    if (read(said[0], text, sizeof text - 1) < 0 || !strstr(text, "signal 10: Operation not permitted")) _exit(4);
    fdr_finalize();
}

static void ends_well(void (*body)(void *))
{
    struct victim v = victim_start(body, NULL);
    int status = victim_end(&v, 0);
    if (status) fail_msg("signal %d: status %#x", number, status);
}

static void P10_every_handler_is_called_once(void **state)
{
    static void (*const bodies[])(void *) = {with_library, with_plain, put_back, left};
    static const int numbers[] = {SIGUSR1, SIGURG};
    (void)state;
    for (size_t n = 0; n < 2; n++)
        for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
            number = numbers[n];
            ends_well(bodies[i]);
        }
    number = SIGUSR1;
    ends_well(with_many);
    ends_well(no_handler);
    ends_well(another_signal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_every_handler_is_called_once)};
    test_directory(directory, sizeof directory);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_directory(directory);
    return failed;
}
