/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=240 promise=P7,P10
 * ctest: without=asan,tsan (their runtimes do not survive threads cancelled anywhere)
 * P7, P10: the host lacks memory, space or address space; the program still runs, and dies of its own signal. Cases: a
 * small or full /dev/shm, no room for the bundle, the OOM killer of a memory cgroup, RLIMIT_AS. Others: read-only file
 * systems, chroot, 10,000 threads, cancelled threads. A failure shows as another wait status or an unreadable file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;

static void record(int calls)
{
    fdr_region r = fdr_region_define("outer", NULL, 0), many[64];
    char name[16];
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "r%d", i);
        many[i] = fdr_region_define(name, NULL, 0);
    }
    fdr_enter(r);
    for (int i = 0; i < calls; i++) fdr_enter(many[i * 7 % 64]), fdr_leave(many[i * 7 % 64]);
}
static void fault(void) { record(100000), *nowhere = 1; }

/* ---- mount namespaces with small file systems ---- */

enum { SKIPPED = 77 };

static void mount_small(const char *path, const char *size)
{
    char options[32];
    snprintf(options, sizeof options, "size=%s,mode=700", size);
    if (mount("fdr-test", path, "tmpfs", 0, options)) _exit(SKIPPED);
}

static void fill(const char *directory)
{
    static char block[65536];
    char path[600];
    memset(block, 1, sizeof block);
    snprintf(path, sizeof path, "%s/filler", directory);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) _exit(1);
    for (size_t n = sizeof block; n >= 512;)
        if (write(fd, block, n) != (ssize_t)n) n /= 2;
    close(fd);
}

/* Runs `body` in a mount namespace of its own and returns the exit code. The parent cannot see these mounts. So `body`
 * forks the dying process and checks its file itself. */
static void apart(void (*body)(const struct death_place *))
{
    const struct death_place *p = death_place();
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        death_child();
        if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) _exit(SKIPPED);
        body(p);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        print_message("no mounts here: skipped\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status)) fail_msg("expectation %d did not hold", WEXITSTATUS(status));
}

static void expect(bool holds, int number)
{
    if (!holds) _exit(number);
}

/* The verdict on the only recording in a directory; *signal gets its cause. */
static enum fdr_verdict left_in(const char *directory, int *signal)
{
    struct fdr_file *f = NULL;
    char message[200];
    enum fdr_verdict v = fdr_file_open(death_file(directory), &f, message, sizeof message);
    if (!f) return FDR_UNREADABLE;
    *signal = fdr_file_info(f)->has_cause ? fdr_file_info(f)->cause_signal : 0;
    if (v == FDR_WHOLE && death_check(f)) v = FDR_DAMAGED;
    fdr_file_close(f);
    return v;
}

static void go_on(void) { record(3000000), exit(0); }
static void be_killed(void) { record(3000000), raise(SIGKILL); }

/* Containers often have 64 MiB of /dev/shm. By default a recording takes half of the free space. */
static void in_64_mib(const struct death_place *p)
{
    struct fdr_config c = death_config(p);
    pid_t pid;
    int signal = -1;
    c.buffer = NULL;
    mount_small(p->live, "64m");
    expect(death_of(&c, be_killed, &pid) == SIGKILL, 1);
    expect(left_in(p->live, &signal) == FDR_WHOLE && signal == 0, 2);
    death_clear(p->live);
    expect(WTERMSIG(death_of(&c, fault, &pid)) == SIGSEGV, 3);
    expect(left_in(p->dir, &signal) == FDR_WHOLE && signal == SIGSEGV, 4);
    expect(!*death_file(p->live), 5);
}
static void P7_a_small_dev_shm(void **state) { (void)state, apart(in_64_mib); }

static void full_at_start(const struct death_place *p)
{
    struct fdr_config c = death_config(p);
    pid_t pid;
    int signal = -1;
    mount_small(p->live, "8m");
    fill(p->live);
    expect(death_of(&c, go_on, &pid) == 0, 1);
    expect(WTERMSIG(death_of(&c, fault, &pid)) == SIGSEGV, 2); /* the arena is anonymous memory here */
    expect(left_in(p->dir, &signal) == FDR_WHOLE && signal == SIGSEGV, 3);
}
static void P10_no_room_at_the_start(void **state) { (void)state, apart(full_at_start); }

