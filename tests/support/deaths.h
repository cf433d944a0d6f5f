/* SPDX-License-Identifier: MIT */
/* Child processes that die, and the files that they leave. A test runs each death twice, with and without a recording.
 * P10 asks for equal wait statuses. Tests include this file. */
#ifndef FDRI_TESTS_DEATHS_H
#define FDRI_TESTS_DEATHS_H

#include <dirent.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct death_place {
    char dir[256], live[256];
};

static inline void death_clear(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
}

/* One directory on disk for snapshots, and one in memory for live files. Their present contents stay. */
static inline const struct death_place *death_place_as_it_is(void)
{
    static struct death_place p;
    if (!p.dir[0]) {
        const char *t = getenv("TMPDIR");
        snprintf(p.dir, sizeof p.dir, "%s/fdr-death-XXXXXX", t && *t ? t : "/tmp");
        snprintf(p.live, sizeof p.live, "/dev/shm/fdr-death-XXXXXX");
        if (!mkdtemp(p.dir) || !mkdtemp(p.live)) abort();
    }
    return &p;
}
/* The same two directories, emptied. */
static inline const struct death_place *death_place(void)
{
    death_clear(death_place_as_it_is()->dir);
    death_clear(death_place_as_it_is()->live);
    return death_place_as_it_is();
}

/* Teardown of a group of tests: removes both directories. */
static inline int death_place_leave(void **state)
{
    const struct death_place *p = death_place();
    (void)state;
    rmdir(p->dir);
    rmdir(p->live);
    return 0;
}

static inline struct fdr_config death_config(const struct death_place *p)
{
    return (struct fdr_config){.size = sizeof(struct fdr_config),
                               .ignore_environment = 1,
                               .name = "victim",
                               .buffer = "1M",
                               .dir = p->dir,
                               .live_dir = p->live,
                               .signal = "none"};
}

/* Prepares a child of a test. Every signal that ends a process gets its default action: cmocka catches some, and would
 * go on with the tests in the child. Messages are off. The child dies with the test. */
static inline void death_child(void)
{
    static const int standard[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGTERM, SIGINT, SIGXCPU};
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++) signal(standard[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Runs `die` in a child, with a recording unless config is NULL. The child has default handlers, works in the
 * directory, and may write core files. Returns its wait status, or -1 if it hung. */
static inline int death_of(const struct fdr_config *config, void (*die)(void), pid_t *pid)
{
    fflush(NULL);
    *pid = fork();
    if (*pid == 0) {
        struct rlimit core = {64 << 20, 64 << 20};
        death_child();
        setrlimit(RLIMIT_CORE, &core);
        if (!freopen("/dev/null", "w", stderr) || chdir(death_place_as_it_is()->dir)) _exit(97);
        if (config && fdr_init(config)) _exit(98);
        die();
        _exit(99);
    }
    int status = -1;
    for (int i = 0; i < 3000; i++) {
        if (waitpid(*pid, &status, WNOHANG) == *pid) return status;
        usleep(10000);
    }
    kill(*pid, SIGKILL);
    waitpid(*pid, &status, 0);
    return -1;
}

static inline int death_ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && !strcmp(path + n - m, end);
}

/* Returns the path of the one recording in a directory; "" if there is none, "2" if there are several. Other files,
 * like cores, do not count. */
static inline const char *death_file(const char *dir)
{
    static char path[4][512];
    static int turn;
    char *p = path[turn++ % 4];
    DIR *d = opendir(dir);
    *p = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!death_ends_with(e->d_name, ".fdr") && !death_ends_with(e->d_name, ".part")) continue;
        if (*p) strcpy(p, "2");
        else snprintf(p, 512, "%.255s/%.255s", dir, e->d_name);
    }
    if (d) closedir(d);
    return p;
}

/* Counts the files of the directory whose names end in `end`. Also returns the path of one of them, or "". The two
 * newest paths stay valid. */
static inline int death_count(const char *dir, const char *end)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) n += death_ends_with(e->d_name, end);
    if (d) closedir(d);
    return n;
}

static inline const char *death_find(const char *dir, const char *end)
{
    static char path[2][600];
    static int turn;
    char *p = path[turn++ % 2];
    DIR *d = opendir(dir);
    *p = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (death_ends_with(e->d_name, end)) snprintf(p, sizeof path[0], "%.255s/%.255s", dir, e->d_name);
    if (d) closedir(d);
    return p;
}

/* Checks that the file is whole, and that each location's ledger is right within the one event under way. Returns NULL
 * or the fault as text. */
static inline const char *death_check(struct fdr_file *f)
{
    static char text[256];
    const struct fdr_ledger_row *row;
    if (fdr_file_verify(f) != FDR_WHOLE) {
        snprintf(text, sizeof text, "damaged: %s", fdr_file_damage_count(f) ? fdr_file_damage(f, 0) : "?");
        return text;
    }
    size_t n = fdr_ledger(f, &row);
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t apart = 0;
        for (end = i; end < n && row[end].location == row[i].location; end++) {
            uint64_t right = row[end].kept + row[end].filtered + row[end].reduced + row[end].lost;
            apart += row[end].presented > right ? row[end].presented - right : right - row[end].presented;
        }
        snprintf(text, sizeof text, "location %u: the ledger is off by %llu", row[i].location,
                 (unsigned long long)apart);
        if (apart > 1) return text;
    }
    return NULL;
}
#endif
