/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=240 promise=P7 without=asan,tsan (their runtimes die in ways of their own)
 * P7: the matrix of deaths. Each leaves exactly the promised file, readable and with its cause. The wait status is that
 * of the same program without fdr. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/support/deaths.h"

/* ---- deaths; each program records first ---- */

static fdr_region outer, inner;
static volatile int zero, levels = 1 << 30;
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;

static void record(void)
{
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
    fdr_enter(outer);
    for (int i = 0; i < 1000; i++) fdr_enter(inner), fdr_leave(inner);
    fdr_enter(inner);
}

static void *write_at_8(void *unused)
{
    (void)unused;
    *nowhere = 1;
    return NULL;
}

static void die_segv(void) { record(), write_at_8(NULL); }
static void die_fpe(void) { record(), levels = levels / zero; }
static void die_ill(void) { record(), __builtin_trap(); }
static void die_abort(void) { record(), abort(); }
static void die_sys(void) { record(), raise(SIGSYS); }
static void die_trap(void) { record(), raise(SIGTRAP); }
static void die_term(void) { record(), raise(SIGTERM); }
static void die_int(void)
{
    record(), kill(getpid(), SIGINT);
    pause();
}
static void die_xcpu(void) { record(), raise(SIGXCPU); }
static void die_kill(void) { record(), raise(SIGKILL); }
static void die_exit(void) { record(), _exit(3); }
static void die_exec(void) { record(), execl("/bin/true", "true", NULL); }
static void end_well(void) { record(), exit(0); }

static void die_bus(void)
{
    record();
    FILE *f = tmpfile();
    volatile char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    p[4096] = 1;
}

static void die_heap(void)
{
    record();
    size_t *volatile p = malloc(24), *volatile q = malloc(24);
    for (int i = 0; i < 8; i++) p[i] = 0x4141414141414141u;
    free((void *)q);
    free((void *)p);
    abort(); /* in case the C library did not notice */
}

static int deeper(int level)
{
    volatile char here[512];
    here[0] = (char)level;
    return level < levels ? deeper(level + 1) + here[0] : 0;
}
static void *overflow(void *unused)
{
    (void)unused;
    record();
    deeper(0);
    return NULL;
}
static void die_overflow(void) { overflow(NULL); }

static void in_thread(void *(*body)(void *))
{
    pthread_t t;
    pthread_create(&t, NULL, body, NULL);
    pthread_join(t, NULL);
}
static void die_thread_overflow(void) { record(), in_thread(overflow); }
static void *recorded_segv(void *unused) { return record(), write_at_8(unused); }
static void die_thread(void) { record(), in_thread(recorded_segv); }

static void fault_in_handler(int number) { (void)number, write_at_8(NULL); }
static void die_in_handler(void)
{
    record();
    signal(SIGUSR2, fault_in_handler);
    raise(SIGUSR2);
}

static pthread_barrier_t together;
static void *both(void *unused)
{
    record();
    pthread_barrier_wait(&together);
    return write_at_8(unused);
}
static void die_twice_at_once(void)
{
    pthread_t t[4];
    pthread_barrier_init(&together, NULL, 4);
    record();
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, both, NULL);
    pthread_join(t[0], NULL);
    pause();
}

static void die_in_fork(void)
{
    record();
    for (int i = 0; i < 50; i++)
        if (fork() == 0) _exit(0);
    write_at_8(NULL);
}

/* ---- the matrix ---- */

