/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=120 promise=P7,P10 excuse=root
 * P7, P10: a recording program calls chroot, setuid or chdir, or closes all descriptors. Snapshots and bundles still go
 * to FDR_DIR as it was at the start, and the live file is removed. A live file that cannot be removed says that its
 * recording is over. So no reader takes it for the file of a killed process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "tests/support/deaths.h"

enum { NOBODY = 65534, FILES = 60 };
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static const struct death_place *place;
static fdr_region region;
static mode_t mode = 0777; /* of FDR_DIR */

/* ---- the program ---- */

static void record(void)
{
    for (int i = 0; i < 2000; i++) fdr_enter(region), fdr_leave(region);
}
static void into_root(void)
{
    if (chdir("root") || chroot(".") || chdir("/")) _exit(91);
}
static void to_nobody(void)
{
    if (setgid(NOBODY) || setuid(NOBODY)) _exit(92);
}
static void take(void)
{
    record();
    if (fdr_snapshot("now")) _exit(93);
}
static void finish(void) { take(), fdr_finalize(), _exit(5); }
static void die(void) { record(), *nowhere = 1; }

static void root_and_finish(void) { into_root(), take(), finish(); } /* FDR_KEEP is 1: the second replaces the first */
static void root_and_die(void) { into_root(), die(); }
static void root_and_term(void) { into_root(), record(), raise(SIGTERM); }
static void nobody_and_finish(void) { to_nobody(), finish(); }
static void nobody_and_die(void) { to_nobody(), die(); }
static void nobody_and_term(void) { to_nobody(), record(), raise(SIGTERM); }
static void nobody_and_exit(void) { to_nobody(), record(), exit(6); }
static void elsewhere_and_finish(void)
{
    if (chdir("/")) _exit(94);
    finish();
}
static void elsewhere_and_die(void)
{
    if (chdir("/")) _exit(94);
    die();
}

/* The child in the same root ends normally. It must not remove the live file of its parent. */
static void root_and_fork(void)
{
    int status;
    into_root();
    pid_t pid = fork();
    if (pid == 0) fdr_finalize(), exit(0);
    if (waitpid(pid, &status, 0) != pid || status) _exit(95);
    take();
    raise(SIGKILL);
}

/* The program's files get the numbers that fdr's files had. They are still open after the recording. */
static void close_all(void)
{
    int fd[FILES];
    if (syscall(SYS_close_range, 3u, ~0u, 0)) _exit(77);
    for (int i = 0; i < FILES; i++) fd[i] = fcntl(STDERR_FILENO, F_DUPFD, i < FILES / 2 ? 3 : 100);
    take();
    fdr_finalize();
    for (int i = 0; i < FILES; i++)
        if (fd[i] < 0 || fcntl(fd[i], F_GETFD)) _exit(96);
    _exit(5);
}
static void root_and_close_all(void)
{
    into_root();
    if (syscall(SYS_close_range, 3u, ~0u, 0)) _exit(77);
    record();
    fdr_finalize();
    _exit(5);
}

/* ---- the files that stay ---- */

static const char *said(void)
{
    static char text[4096];
    char path[600];
    snprintf(path, sizeof path, "%.255s/said", place->dir);
    FILE *f = fopen(path, "r");
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
    if (f) fclose(f);
    return text;
}

static void program(const struct fdr_config *config, void (*what)(void))
{
    struct rlimit none = {0, 0};
    death_child();
    setrlimit(RLIMIT_CORE, &none);
    if (chdir(place->dir) || !freopen("said", "w", stderr) || fdr_init(config)) _exit(97);
    region = fdr_region_define("region", "file.c", 1);
    record();
    what();
    _exit(98);
}

/* Runs the program in an empty directory. FDR_DIR is relative to the working directory at the start. */
static int run_with(const char *crash, void (*what)(void))
{
    int status = -1;
    char root[600];
    place = death_place();
    struct fdr_config c = death_config(place);
    c.dir = ".";
    c.crash = crash;
    c.keep = "1,newest";
    snprintf(root, sizeof root, "%.255s/root", place->dir);
    mkdir(root, 0755);
    chmod(place->dir, mode);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) program(&c, what);
    waitpid(pid, &status, 0);
    rmdir(root);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    return status;
}
static int run(void (*what)(void)) { return run_with("1", what); }

static void needs_root(void)
{
    if (geteuid() == 0) return;
    print_message("chroot and setuid need root\n");
    skip();
}

static struct fdr_file *opened(const char *path)
{
    struct fdr_file *f = NULL;
    char message[200] = "";
    if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s: %s", path, message);
    return f;
}

