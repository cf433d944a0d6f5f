/* SPDX-License-Identifier: MIT */
/* fdr: reads recordings. Each verb has one file in this folder. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/verbs.h"

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct verb verbs[] = {
    {"info", verb_info, "a recording's origin, reason, contents and gaps"},
    {"check", verb_check, "verify everything: 0 whole, 1 damaged, 2 not readable"},
    {"dump", verb_dump, "the events in time order"},
    {"stats", verb_stats, "exact totals by region, path, class, depth or location"},
    {"counters", verb_counters, "which counters work on this machine; rates of those in a recording"},
    {"tree", verb_tree, "the call tree with inclusive and exclusive time"},
    {"messages", verb_messages, "messages between ranks: which send belongs to which receive"},
    {"suggest", verb_suggest, "functions to leave out: what that removes of events and of time"},
    {"samples", verb_samples, "the samples by function, region, line, stack or thread"},
    {"html", verb_html, "one page to look at, offline: what happened, and a timeline down to the call"},
    {"export", verb_export, "write for another viewer; --list names the formats"},
    {"findings", verb_findings, "what stands out, with evidence, and what cannot be judged"},
    {"outliers", verb_outliers, "calls unlike their region's own distribution"},
    {"crash", verb_crash, "the post-mortem: cause, place, the time before; of many, the first death"},
    {"recover", verb_recover, "rebuild the readable part of a damaged file"},
    {"replay", verb_replay, "drive the real recorder with recorded event streams"},
    {"snapshot", verb_snapshot, "take a snapshot of a running, hung or stopped process from outside"},
    {"top", verb_top, "watch a running process: open regions, rates, buffer, ledger"},
    {"run", verb_run, "run a program and keep its recording if it is killed"},
    {"collect", verb_collect, "move recordings of dead processes out of the live directory"},
    {"gc", verb_gc, "remove recordings by age and size"},
    {"hang", verb_hang, "stuck threads: where, since when; processes elsewhere or missing"},
    {"list", verb_list, "live and left-behind recordings on this machine"},
    {"version", verb_version, "version of the command and of its libraries"},
};
static const size_t verb_count = sizeof verbs / sizeof verbs[0];

static void usage(FILE *to)
{
    fputs("usage: fdr FILE, for its story: what happened, what stands out, what to ask next; or\n"
          "usage: fdr VERB [OPTION...] [FILE...]\n\n",
          to);
    for (size_t i = 0; i < verb_count; i++) fprintf(to, "  %-9s %s\n", verbs[i].name, verbs[i].summary);
    fputs("\ncheck, crash, hang, html, export, messages and replay take several files, the other verbs that read one "
          "take one.\n"
          "`fdr VERB --help` lists a verb's options. Exit codes: 0 done, 1 done with damage or a hang found,\n"
          "2 could not, 64 wrong usage.\n",
          to);
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < verb_count; i++)
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    return NULL;
}

/* `fdr FILE` needs no verb: a file, or a process by its number. Of a file whose name is a verb, the verb wins. */
static bool is_recording(const char *text) { return access(text, F_OK) == 0 || process_named(text); }

static int help(void)
{
    usage(stdout);
    return finish_output();
}

/* Handles SIGBUS: finished recordings are read through a mapping, and a file truncated meanwhile or a failing disk
 * raises it. */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    static const char line[] = "fdr: the file became shorter or unreadable while it was read\n";
    (void)context;
    if (info->si_code != BUS_ADRERR) { /* a fault of another kind: let it happen */
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        return;
    }
    ssize_t ignored = write(STDERR_FILENO, line, sizeof line - 1);
    (void)ignored;
    _exit(COULD_NOT);
}

/* Ends the program if memory is short: a JSON result with missing parts would be wrong. */
static void *memory_or_none(size_t bytes)
{
    void *p = malloc(bytes);
    if (p || !bytes) return p;
    complain("out of memory");
    _exit(COULD_NOT);
}

static void look_at_environment(void)
{
    const char *symbols = getenv("FDR_SYMBOLS");
    if (symbols && *symbols && strcmp(symbols, "0") != 0 && strcmp(symbols, "1") != 0)
        complain("FDR_SYMBOLS=%.200s: known: 0, 1; using 1", plain_name(symbols));
}

int main(int argc, char **argv)
{
    char name[64];
    json_set_alloc_funcs(memory_or_none, free);
    sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, NULL);
    if (argc < 2) {
        usage(stderr);
        return USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) return help();
    if (strcmp(argv[1], "--version") == 0) argv[1] += 2;
    const struct verb *verb = find_verb(argv[1]);
    look_at_environment();
    if (!verb && is_recording(argv[1])) return verb_story(argc, argv);
    if (!verb) {
        complain("no verb '%s', nor a file of this name; `fdr --help` lists the verbs", argv[1]);
        return USAGE;
    }
    snprintf(name, sizeof name, "fdr %s", verb->name);
    argv[1] = name; /* the program's name in messages of argp */
    return verb->run(argc - 1, argv + 1);
}