enum left { NOTHING, LIVE, RENAMED, COPIED };
struct death {
    const char *name;
    void (*die)(void);
    int signal;                     /* 0: none */
    enum left left, all, anonymous; /* FDR_CRASH=1, =all; FDR_ARENA=anonymous */
};
static const struct death deaths[] = {
    {"segv", die_segv, SIGSEGV, COPIED, COPIED, COPIED},
    {"bus", die_bus, SIGBUS, COPIED, COPIED, COPIED},
    {"fpe", die_fpe, SIGFPE, COPIED, COPIED, COPIED},
    {"ill", die_ill, SIGILL, COPIED, COPIED, COPIED},
    {"abort", die_abort, SIGABRT, COPIED, COPIED, COPIED},
    {"sys", die_sys, SIGSYS, COPIED, COPIED, COPIED},
    {"trap", die_trap, SIGTRAP, COPIED, COPIED, COPIED},
    {"heap", die_heap, SIGABRT, COPIED, COPIED, COPIED},
    {"term", die_term, SIGTERM, RENAMED, COPIED, NOTHING},
    {"int", die_int, SIGINT, RENAMED, COPIED, NOTHING},
    {"xcpu", die_xcpu, SIGXCPU, RENAMED, COPIED, NOTHING},
    {"overflow", die_overflow, SIGSEGV, COPIED, COPIED, COPIED},
    {"thread overflow", die_thread_overflow, SIGSEGV, COPIED, COPIED, COPIED},
    {"thread", die_thread, SIGSEGV, COPIED, COPIED, COPIED},
    {"in handler", die_in_handler, SIGSEGV, COPIED, COPIED, COPIED},
    {"at once", die_twice_at_once, SIGSEGV, COPIED, COPIED, COPIED},
    {"after forks", die_in_fork, SIGSEGV, COPIED, COPIED, COPIED},
    {"kill", die_kill, 0, LIVE, LIVE, NOTHING},
    {"_exit", die_exit, 0, LIVE, LIVE, NOTHING},
    {"exec", die_exec, 0, LIVE, LIVE, NOTHING},
    {"exit", end_well, 0, NOTHING, NOTHING, NOTHING},
};