static void fill_then_go_on(void)
{
    fill(death_place_as_it_is()->live);
    go_on();
}
static void full_later(const struct death_place *p)
{
    struct fdr_config c = death_config(p);
    pid_t pid;
    c.buffer = "8M";
    mount_small(p->live, "16m");
    expect(death_of(&c, fill_then_go_on, &pid) == 0, 1);
    expect(!*death_file(p->live), 2);
}
static void P10_no_room_later(void **state) { (void)state, apart(full_later); }

static void full_for_the_bundle(const struct death_place *p)
{
    struct fdr_config c = death_config(p);
    pid_t pid;
    int signal = -1;
    c.buffer = "8M";
    mount_small(p->dir, "64k");
    expect(WTERMSIG(death_of(&c, fault, &pid)) == SIGSEGV, 1);
    expect(left_in(p->live, &signal) == FDR_WHOLE && signal == SIGSEGV, 2);
    expect(!*death_file(p->dir), 3);
}
static void P7_no_room_for_the_bundle(void **state) { (void)state, apart(full_for_the_bundle); }

/* ---- file systems that are read-only ---- */

static void make_read_only(const char *path)
{
    if (mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL)) _exit(SKIPPED);
}
static void *store_on(void *unused)
{
    for (;;) record(1000);
    return unused;
}
static void fault_where_nothing_is_written(void)
{
    pthread_t t;
    record(1000);
    pthread_create(&t, NULL, store_on, NULL);
    if (fdr_snapshot("nowhere to go") == 0) _exit(90);
    *nowhere = 1;
}
static void read_only(const struct death_place *p)
{
    struct fdr_config c = death_config(p);
    pid_t pid;
    int signal = -1;
    c.buffer = "2M";
    mount_small(p->dir, "16m");
    make_read_only(p->dir);
    expect(WTERMSIG(death_of(&c, fault_where_nothing_is_written, &pid)) == SIGSEGV, 1);
    expect(left_in(p->live, &signal) == FDR_WHOLE && signal == SIGSEGV, 2); /* in the live directory */
    expect(!*death_file(p->dir), 3);
    death_clear(p->live);
    mount_small(p->live, "16m");
    make_read_only(p->live);
    expect(death_of(&c, go_on, &pid) == 0, 4); /* an anonymous arena, and no directory that can be written */
    expect(WTERMSIG(death_of(&c, fault, &pid)) == SIGSEGV, 5);
    expect(!*death_file(p->live) && !*death_file(p->dir), 6);
}
static void P10_read_only_file_systems(void **state) { (void)state, apart(read_only); }

static void leave_the_root(void)
{
    char path[600];
    record(1000);
    snprintf(path, sizeof path, "%s/root", death_place_as_it_is()->dir);
    if (mkdir(path, 0700) || chroot(path) || chdir("/")) _exit(SKIPPED);
    *nowhere = 1;
}
static void P7_another_root(void **state)
{
    (void)state;
    char path[600];
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    pid_t pid;
    int signal = -1, status = death_of(&c, leave_the_root, &pid);
    snprintf(path, sizeof path, "%s/root", p->dir);
    death_clear(path); /* its core file, if any */
    rmdir(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) skip();
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_int_equal(left_in(p->dir, &signal), FDR_WHOLE);
    assert_int_equal(signal, SIGSEGV);
}

/* ---- memory ---- */

static char group[128];

static bool put_text(const char *directory, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) > 0;
    if (fd >= 0) close(fd);
    return good;
}

static bool make_group(void)
{
    static const char *const roots[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};
    for (int i = 0; i < 2; i++) {
        snprintf(group, sizeof group, "%s/fdr-test-%d", roots[i], (int)getpid());
        if (mkdir(group, 0700)) continue;
        if (put_text(group, limits[i], "67108864")) return true;
        rmdir(group);
    }
    return false;
}

static void eat(void)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)getpid());
    if (!put_text(group, "cgroup.procs", text)) _exit(SKIPPED);
    record(100000);
    for (;;) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) _exit(SKIPPED);
        for (int i = 0; i < 1 << 20; i += 4096) p[i] = 1;
    }
}

