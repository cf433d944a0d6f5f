/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * ctest: without=tsan (it runs handlers where its own functions wait)
 * P10: the crash handler calls the handlers that the program had installed before, as the kernel would have. A process
 * that survives its signal leaves no bundle. fdr reports handlers that were replaced after its own. The test also
 * covers faults in a handler, ignored signals, children, and a file that is truncated under its mapping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static volatile sig_atomic_t seen;
static jmp_buf back;

static void record(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 100; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
}

static struct fdr_file *opened(const char *path)
{
    struct fdr_file *f;
    char message[256] = "";
    if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE) fail_msg("'%s': %s", path, message);
    const char *wrong = death_check(f);
    if (wrong) fail_msg("%s: %s", path, wrong);
    return f;
}

/* ---- handlers that let the process survive ---- */

static void jump(int number) { seen++, (void)number, siglongjmp(back, 1); }
static void repair(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    if (info->si_addr == (void *)nowhere) seen++;
    mprotect((void *)((uintptr_t)nowhere & ~4095ul), 4096, PROT_READ | PROT_WRITE); /* as garbage collectors do */
}

static void survive_by_jump(void)
{
    struct sigaction a = {.sa_handler = jump, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &a, NULL);
    struct fdr_config c = death_config(death_place_as_it_is());
    if (fdr_init(&c)) _exit(1);
    record();
    for (volatile int i = 0; i < 1000; i++) {
        if (sigsetjmp(back, 0) == 0) *nowhere = 1;
        record();
    }
    if (seen != 1000) _exit(2);
    fdr_finalize();
    exit(0);
}

/* The process survives one fault by longjmp and dies later of something else. The bundle names the later cause. */
static int after_jump;
__attribute__((noinline)) static int deep(int levels)
{
    volatile char here[256] = {0};
    if (!levels) raise(after_jump);
    return levels ? deep(levels - 1) + here[levels % 256] : 0;
}
static void jump_and_die(void)
{
    signal(SIGSEGV, jump);
    struct fdr_config c = death_config(death_place_as_it_is());
    if (fdr_init(&c)) _exit(1);
    record();
    if (sigsetjmp(back, 1) == 0) *nowhere = 1;
    record();
    deep(100);
}

static void a_handler_that_jumps_is_over(void **state)
{
    (void)state;
    pid_t pid;
    const struct fdr_crash_cause_info *cause;
    const struct death_place *p = death_place();
    after_jump = SIGABRT;
    assert_int_equal(WTERMSIG(death_of(NULL, jump_and_die, &pid)), SIGABRT);
    struct fdr_file *f = opened(death_file(p->dir));
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGABRT);
    assert_int_equal(fdr_crash_causes(f, &cause), 1);
    fdr_file_close(f);
    p = death_place();
    after_jump = SIGKILL;
    assert_int_equal(death_of(NULL, jump_and_die, &pid), SIGKILL);
    f = opened(death_file(p->live));
    assert_false(fdr_file_info(f)->has_cause);
    assert_int_equal(fdr_file_info(f)->handled_signal, 0);
    fdr_file_close(f);
    death_place();
}

static void survive_by_repair(void)
{
    struct sigaction a = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
    struct fdr_config c = death_config(death_place_as_it_is());
    if (fdr_init(&c)) _exit(1);
    record();
    nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1000; i++) {
        mprotect((void *)nowhere, 4096, PROT_NONE);
        *nowhere = i;
        if (*nowhere != i) _exit(2);
    }
    if (seen != 1000) _exit(3);
    raise(SIGKILL); /* the file after SIGKILL says that the process survived a signal */
}

static void P10_survivors_leave_no_bundle(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    assert_int_equal(death_of(NULL, survive_by_jump, &pid), 0);
    assert_string_equal(death_file(p->dir), "");
    assert_string_equal(death_file(p->live), "");
    assert_int_equal(death_of(NULL, survive_by_repair, &pid), SIGKILL);
    assert_string_equal(death_file(p->dir), "");
    struct fdr_file *f = opened(death_file(p->live));
    assert_int_equal(fdr_file_info(f)->faults_survived, 1000);
    assert_false(fdr_file_info(f)->has_cause);
    assert_int_equal(fdr_file_info(f)->handled_signal, 0);
    fdr_file_close(f);
}

