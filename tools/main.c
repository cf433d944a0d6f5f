/* SPDX-License-Identifier: MIT */
/* fdr: reads recordings. Each verb has one file in this folder. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/terminal.h"
#include "tools/common/verbs.h"

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
    bool pages; /* its output may be long: through a pager on terminals */
};

static int verb_completion(int argc, char **argv);

static const struct verb verbs[] = {
    {"info", verb_info, "a recording's origin, reason, contents and gaps", true},
    {"check", verb_check, "verify everything: 0 whole, 1 damaged, 2 not readable", true},
    {"dump", verb_dump, "the events in time order", true},
    {"stats", verb_stats, "exact totals by region, path, class, depth or location", true},
    {"counters", verb_counters, "which counters work on this machine; rates of those in a recording", true},
    {"tree", verb_tree, "the call tree with inclusive and exclusive time", true},
    {"messages", verb_messages, "messages between ranks: which send belongs to which receive", true},
    {"suggest", verb_suggest, "functions to leave out: what that removes of events and of time", true},
    {"samples", verb_samples, "the samples by function, region, line, stack or thread", true},
    {"html", verb_html, "one page to look at, offline: what happened, and a timeline down to the call", false},
    {"export", verb_export, "write for another viewer; --list names the formats", false},
    {"sql", verb_sql, "questions in SQL: tables of calls, totals, messages, samples, ...", true},
    {"findings", verb_findings, "what stands out, with evidence, and what cannot be judged", true},
    {"outliers", verb_outliers, "calls unlike their region's own distribution", true},
    {"crash", verb_crash, "the post-mortem: cause, place, the time before; of many, the first death", true},
    {"recover", verb_recover, "rebuild the readable part of a damaged file", false},
    {"replay", verb_replay, "drive the real recorder with recorded event streams", false},
    {"snapshot", verb_snapshot, "take a snapshot of a running, hung or stopped process from outside", false},
    {"top", verb_top, "watch a running process: open regions, rates, buffer, ledger", false},
    {"run", verb_run, "run a program and keep its recording if it is killed", false},
    {"collect", verb_collect, "move recordings of dead processes out of the live directory", false},
    {"gc", verb_gc, "remove recordings by age and size", false},
    {"hang", verb_hang, "of a job: who is behind, who waits; of a process: threads that stand", true},
    {"list", verb_list, "live and left-behind recordings on this machine", true},
    {"completion", verb_completion, "bash or zsh: what the shell needs to complete these verbs", false},
    {"version", verb_version, "version of the command and of its libraries", false},
};
static const size_t verb_count = sizeof verbs / sizeof verbs[0];

static void usage(FILE *to)
{
    fputs("usage: fdr FILE, for its story: what happened, what stands out, what to ask next; or\n"
          "usage: fdr VERB [OPTION...] [FILE...]\n\n",
          to);
    for (size_t i = 0; i < verb_count; i++) fprintf(to, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
    fputs("\nSeveral files are the ranks of a job: check, counters, crash, dump, export, findings, hang, html, info, "
          "messages,\n"
          "replay, samples, sql, stats and tree take them. The other verbs that read a file take one.\n"
          "`fdr VERB --help` lists a verb's options. Exit codes: 0 done, 1 done with damage or a hang found,\n"
          "2 could not, 3 a hang that cannot be judged, 64 wrong usage.\n",
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

/* ---- completion: from the table of verbs; the options of a verb are those of its --help ---- */

static void print_verbs(void)
{
    for (size_t i = 0; i < verb_count; i++) printf("%s%s", i ? " " : "", verbs[i].name);
}

static void bash_completion(void)
{
    printf("# fdr(1) in bash: source <(fdr completion bash)\n"
           "_fdr()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} verbs='");
    print_verbs();
    printf("'\n"
           "    if [ \"$COMP_CWORD\" = 1 ] && [[ $word != -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$verbs\" -- \"$word\") $(compgen -f -- \"$word\"))\n"
           "    elif [[ $word == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$(fdr \"${COMP_WORDS[1]}\" --help 2>/dev/null | grep -oE -- "
           "'--[a-z-]+')\" -- \"$word\"))\n"
           "    else\n"
           "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "    fi\n}\n"
           "complete -o filenames -F _fdr fdr\n");
}

static void zsh_completion(void)
{
    printf("#compdef fdr\n"
           "# fdr(1) in zsh: source <(fdr completion zsh)\n"
           "_fdr()\n{\n    local -a verbs options\n    verbs=(\n");
    for (size_t i = 0; i < verb_count; i++) {
        printf("        '%s:", verbs[i].name);
        for (const char *at = verbs[i].summary; *at; at++) {
            if (*at == '\'') printf("'\\''");
            else putchar(*at);
        }
        printf("'\n");
    }
    printf(
        "    )\n"
        "    if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
        "        _describe verb verbs\n        _files\n"
        "    elif [[ $words[CURRENT] == -* ]]; then\n"
        "        options=(${(f)\"$(fdr $words[2] --help 2>/dev/null | grep -oE -- '--[a-z-]+')\"})\n"
        "        compadd -- $options\n"
        "    else\n        _files\n    fi\n}\n"
        "if [[ ${funcstack[1]} == _fdr ]]; then _fdr \"$@\"; else compdef _fdr fdr; fi\n"); /* installed, or sourced */
}

static error_t parse_shell(int key, char *text, struct argp_state *state)
{
    const char **shell = state->input;
    if (key == ARGP_KEY_ARG && !*shell) *shell = text;
    else if (key == ARGP_KEY_END && (!*shell || (strcmp(*shell, "bash") != 0 && strcmp(*shell, "zsh") != 0)))
        argp_error(state, "for which shell, bash or zsh?");
    else return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    return 0;
}

static int verb_completion(int argc, char **argv)
{
    static const struct argp argp = {
        NULL, parse_shell, "bash|zsh", "Prints what the shell needs to complete: source <(fdr completion bash)",
        NULL, NULL,        NULL};
    const char *shell = NULL;
    parse_arguments(&argp, argc, argv, &shell);
    if (strcmp(shell, "bash") == 0) bash_completion();
    else zsh_completion();
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
    if (verb ? verb->pages : is_recording(argv[1])) start_pager();
    if (!verb && is_recording(argv[1])) return verb_story(argc, argv);
    if (!verb) {
        complain("no verb '%s', nor a file of this name; `fdr --help` lists the verbs", argv[1]);
        return USAGE;
    }
    snprintf(name, sizeof name, "fdr %s", verb->name);
    argv[1] = name; /* the program's name in messages of argp */
    return verb->run(argc - 1, argv + 1);
}