static void P7_the_oom_killer(void **state)
{
    (void)state;
    pid_t pid;
    int signal = -1;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    if (!make_group()) {
        print_message("no memory cgroup can be made here: skipped\n");
        skip();
    }
    int status = death_of(&c, eat, &pid);
    for (int i = 0; i < 500 && rmdir(group) && errno == EBUSY; i++) usleep(10000);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) skip();
    assert_int_equal(status, SIGKILL);
    assert_true(death_ends_with(death_file(p->live), ".live.fdr"));
    assert_int_equal(left_in(p->live, &signal), FDR_WHOLE);
    assert_int_equal(signal, 0);
}

static uint64_t mapped_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%llu", &pages) != 1) _exit(1);
    fclose(f);
    return pages * 4096;
}

/* The limit leaves too little for the arena, or for fdr's threads and stacks. */
static void little_address_space(void)
{
    static const char *const arenas[] = {"mapped", "anonymous"};
    for (int i = 0; i < 2; i++)
        for (uint64_t more = 0; more < 80 << 20; more += 5 << 20) {
            struct fdr_config c = death_config(death_place_as_it_is());
            struct rlimit l = {mapped_bytes() + more, RLIM_INFINITY};
            c.buffer = "64M";
            c.arena = arenas[i];
            if (setrlimit(RLIMIT_AS, &l)) _exit(1);
            (void)fdr_init(&c); /* fdr_init may fail; the program must run on */
            record(1000);
            fdr_finalize();
        }
    exit(0);
}
static void P10_little_address_space(void **state)
{
    (void)state;
    pid_t pid;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* the shadow memory of a sanitizer exceeds any such limit */
#endif
    const struct death_place *p = death_place();
    assert_int_equal(death_of(NULL, little_address_space, &pid), 0);
    assert_string_equal(death_file(p->live), "");
}

/* ---- threads ---- */

static void *brief(void *unused)
{
    fdr_region r = fdr_region_define("brief", NULL, 0);
    fdr_enter(r);
    fdr_leave(r);
    return unused;
}
static void many_threads(void)
{
    uint64_t before = 0;
    record(10);
    for (int i = 0; i < 10000; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, brief, NULL) || pthread_join(t, NULL)) _exit(1);
        if (i == 100) before = mapped_bytes();
    }
    if (mapped_bytes() > before + (8 << 20)) _exit(2); /* alternate stacks that stayed mapped would take 2 GB */
    *nowhere = 1;
}
static void P10_ten_thousand_threads(void **state)
{
    (void)state;
    pid_t pid;
    int signal = -1;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    int status = death_of(&c, many_threads, &pid);
    if (!WIFSIGNALED(status)) fail_msg("wait status %x", status);
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_int_equal(left_in(p->dir, &signal), FDR_WHOLE);
    assert_int_equal(signal, SIGSEGV);
}

static void *endless(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    fdr_region r = fdr_region_define("endless", NULL, 0);
    for (;;) fdr_enter(r), fdr_leave(r);
    return unused;
}
static void cancelled(void)
{
    record(10);
    for (int i = 0; i < 600; i++) { /* cancels most threads while they attach, when they hold locks */
        pthread_t t;
        if (pthread_create(&t, NULL, endless, NULL)) _exit(1);
        usleep((useconds_t)(i * 37 % (i % 3 ? 120 : 500)));
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    if (fdr_snapshot("after")) _exit(2);
    fdr_finalize();
    exit(5);
}
/* Threads are cancelled in the middle of a record. No snapshot may wait for that record; the other threads go on. */
static void P10_cancelled_threads(void **state)
{
    (void)state;
    pid_t pid;
    int signal = -1;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    c.buffer = "4M";
    int status = death_of(&c, cancelled, &pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5) fail_msg("wait status %x", status);
    assert_int_equal(left_in(p->dir, &signal), FDR_WHOLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P7_a_small_dev_shm),         cmocka_unit_test(P10_no_room_at_the_start),
        cmocka_unit_test(P10_no_room_later),          cmocka_unit_test(P7_no_room_for_the_bundle),
        cmocka_unit_test(P10_read_only_file_systems), cmocka_unit_test(P7_another_root),
        cmocka_unit_test(P7_the_oom_killer),          cmocka_unit_test(P10_little_address_space),
        cmocka_unit_test(P10_ten_thousand_threads),   cmocka_unit_test(P10_cancelled_threads)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
