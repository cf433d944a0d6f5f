/* SPDX-License-Identifier: MIT */
/* ctest: label=tools timeout=60
 * fdr info of a stack that recursion made a thousand calls deep is a line that can be read. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>

static char folder[] = "/tmp/fdr-test-open-XXXXXX";

static fdr_region region(const char *kind, int number)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, number);
    return fdr_region_define(name, NULL, 0);
}

/* main, one function 500 deep, then two that call each other: 2 * 100. */
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
    fdr_finalize();
    rmdir(folder);
    assert(status == 0 && open);
    fputs(open, stdout);
    assert(strstr(open, " main0 > deep0 (500 times) > turn0 > turn1 > "));
    assert(strstr(open, " more ... > turn0 > turn1 > "));
    assert(strlen(open) < 1000 && !strcmp(open + strlen(open) - 7, " turn1\n"));
    return 0;
}