/* The output of `fdr VERB A [B]`, which must exit with 0. */
static const char *told(const char *verb, const char *a, const char *b)
{
    static char text[16384];
    char command[2000];
    const char *build = getenv("FDR_BUILD");
    snprintf(command, sizeof command, "%s/bin/fdr %s %s %s 2>&1", build ? build : ".", verb, a, b);
    FILE *f = popen(command, "r");
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
    int status = f ? pclose(f) : -1;
    if (status) fail_msg("%s: %d: %s", command, status, text);
    return text;
}

static void expect_files(int snapshots, int bundles, int live)
{
    assert_int_equal(death_count(place->dir, ".part"), 0);
    assert_int_equal(death_count(place->dir, ".fdr"), snapshots + bundles);
    assert_int_equal(death_count(place->dir, ".crash.fdr"), bundles);
    assert_int_equal(death_count(place->live, ""), 2 + live); /* "." and ".." */
    assert_int_equal(death_count(place->live, ".fdr"), live);
}

static void expect_bundle(const char *path, int signal)
{
    struct fdr_file *f = opened(path);
    assert_null(death_check(f));
    assert_string_equal(fdr_file_info(f)->state, "crashed");
    assert_int_equal(fdr_file_info(f)->cause_signal, signal);
    assert_false(fdr_file_info(f)->killed_in_handler);
    assert_false(fdr_file_info(f)->over);
    fdr_file_close(f);
    assert_null(strstr(told("crash", path, ""), "killed while"));
}

/* A live file that could not be removed says so and takes almost no space. `fdr collect` removes it. */
static void expect_over(const char *path, const char *state)
{
    struct stat st;
    struct fdr_file *f = opened(path);
    assert_true(fdr_file_info(f)->over);
    assert_int_equal(fdr_file_info(f)->over_error, EACCES);
    assert_string_equal(fdr_file_info(f)->state, state);
    assert_false(fdr_file_info(f)->killed_in_handler);
    assert_int_equal(fdr_location_count(f), 0);
    fdr_file_close(f);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_blocks <= 128);
    assert_non_null(strstr(told("check", path, ""), "over: "));
    assert_non_null(strstr(told("info", path, ""), "over: "));
    assert_non_null(strstr(told("list", place->live, ""), "over "));
    const char *crash = told("crash", path, "");
    assert_null(strstr(crash, "killed"));
    assert_non_null(strstr(crash, "over  "));
}
static void collected(void)
{
    assert_non_null(strstr(told("collect -o", place->dir, place->live), "over, "));
    assert_int_equal(death_count(place->live, ".fdr"), 0);
    assert_int_equal(death_count(place->dir, ".live.fdr"), 0);
}

static void expect_line(const char *error)
{
    const char *text = said(), *end = strchr(text, '\n');
    assert_non_null(strstr(text, ".live.fdr: cannot remove the live file: "));
    assert_non_null(strstr(text, error));
    assert_non_null(strstr(text, place->live));
    assert_true(end && !end[1]);
}

/* ---- tests ---- */

static void another_root(void **state)
{
    (void)state;
    needs_root();
    assert_int_equal(run(root_and_finish), 5 << 8);
    expect_files(1, 0, 0);
    assert_string_equal(said(), "");
    struct fdr_file *f = opened(death_find(place->dir, ".fdr"));
    assert_string_equal(fdr_file_info(f)->reason, "now");
    fdr_file_close(f);
    assert_int_equal(run(root_and_die), SIGSEGV);
    expect_files(0, 1, 0);
    expect_bundle(death_find(place->dir, ".crash.fdr"), SIGSEGV);
    assert_int_equal(run(root_and_term), SIGTERM);
    expect_files(0, 0, 1);
    assert_true(death_ends_with(death_find(place->live, ".fdr"), ".crash.fdr"));
    expect_bundle(death_find(place->live, ".fdr"), SIGTERM);
}

static void a_child_in_another_root(void **state)
{
    const char *sanitized = getenv("FDR_SANITIZE");
    (void)state;
    needs_root();
    if (sanitized && *sanitized) skip(); /* the check for leaks at exit needs /proc */
    assert_int_equal(run(root_and_fork), SIGKILL);
    expect_files(1, 0, 1);
    struct fdr_file *f = opened(death_find(place->live, ".live.fdr"));
    assert_null(death_check(f));
    assert_false(fdr_file_info(f)->over);
    fdr_file_close(f);
}

static void another_user(void **state)
{
    (void)state;
    needs_root();
    assert_int_equal(run(nobody_and_finish), 5 << 8);
    expect_files(1, 0, 1);
    expect_line("Permission denied");
    expect_over(death_find(place->live, ".live.fdr"), "finalized");
    collected();
}

/* Clears the word that says so. This is the file of a process killed right after its bundle got its name. */
static void unmark(const char *path)
{
    const char zero[8] = {0};
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, zero, 8, offsetof(struct fdri_arena_superblock, over)), 8);
    close(fd);
}

