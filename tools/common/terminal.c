/* SPDX-License-Identifier: MIT */
/* Width, colour and pager of standard output. */
#include "tools/common/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LABEL = 11, LEAST_COLUMNS = 40, PIPE_COLUMNS = 100 };

static bool paged; /* the pager's terminal counts */

static bool is_terminal(void) { return paged || isatty(STDOUT_FILENO); }

unsigned terminal_columns(void)
{
    const char *given = getenv("COLUMNS");
    unsigned long columns = given ? strtoul(given, NULL, 10) : 0;
    struct winsize w;
    if (!columns && is_terminal() && ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0) columns = w.ws_col;
    if (!columns) columns = PIPE_COLUMNS;
    return columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns > 1000 ? 1000 : (unsigned)columns;
}

unsigned table_columns(void)
{
    const char *given = getenv("COLUMNS");
    return is_terminal() || (given && *given) ? terminal_columns() : 0;
}

bool terminal_colours(void)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    return is_terminal() && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

const char *bold(void) { return terminal_colours() ? "\033[1m" : ""; }
const char *plain_again(void) { return terminal_colours() ? "\033[0m" : ""; }

/* ---- the pager ---- */

static pid_t pager;

/* The pager ends when its input does. */
static void wait_for_pager(void)
{
    fflush(stdout);
    close(STDOUT_FILENO);
    while (waitpid(pager, NULL, 0) < 0 && errno == EINTR) {}
}

static const char *pager_command(void)
{
    const char *own = getenv("FDR_PAGER"), *common = getenv("PAGER");
    const char *command = own ? own : common ? common : "less";
    return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

void start_pager(void)
{
    int ends[2];
    const char *command = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? pager_command() : NULL;
    if (!command || pipe(ends) != 0) return;
    pager = fork();
    if (pager == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("LESS", "FRX", 0); /* nothing to page if it fits; colours pass */
        execlp("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    if (pager > 0) {
        dup2(ends[1], STDOUT_FILENO);
        paged = true;
        atexit(wait_for_pager);
    }
    close(ends[1]);
}

/* ---- text ---- */

/* Bytes of the longest part of `text` that fits, at a blank if there is one. */
static size_t part_that_fits(const char *text, unsigned columns)
{
    size_t bytes = 0, blank = 0;
    unsigned used = 0;
    for (; text[bytes]; bytes++) {
        if (((unsigned char)text[bytes] & 0xc0) != 0x80 && used++ == columns) return blank ? blank : bytes;
        if (text[bytes] == ' ') blank = bytes;
    }
    return bytes;
}

void print_wrapped(const char *label, const char *text)
{
    unsigned columns = terminal_columns() - LABEL;
    for (bool first = true; first || *text; first = false) {
        size_t bytes = part_that_fits(text, columns);
        printf("%s%-*s%s%.*s\n", first ? bold() : "", LABEL, first ? label : "", first ? plain_again() : "", (int)bytes,
               text);
        text += bytes;
        while (*text == ' ') text++;
    }
}

void print_hint(const char *const *verbs, const char *path)
{
    if (!is_terminal()) return;
    printf("%snext%s", bold(), plain_again());
    for (size_t i = 0; verbs[i]; i++) printf("%s  fdr %s %s", i ? "," : "", verbs[i], path);
    putchar('\n');
    fflush(stdout);
}

const char *spark(double value, double greatest)
{
    static const char *const height[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    if (!(value > 0) || !(greatest > 0)) return " ";
    int at = (int)(value / greatest * 7.999);
    return height[at > 7 ? 7 : at];
}