/* ---- handlers that end the process in their own ways ---- */

static void say_and_raise(int number)
{
    if (write(1, "", 0)) _exit(1);
    signal(number, SIG_DFL);
    raise(number);
}
static void say_and_abort(int number) { (void)number, abort(); }
static void say_and_leave(int number) { (void)number, _exit(42); }
static struct fdr_sampled *samples; /* of a thread that records nothing itself */
static void leave_sampled(int number)
{
    struct fdr_look look = {.weight = 1, .path = &(fdr_region){0}};
    if (samples) fdr_sample(samples, &look);
    say_and_leave(number);
}
static void (*handler)(int);
static bool recorded;

static void die_handled(void)
{
    signal(SIGSEGV, handler);
    struct fdr_config c = death_config(death_place_as_it_is());
    if (recorded && fdr_init(&c)) _exit(1);
    record();
    *nowhere = 1;
}

static void die_sampled(void)
{
    signal(SIGSEGV, leave_sampled);
    struct fdr_config c = death_config(death_place_as_it_is());
    if (fdr_init(&c)) _exit(1);
    samples = fdr_sampled_open((uint32_t)gettid(), "sampled", FDR_BY_WALL_TIME, 1000000);
    if (!samples) _exit(2);
    *nowhere = 1;
}

static int same_end_as_without_fdr(void (*with)(int), const char **left)
{
    pid_t pid;
    const struct death_place *p = death_place();
    handler = with;
    recorded = false;
    int status = death_of(NULL, die_handled, &pid);
    recorded = true;
    assert_int_equal(death_of(NULL, die_handled, &pid), status);
    *left = *death_file(p->dir) ? death_file(p->dir) : death_file(p->live);
    return status;
}

static void handlers_that_end_the_process(void **state)
{
    (void)state;
    const char *left;
    const struct fdr_crash_cause_info *c;
    assert_int_equal(WTERMSIG(same_end_as_without_fdr(say_and_raise, &left)), SIGSEGV);
    assert_true(death_ends_with(left, ".crash.fdr"));
    struct fdr_file *f = opened(left);
    assert_true(fdr_file_info(f)->has_cause);
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
    assert_int_equal(fdr_file_info(f)->cause_addr, 8);
    fdr_file_close(f);

    assert_int_equal(WTERMSIG(same_end_as_without_fdr(say_and_abort, &left)), SIGABRT);
    assert_true(death_ends_with(left, ".crash.fdr"));
    f = opened(left);
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGABRT);
    assert_int_equal(fdr_crash_causes(f, &c), 2);
    assert_int_equal(c[1].signal, SIGSEGV);
    assert_true(c[1].before);
    assert_int_equal(c[1].addr, 8);
    fdr_file_close(f);

    assert_int_equal(WEXITSTATUS(same_end_as_without_fdr(say_and_leave, &left)), 42);
    assert_true(death_ends_with(left, ".live.fdr"));
    f = opened(left);
    assert_false(fdr_file_info(f)->has_cause);
    assert_int_equal(fdr_file_info(f)->handled_signal, SIGSEGV);
    fdr_file_close(f);

    pid_t pid;
    const struct death_place *p = death_place();
    assert_int_equal(WEXITSTATUS(death_of(NULL, die_sampled, &pid)), 42);
    f = opened(death_file(p->live));
    assert_int_equal(fdr_file_info(f)->handled_signal, SIGSEGV);
    assert_int_equal(fdr_file_info(f)->handled_tid, pid);
    fdr_file_close(f);
}

/* ---- handlers that were replaced; signals that are ignored or requested ---- */

static void leave_well(int number) { (void)number, exit(0); }

/* As Python's faulthandler: installed after fdr, then put behind it by fdr_handlers_chain. It restores the handler that
 * it found, which is fdr's, and raises the signal again. */
static struct sigaction found;
static void pass_on(int number)
{
    if (++seen > 3) _exit(3);
    sigaction(number, &found, NULL);
    raise(number);
}
static void chained_and_dies(void)
{
    struct sigaction a = {.sa_handler = pass_on, .sa_flags = SA_NODEFER};
    record();
    sigaction(SIGSEGV, &a, &found);
    fdr_handlers_chain();
    *nowhere = 1;
}

