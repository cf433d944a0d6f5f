/* SPDX-License-Identifier: MIT */
/* ctest: label=tools timeout=60
 * Call paths of a program that calls very many functions from one place. An algorithm whose time grows with the square
 * of their number exceeds this test's timeout. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>

enum { SIBLINGS = 200000 };

static const char *fdr; /* the command */
static char folder[] = "/tmp/fdr-test-siblings-XXXXXX";

/* Calls each function twice; the second round finds the existing paths. */
static void record(void)
{
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "siblings",
                                .buffer = "128M",
                                .arena = "anonymous",
                                .signal = "none",
                                .dir = folder};
    static fdr_region region[SIBLINGS];
    uint64_t now = 1000;
    char name[32];
    assert(fdr_init(&config) == 0);
    for (int i = 0; i < SIBLINGS; i++) {
        snprintf(name, sizeof name, "sibling_%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
        assert(region[i]);
    }
    for (int i = 0; i < 2 * SIBLINGS; i++) {
        fdr_enter_at(region[i % SIBLINGS], now += 10);
        fdr_leave_at(region[i % SIBLINGS], now += 10);
    }
    assert(fdr_snapshot("siblings") == 0);
}

/* Counts the lines of the command's output that contain `text`. */
static int lines_with(const char *text, const char *verb)
{
    char command[512], line[1024];
    int count = 0;
    snprintf(command, sizeof command, "%s %s %s", fdr, verb, fdr_last_snapshot());
    FILE *said = popen(command, "r");
    assert(said);
    while (fgets(line, sizeof line, said)) count += strstr(line, text) != NULL;
    assert(pclose(said) == 0);
    return count;
}

int main(void)
{
    static char command[512];
    const char *build = getenv("FDR_BUILD");
    snprintf(command, sizeof command, "%s/bin/fdr", build ? build : ".");
    fdr = command;
    if (access(fdr, X_OK) != 0) return 77;
    assert(mkdtemp(folder));
    record();
    assert(lines_with("\"calls\": 2, ", "tree --json") == SIBLINGS);
    assert(lines_with(" 2  sibling_", "stats --all --by path") == SIBLINGS);
    assert(lines_with("sibling_", "export --to folded -o -") == SIBLINGS);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    rmdir(folder);
    return 0;
}
