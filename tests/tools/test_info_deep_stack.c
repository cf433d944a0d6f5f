/* SPDX-License-Identifier: MIT */
/* ctest: label=tools timeout=60
 * `fdr info` folds the stack of a recursion a thousand calls deep into one readable line. A snapshot without a reason,
 * as older versions wrote it, must not be taken for a recording that is still being written. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "format/arena/arena.h"
#include "format/arena/checks.h"

static char folder[] = "/tmp/fdr-test-open-XXXXXX";

static fdr_region region(const char *kind, int number)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, number);
    return fdr_region_define(name, NULL, 0);
}

/* Opens main, one function 500 times, then two that call each other 100 times. */
static void record(void)
{
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "open",
                                .buffer = "4M",
                                .arena = "anonymous",
                                .signal = "none",
                                .dir = folder};
    uint64_t now = 1000;
    assert(fdr_init(&config) == 0);
    fdr_enter_at(region("main", 0), now);
    for (int i = 0; i < 500; i++) fdr_enter_at(region("deep", 0), now += 10);
    for (int i = 0; i < 200; i++) fdr_enter_at(region("turn", i % 2), now += 10);
    assert(fdr_snapshot("open") == 0);
}

/* Returns true if a line of the command's output for the file contains `wanted`. */
static bool says(const char *verb, const char *path, const char *wanted)
{
    const char *build = getenv("FDR_BUILD");
    char command[512], line[16384];
    bool found = false;
    snprintf(command, sizeof command, "%s/bin/fdr %s %s", build ? build : ".", verb, path);
    FILE *said = popen(command, "r");
    assert(said);
    while (fgets(line, sizeof line, said)) found |= strstr(line, wanted) != NULL;
    return pclose(said) == 0 && found;
}

/* Removes the reason, as in snapshots of older versions. */
static void take_reason(const char *path)
{
    union {
        uint8_t bytes[FDRI_ARENA_SUPERBLOCK_BYTES];
        struct fdri_arena_superblock fields;
    } header;
    struct fdri_arena_spare spare;
    FILE *f = fopen(path, "r+");
    assert(f && fread(&header, sizeof header, 1, f) == 1);
    memcpy(&spare, header.bytes + FDRI_ARENA_SPARE_OFF, sizeof spare);
    memset(header.fields.reason, 0, sizeof header.fields.reason);
    fdri_arena_spare_finish(&header, &spare);
    assert(fseek(f, 0, SEEK_SET) == 0 && fwrite(&header, sizeof header, 1, f) == 1 && fclose(f) == 0);
}

static void without_reason(void)
{
    assert(fdr_snapshot("") == 0);
    assert(says("info", fdr_last_snapshot(), "why        api"));
    take_reason(fdr_last_snapshot());
    assert(says("info", fdr_last_snapshot(),
                "why        the process ended by an unseen cause, no handler ran: SIGKILL, the OOM killer or _exit"));
    assert(says("list", folder, "left "));
    unlink(fdr_last_snapshot());
}

/* A missing file is named in the message, whatever its name is: empty, or itself a part of the message. */
static void names_what_is_not_there(const char *path, const char *wanted)
{
    const char *build = getenv("FDR_BUILD");
    char command[512], line[512] = "";
    snprintf(command, sizeof command, "cd %s && %s/bin/fdr info '%s' 2>&1", folder, build ? build : ".", path);
    FILE *said = popen(command, "r");
    assert(said && fgets(line, sizeof line, said));
    assert(pclose(said) != 0 && strstr(line, wanted));
}

int main(void)
{
    const char *build = getenv("FDR_BUILD");
    char command[512], line[16384], *open = NULL;
    snprintf(command, sizeof command, "%s/bin/fdr", build ? build : ".");
    if (access(command, X_OK) != 0) return 77;
    assert(mkdtemp(folder));
    record();
    snprintf(command, sizeof command, "%s/bin/fdr info %s", build ? build : ".", fdr_last_snapshot());
    FILE *said = popen(command, "r");
    assert(said);
    while (!open && fgets(line, sizeof line, said)) open = strstr(line, "    open    ");
    while (fgetc(said) != EOF) continue;
    int status = pclose(said);
    unlink(fdr_last_snapshot());
    without_reason();
    names_what_is_not_there("", "fdr: \"\": cannot open");
    names_what_is_not_there("e", "fdr: e: cannot open");
    fdr_finalize();
    rmdir(folder);
    assert(status == 0 && open);
    fputs(open, stdout);
    assert(strstr(open, " main0 > deep0 (500 times) > turn0 > turn1 > "));
    assert(strstr(open, " more ... > turn0 > turn1 > "));
    assert(strlen(open) < 1000 && !strcmp(open + strlen(open) - 7, " turn1\n"));
    return 0;
}
