/* SPDX-License-Identifier: MIT */
/* Begins a recording for a test. Settings from the environment do not count. */
#ifndef FDRI_TESTS_ORACLE_RECORDING_H
#define FDRI_TESTS_ORACLE_RECORDING_H

#include "format/arena/arena.h"
#include "tests/support/oracle_presented.h"

#include <dirent.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the clock of the recording: the test's own, unless ctest chose another (clock=... in its first lines). */
static inline const char *oracle_clock(const char *own)
{
    const char *other = getenv("FDR_TEST_CLOCK");
    return other ? other : own;
}

static inline struct fdr_config oracle_config(const char *dir)
{
    return (struct fdr_config){.size = sizeof(struct fdr_config),
                               .ignore_environment = 1,
                               .name = "test",
                               .arena = "anonymous",
                               .timer = oracle_clock("monotonic"),
                               .signal = "none",
                               .dir = dir,
                               .buffer = "4M",
                               .keep = "256",
                               .disk = "1000G"};
}

/* The directory of this test. It is removed with its files when the process that made it ends. */
static char oracle_directory_path[200];
static pid_t oracle_directory_owner;

static inline void oracle_directory_remove(void)
{
    char file[600];
    DIR *d = getpid() == oracle_directory_owner ? opendir(oracle_directory_path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(file, sizeof file, "%s/%s", oracle_directory_path, e->d_name);
        unlink(file);
    }
    if (d) closedir(d), rmdir(oracle_directory_path);
}

static inline const char *oracle_directory(void)
{
    if (!*oracle_directory_path) {
        const char *t = getenv("TMPDIR");
        snprintf(oracle_directory_path, sizeof oracle_directory_path, "%s/fdr-test-XXXXXX", t && *t ? t : "/tmp");
        if (!mkdtemp(oracle_directory_path)) abort();
        oracle_directory_owner = getpid();
        atexit(oracle_directory_remove);
    }
    return oracle_directory_path;
}

/* Takes a snapshot, opens it, and removes the file. Returns NULL and sets *wrong if that fails or it is not whole. */
static inline struct fdr_file *oracle_snapshot(uint64_t buffer, const char **wrong)
{
    char message[300] = "";
    struct fdr_file *f = NULL;
    struct stat st;
    int e = fdr_snapshot("test");
    *wrong = NULL;
    if (e) {
        *wrong = oracle_wrong("fdr_snapshot: %s", strerror(-e));
        return NULL;
    }
    char path[1024];
    snprintf(path, sizeof path, "%s", fdr_last_snapshot());
    if (stat(path, &st)) *wrong = oracle_wrong("%s: not there", path);
    else if (buffer && (uint64_t)st.st_size > buffer + FDRI_ARENA_TAIL_MAX_BYTES)
        *wrong = oracle_wrong("P1: %lld bytes from a buffer of %llu", (long long)st.st_size,
                              (unsigned long long)buffer);
    else if ((st.st_mode & 0777) != 0600) *wrong = oracle_wrong("%s: mode %o", path, (unsigned)st.st_mode & 0777);
    enum fdr_verdict verdict = fdr_file_open(path, &f, message, sizeof message);
    if (!*wrong && (verdict != FDR_WHOLE || fdr_file_verify(f) != FDR_WHOLE))
        *wrong = oracle_wrong("not whole: %s%s%s", message, f && fdr_file_damage_count(f) ? "; " : "",
                              f && fdr_file_damage_count(f) ? fdr_file_damage(f, 0) : "");
    unlink(path);
    if (*wrong && f) fdr_file_close(f), f = NULL;
    return f;
}

#endif
