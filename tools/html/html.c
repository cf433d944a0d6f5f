/* SPDX-License-Identifier: MIT */
/* fdr html: one page that shows recordings, offline. */
#include "tools/html/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/short_names.h"

struct arguments {
    struct file_list files;
    const char *out;
    uint64_t most_bytes;
    bool redact;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "The page; `-`: standard output", 0},
    {"size", 's', "SIZE", 0,
     "Show as many recordings in full as fit into a page of this size (200M); the others are a line each", 0},
    {"redact", 'r', 0, 0, "Leave out host, paths, command line, settings and the recordings themselves", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'o': a->out = text; return 0;
    case 's':
        if (!parse_size(text, &a->most_bytes)) argp_error(state, "--size: not a size: '%s'", text);
        return 0;
    case 'r': a->redact = true; return 0;
    case ARGP_KEY_END:
        if (a->files.count && !a->out) argp_error(state, "-o FILE is needed");
        return some_files(state, key, text, &a->files);
    default: return some_files(state, key, text, &a->files);
    }
}

static void find_culprit(struct page *page)
{
    page->story = story_of(page->death, page->files);
    page->died = page->story.died;
    page->culprit = (size_t)(page->story.death - page->death);
}

/* The time line begins with the oldest event of all. */
static void find_zero(struct page *page)
{
    page->zero_ns = UINT64_MAX;
    for (size_t i = 0; i < page->files; i++) {
        const struct fdr_file_info *info = fdr_file_info(page->death[i].file);
        uint64_t start = run_start(page->death[i].file);
        if (!start || start > info->first_ns) start = info->first_ns;
        uint64_t real = start + (uint64_t)info->realtime_offset_ns;
        if (real < page->zero_ns) page->zero_ns = real;
    }
}

/* Mode 0600: the page holds what the recordings hold. */
static int write_file(struct page *page, const char *out)
{
    size_t room = strlen(out) + 8;
    char *part = malloc(room);
    if (!part) return COULD_NOT;
    snprintf(part, room, "%s.part", out);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *to = fd >= 0 ? fdopen(fd, "w") : NULL;
    int status = to ? page_write(page, to) : COULD_NOT;
    bool written = to && fclose(to) == 0 && status == DONE && rename(part, out) == 0;
    if (!written) {
        complain("%s: %s", out, strerror(errno));
        if (to) unlink(part);
        status = COULD_NOT;
    }
    free(part);
    return status;
}

static int write_page(struct page *page, const struct arguments *a)
{
    find_culprit(page);
    find_zero(page);
    if (strcmp(a->out, "-")) return write_file(page, a->out);
    return worse(page_write(page, stdout), finish_output());
}

int verb_html(int argc, char **argv)
{
    static const struct argp argp = {options,
                                     parse,
                                     "FILE...",
                                     "One page that shows the recordings, offline: what happened, the last moments, "
                                     "open calls, findings, and a timeline of the whole run down to the single call. "
                                     "It opens from disk in any current browser and contains all it needs.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct arguments a = {.most_bytes = 200u << 20};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    if (is_input(a.out, a.files.path, a.files.count)) {
        free(a.files.path);
        return USAGE;
    }
    struct page page = {.embedded = calloc(a.files.count, sizeof *page.embedded),
                        .line = calloc(a.files.count, sizeof *page.line),
                        .prepared = calloc(a.files.count, sizeof *page.prepared),
                        .redact = a.redact,
                        .most_bytes = a.most_bytes};
    page.death = open_deaths(&a.files, &page.files, &status);
    if (!page.embedded || !page.line || !page.prepared) status = COULD_NOT;
    else if (page.files) status = worse(status, write_page(&page, &a));
    page_forget(&page);
    for (size_t i = 0; i < page.files; i++)
        status = worse(status, close_recording(page.death[i].file, page.death[i].path, true));
    free(page.death);
    free(page.embedded);
    free(page.line);
    return status;
}