static void check_file(const struct death *d, const char *path, pid_t pid, enum left left)
{
    struct fdr_file *f;
    struct stat st;
    char message[256] = "", pid_text[24];
    snprintf(pid_text, sizeof pid_text, ".%d.", (int)pid);
    if (!death_ends_with(path, left == LIVE ? ".live.fdr" : ".crash.fdr") || !strstr(path, pid_text))
        fail_msg("%s left '%s'", d->name, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    if (st.st_size > (1 << 20) * 2) fail_msg("%s: %ld bytes", d->name, (long)st.st_size);
    if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s: %s", d->name, message);
    const char *wrong = death_check(f);
    if (wrong) fail_msg("%s: %s", d->name, wrong);
    const struct fdr_file_info *i = fdr_file_info(f);
    assert_string_equal(i->state, left == LIVE ? "recording" : "crashed");
    assert_int_equal(i->has_cause, left != LIVE);
    if (left != LIVE) assert_int_equal(i->cause_signal, d->signal);
    bool open = false;
    for (size_t n = 0; n < fdr_location_count(f); n++) {
        const struct fdr_location_info *l = fdr_location_info(f, n);
        if (left == LIVE || l->tid == i->cause_tid)
            open |= l->open_count == 2 && l->open[0].region == 1 && l->open[1].region == 2;
    }
    if (!open) fail_msg("%s: the open regions of the dying thread are not there", d->name);
    fdr_file_close(f);
}

static void run(const struct death *d, struct fdr_config *c, enum left left)
{
    pid_t pid;
    int without = death_of(NULL, d->die, &pid);
    const struct death_place *p = death_place();
    int with = death_of(c, d->die, &pid);
    if (d->signal && WTERMSIG(with) != d->signal) fail_msg("%s: wait status %x", d->name, with);
    if (with != without) fail_msg("%s: wait status %x, without fdr %x", d->name, with, without);
    const char *disk = death_file(p->dir), *live = death_file(p->live);
    if (left == NOTHING || left == COPIED) assert_string_equal(live, "");
    if (left != COPIED) assert_string_equal(disk, "");
    if (left != NOTHING) check_file(d, left == COPIED ? disk : live, pid, left);
}

static void every_death_leaves_its_file(void **state)
{
    (void)state;
    struct fdr_config c = death_config(death_place());
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) run(&deaths[i], &c, deaths[i].left);
}
static void P7_every_death_leaves_a_bundle(void **state)
{
    (void)state;
    struct fdr_config c = death_config(death_place());
    c.crash = "all";
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) run(&deaths[i], &c, deaths[i].all);
}
static void anonymous_arenas(void **state)
{
    (void)state;
    struct fdr_config c = death_config(death_place());
    c.arena = "anonymous";
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) run(&deaths[i], &c, deaths[i].anonymous);
}
/* FDR_DIR is on the live directory's file system: fdr renames the file and copies nothing. */
static void moved_where_that_is_enough(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    pid_t pid;
    char dir[600];
    snprintf(dir, sizeof dir, "%s/there", p->live);
    mkdir(dir, 0700);
    c.dir = dir;
    assert_true(WIFSIGNALED(death_of(&c, die_segv, &pid)));
    check_file(&deaths[0], death_file(dir), pid, COPIED);
    assert_string_equal(death_file(p->live), "");
    death_clear(dir);
    rmdir(dir);
}
static void end_badly(void)
{
    record();
    exit(3);
}
static void end_where_others_are(void)
{
    pthread_t t;
    pthread_create(&t, NULL, (void *(*)(void *))(uintptr_t)pause, NULL);
    end_badly();
}
/* With FDR_CRASH=exit, an exit status other than 0 is a death. Otherwise no exit is. */
static void calls_of_exit(void **state)
{
    (void)state;
    static const char *const arenas[] = {"mapped", "anonymous"};
    pid_t pid;
    for (int i = 0; i < 2; i++) {
        const struct death_place *p = death_place();
        struct fdr_config c = death_config(p);
        const struct fdr_crash_cause_info *cause;
        const struct fdr_crash_thread_info *thread;
        struct fdr_file *f;
        char message[200];
        c.arena = arenas[i];
        c.crash = "exit";
        assert_int_equal(WEXITSTATUS(death_of(&c, end_where_others_are, &pid)), 3);
        assert_string_equal(death_file(p->live), "");
        assert_true(death_ends_with(death_file(p->dir), ".crash.fdr"));
        assert_int_equal(fdr_file_open(death_file(p->dir), &f, message, sizeof message), FDR_WHOLE);
        assert_null(death_check(f));
        assert_true(fdr_file_info(f)->has_cause);
        assert_int_equal(fdr_file_info(f)->cause_signal, 0);
        assert_int_equal(fdr_file_info(f)->cause_code, 3);
        assert_int_equal(fdr_crash_causes(f, &cause), 1);
        assert_int_equal(fdr_crash_threads(f, &thread), 2);
        assert_int_equal(fdr_location_info(f, 0)->open_count, 2);
        fdr_file_close(f);
        p = death_place();
        assert_int_equal(death_of(&c, end_well, &pid), 0);
        assert_string_equal(death_file(p->dir), "");
        assert_int_equal(WTERMSIG(death_of(&c, die_term, &pid)), SIGTERM); /* `exit` includes `all` */
        assert_true(death_ends_with(death_file(p->dir), ".crash.fdr"));
        p = death_place();
        c.crash = "all";
        assert_int_equal(WEXITSTATUS(death_of(&c, end_badly, &pid)), 3);
        assert_string_equal(death_file(p->dir), "");
        assert_string_equal(death_file(p->live), "");
    }
}
static void switched_off(void **state)
{
    (void)state;
    struct fdr_config c = death_config(death_place());
    c.crash = "0";
    for (size_t i = 0; i < 8; i++) run(&deaths[i], &c, LIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_death_leaves_its_file),
                                       cmocka_unit_test(P7_every_death_leaves_a_bundle),
                                       cmocka_unit_test(anonymous_arenas),
                                       cmocka_unit_test(moved_where_that_is_enough),
                                       cmocka_unit_test(calls_of_exit),
                                       cmocka_unit_test(switched_off)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