/* As crash reporters do: it calls the handler that it found, with its own arguments. */
static void call_found(int number, siginfo_t *info, void *context)
{
    if (++seen > 3) _exit(3);
    found.sa_sigaction(number, info, context);
}
/* The handler may also restore the one that it found and return. Then the instruction faults once more. */
static void put_back(int number, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    if (++seen > 3) _exit(3);
    sigaction(number, &found, NULL);
}
static void (*later)(int, siginfo_t *, void *);
static int later_flags;
static void chained_later(void)
{
    struct sigaction a = {.sa_sigaction = later, .sa_flags = SA_SIGINFO | later_flags};
    record();
    sigaction(SIGSEGV, &a, &found);
    fdr_handlers_chain();
    *nowhere = 1;
}
static void handler_that_passes_back_is_called_once(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    assert_int_equal(death_of(&c, chained_and_dies, &pid) & ~0x80, SIGSEGV);
    struct fdr_file *f = opened(death_file(p->dir));
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
    fdr_file_close(f);
    assert_string_equal(death_file(p->live), "");
}
static void chained_and_taken_away(void)
{
    struct sigaction a = {.sa_handler = leave_well};
    record();
    sigaction(SIGSEGV, &a, &found);
    fdr_handlers_chain();
    sigaction(SIGSEGV, &found, NULL);
    *nowhere = 1;
}
static void removed_handler_is_not_called(void **state)
{
    (void)state;
    pid_t pid;
    struct fdr_config c = death_config(death_place());
    assert_int_equal(death_of(&c, chained_and_taken_away, &pid) & ~0x80, SIGSEGV);
    assert_true(death_ends_with(death_file(c.dir), ".crash.fdr"));
}
static void handler_that_reinstalls_ours_is_called_once(void **state)
{
    static void (*const all[])(int, siginfo_t *, void *) = {call_found, put_back};
    static const int flags[] = {0, SA_NODEFER, SA_ONSTACK, SA_RESETHAND};
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        pid_t pid;
        const struct death_place *p = death_place();
        struct fdr_config c = death_config(p);
        later = all[i / 4];
        later_flags = flags[i % 4];
        assert_int_equal(death_of(&c, chained_later, &pid) & ~0x80, SIGSEGV);
        struct fdr_file *f = opened(death_file(p->dir));
        assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
        assert_int_equal(fdr_file_info(f)->cause_addr, (uint64_t)(uintptr_t)nowhere);
        fdr_file_close(f);
        assert_string_equal(death_file(p->live), "");
    }
}

static void replaced_later(void)
{
    record();
    signal(SIGSEGV, leave_well);
    fdr_thread_name("main");
    if (fdr_snapshot("look")) _exit(1);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGTERM, leave_well);
    raise(SIGTERM);
}
static void ignores(void)
{
    signal(SIGTERM, SIG_IGN);
    struct fdr_config c = death_config(death_place_as_it_is());
    if (fdr_init(&c)) _exit(1);
    raise(SIGTERM);
    exit(7);
}
static void replaced_and_dies(void)
{
    record();
    signal(SIGBUS, leave_well);
    pthread_t t;
    void *(*nothing)(void *) = (void *(*)(void *))(uintptr_t)record;
    pthread_create(&t, NULL, nothing, NULL); /* a thread that attaches checks the installed handlers */
    pthread_join(t, NULL);
    *nowhere = 1;
}

/* The replaced handlers that the live file names. Here fdr_handlers_changed and fdr's own thread find them; no thread
 * attaches. */
static uint64_t lost_of_live(void)
{
    char message[200];
    struct fdr_file *f = NULL;
    fdr_file_open(death_file(death_place_as_it_is()->live), &f, message, sizeof message);
    uint64_t lost = f ? fdr_file_info(f)->handlers_lost : 0;
    if (f) fdr_file_close(f);
    return lost;
}
static void replaced_and_told(void)
{
    record();
    signal(SIGBUS, leave_well);
    fdr_handlers_changed();
    if (lost_of_live() != 1ull << (SIGBUS - 1)) _exit(1);
    signal(SIGFPE, leave_well);
    for (int i = 0; i < 600 && !(lost_of_live() >> (SIGFPE - 1) & 1); i++) usleep(100000);
    raise(SIGKILL);
}