static void another_user_dies(void **state)
{
    (void)state;
    needs_root();
    assert_int_equal(run(nobody_and_die), SIGSEGV);
    expect_files(0, 1, 1);
    const char *bundle = death_find(place->dir, ".crash.fdr"), *live = death_find(place->live, ".live.fdr");
    expect_bundle(bundle, SIGSEGV);
    expect_over(live, "crashed");
    for (int marked = 1; marked >= 0; marked--) {
        const char *both = told("crash --all", live, bundle), *first = strstr(both, "FIRST ");
        assert_null(strstr(both, "killed while"));
        assert_non_null(first);
        const char *end = strchr(first, '\n');
        assert_non_null(strstr(first, ".crash.fdr"));
        assert_true(end > strstr(first, ".crash.fdr"));
        assert_non_null(strstr(both, "over: "));
        if (marked) unmark(live);
    }
    struct fdr_file *f = opened(live);
    /* without its bundle it looks like that of a kill in the handler */
    assert_true(fdr_file_info(f)->killed_in_handler);
    fdr_file_close(f);
}

/* The live file itself is the bundle here. It is complete although it keeps the name of a live file. */
static void another_user_is_ended(void **state)
{
    (void)state;
    needs_root();
    assert_int_equal(run(nobody_and_term), SIGTERM);
    expect_files(0, 0, 1);
    expect_bundle(death_find(place->live, ".live.fdr"), SIGTERM);
    mode = 0755;
    assert_int_equal(run(nobody_and_die), SIGSEGV);
    mode = 0777;
    expect_files(0, 0, 1);
    expect_bundle(death_find(place->live, ".live.fdr"), SIGSEGV);
    assert_int_equal(run_with("exit", nobody_and_exit), 6 << 8);
    expect_files(0, 1, 1);
    expect_line("Permission denied");
    expect_bundle(death_find(place->dir, ".crash.fdr"), 0);
    expect_over(death_find(place->live, ".live.fdr"), "crashed");
    collected();
}

static void another_directory(void **state)
{
    (void)state;
    assert_int_equal(run(elsewhere_and_finish), 5 << 8);
    expect_files(1, 0, 0);
    assert_int_equal(run(elsewhere_and_die), SIGSEGV);
    expect_files(0, 1, 0);
    expect_bundle(death_find(place->dir, ".crash.fdr"), SIGSEGV);
}

static void link_and_finish(void)
{
    char to[600];
    snprintf(to, sizeof to, "%.255s/mine.live.fdr", place->live);
    if (link(death_find(place->live, ".live.fdr"), to)) _exit(92);
    fdr_finalize();
    _exit(5);
}
static void move_and_finish(void)
{
    char to[600];
    snprintf(to, sizeof to, "%.255s/mine.live.fdr", place->live);
    if (rename(death_find(place->live, ".live.fdr"), to)) _exit(92);
    fdr_finalize();
    _exit(5);
}

/* The program linked or renamed its live file. Under the new name it is a recording that `fdr collect` must not
 * remove. */
static void file_kept_open_by_another(void **state)
{
    static void (*const how[])(void) = {link_and_finish, move_and_finish};
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(how[i]), 5 << 8);
        expect_files(0, 0, 1);
        struct fdr_file *f = opened(death_find(place->live, "mine.live.fdr"));
        assert_false(fdr_file_info(f)->over);
        fdr_file_close(f);
    }
}

static void closed_descriptors(void **state)
{
    (void)state;
    assert_int_equal(run(close_all), 5 << 8);
    expect_files(1, 0, 0);
    assert_string_equal(said(), "");
}

/* Neither path nor descriptor leads to the live file. fdr marks it as over and does not empty it: the user may have
 * moved it to keep it. */
static void closed_in_another_root(void **state)
{
    (void)state;
    needs_root();
    assert_int_equal(run(root_and_close_all), 5 << 8);
    expect_files(0, 0, 1);
    expect_line("No such file");
    struct fdr_file *f = opened(death_find(place->live, ".live.fdr"));
    assert_true(fdr_file_info(f)->over);
    assert_string_equal(fdr_file_info(f)->state, "finalized");
    assert_null(death_check(f));
    fdr_file_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_root),
        cmocka_unit_test(a_child_in_another_root),
        cmocka_unit_test(another_user),
        cmocka_unit_test(another_user_dies),
        cmocka_unit_test(another_user_is_ended),
        cmocka_unit_test(another_directory),
        cmocka_unit_test(file_kept_open_by_another),
        cmocka_unit_test(closed_descriptors),
        cmocka_unit_test(closed_in_another_root),
    };
    int failed = cmocka_run_group_tests(tests, NULL, death_place_leave);
    if (failed || geteuid() == 0) return failed;
    print_message("skipped: most of these need root\n");
    return 77;
}