static void replaced_handler_is_reported(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    c.signal = "USR1"; /* starts fdr's own thread */
    int status = death_of(&c, replaced_and_told, &pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(lost_of_live(), 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1));
}

static void replacing_handler_wins(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    assert_int_equal(death_of(&c, replaced_later, &pid), 0);
    assert_string_equal(death_file(p->live), "");
    assert_true(death_ends_with(death_file(p->dir), ".1.fdr"));
    death_place();
    assert_int_equal(WEXITSTATUS(death_of(NULL, ignores, &pid)), 7);
    assert_string_equal(death_file(p->live), "");
    assert_int_equal(WTERMSIG(death_of(&c, replaced_and_dies, &pid)), SIGSEGV);
    struct fdr_file *f = opened(death_file(p->dir));
    assert_int_equal(fdr_file_info(f)->handlers_lost, 1ull << (SIGBUS - 1));
    assert_true(fdr_file_info(f)->handlers >> (SIGSEGV - 1) & 1);
    fdr_file_close(f);
}

/* ---- descriptors, children, files that are truncated ---- */

static void closes_everything(void)
{
    record();
    for (int i = 3; i < 1024; i++) close(i);
    /* takes the numbers that fdr's descriptors had */
    for (int i = 3; i < 200; i++)
        if (open("database", O_RDWR | O_CREAT, 0600) < 0) _exit(1);
    *nowhere = 1;
}

static void P10_descriptors_are_proved(void **state)
{
    (void)state;
    static const char *const arenas[] = {"mapped", "anonymous"};
    for (int i = 0; i < 2; i++) {
        pid_t pid;
        struct stat st;
        char path[600];
        const struct death_place *p = death_place();
        struct fdr_config c = death_config(p);
        c.arena = arenas[i];
        assert_int_equal(WTERMSIG(death_of(&c, closes_everything, &pid)), SIGSEGV);
        snprintf(path, sizeof path, "%s/database", p->dir);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 0);
        fdr_file_close(opened(death_file(p->dir)));
        assert_string_equal(death_file(p->live), "");
    }
}

static void child_dies(void)
{
    record();
    int status;
    pid_t child = fork();
    if (child == 0) *nowhere = 1;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) _exit(1);
    child = vfork();
    if (child == 0) *nowhere = 1;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) _exit(2);
    if ((child = _Fork()) == 0) *nowhere = 1;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) _exit(3);
    if (*death_file(death_place_as_it_is()->dir)) _exit(4);
    record();
    raise(SIGKILL);
}

static void children_leave_nothing(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    assert_int_equal(death_of(&c, child_dies, &pid), SIGKILL);
    assert_string_equal(death_file(p->dir), "");
    fdr_file_close(opened(death_file(p->live)));
}

static void is_cut(void)
{
    char path[600];
    record();
    DIR *d = opendir("live");
    for (struct dirent *e; d && (e = readdir(d));)
        if (death_ends_with(e->d_name, ".live.fdr")) {
            snprintf(path, sizeof path, "live/%.255s", e->d_name);
            if (truncate(path, 0)) _exit(1);
        }
    for (int i = 0; i < 100000; i++) record();
    fdr_finalize();
    exit(12);
}

static void P10_a_file_cut_under_the_map(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    char link[600];
    snprintf(link, sizeof link, "%s/live", p->dir);
    assert_int_equal(symlink(p->live, link), 0);
    int status = death_of(&c, is_cut, &pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 12);
    unlink(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_handler_that_jumps_is_over),
                                       cmocka_unit_test(P10_survivors_leave_no_bundle),
                                       cmocka_unit_test(handlers_that_end_the_process),
                                       cmocka_unit_test(replacing_handler_wins),
                                       cmocka_unit_test(replaced_handler_is_reported),
                                       cmocka_unit_test(P10_descriptors_are_proved),
                                       cmocka_unit_test(children_leave_nothing),
                                       cmocka_unit_test(handler_that_passes_back_is_called_once),
                                       cmocka_unit_test(handler_that_reinstalls_ours_is_called_once),
                                       cmocka_unit_test(removed_handler_is_not_called),
                                       cmocka_unit_test(P10_a_file_cut_under_the_map)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
