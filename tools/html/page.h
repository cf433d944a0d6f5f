/* SPDX-License-Identifier: MIT */
/* fdr html: one page that opens offline and contains the recordings, their overview and the reader itself.
 *
 *   html.c          the verb                      markup.c        text, base64 and gzip in HTML
 *   document.c      the order of the page         data.c          what the scripts know, as JSON
 *   prepare.c       what takes long, in threads
 *   overview.c      calls of the whole run        first_screen.c  facts as plain HTML
 *   page_findings.c what stands out, with its place
 *   page_messages.c messages with both ends      beside.c        the ranks side by side, by ordinals
 *   chosen_ranks.c  which ranks are shown in full, and which as a line
 *
 * Neighbours: view/ says what a window of time shows, tools/findings/ what stands out, tools/story/ what happened,
 * tools/hang/ who is behind; web/ holds the scripts. Recordings are read through fdr/reader.h alone. */
#ifndef FDRI_TOOLS_HTML_PAGE_H
#define FDRI_TOOLS_HTML_PAGE_H

#include <stdio.h>

#include "tools/crash.h"
#include "tools/findings/findings.h"
#include "tools/story/story.h"
#include "tools/html/view/view_window.h"

struct prepared { /* of one recording */
    uint32_t *overview;
    size_t overview_bytes;
    struct view_nodes flame; /* of the whole run; empty: out of memory */
};
struct page_findings;
struct page_messages;
struct page {
    struct death *death; /* one for each recording, in the order given */
    struct story story;
    size_t files;
    size_t culprit;      /* index: the first death, or the recording that the page is about */
    bool died;           /* culprit died */
    bool redact;         /* no host, paths, command line, settings */
    uint64_t most_bytes; /* recordings are embedded up to this size of the page */
    uint64_t zero_ns;    /* since 1970: 0 of the page's time line */
    bool *embedded;
    bool *line; /* shown as one line: the thread that recorded most, without details */
    struct prepared *prepared;
    struct page_findings *findings;
    struct page_messages *messages; /* NULL: out of memory */
    char verdict[800];              /* on an MPI job: who is behind, and what that is; "": nobody is */
};

/* ---- chosen_ranks.c ---- */
/* Sets embedded, line and verdict: the culprit, what stands out and one of each kind come first. */
void page_choose(struct page *page);

/* ---- prepare.c ---- */
/* False: out of memory. */
bool page_prepare(struct page *page);
void page_forget(struct page *page);

/* ---- document.c ---- */
/* Writes the page. DONE or COULD_NOT. */
int page_write(struct page *page, FILE *to);

/* ---- markup.c ---- */
/* Text in HTML: escaped; what is not UTF-8, controls and marks that turn the direction of text become U+FFFD. Longer
 * texts than `most` characters lose their middle; 0: no limit. */
void html_text(FILE *to, const char *text, unsigned most);
/* The same inside <bdi>, so that its direction ends with it. */
void html_name(FILE *to, const char *name);
void html_format(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3))); /* escaped as a whole */
/* <script type="text/plain" ATTRIBUTES> with the bytes, gzipped and in base64. Returns the bytes written; 0: failed. */
size_t html_block(FILE *to, const char *attributes, const void *bytes, size_t count);
/* The same for the rest of a file, in blocks of at most 1 MiB; two are packed at a time. data-bytes: of each,
 * unpacked. */
bool html_file(FILE *to, const char *attributes, FILE *from);

/* ---- data.c, overview.c ---- */
/* ns since the page's zero of a time of this file. */
double page_time(const struct page *page, size_t file, uint64_t ns);
/* The newest moment known of a recording; at least 1 ns after its first event. */
uint64_t page_end(const struct page *page, size_t file);
json_t *page_data(const struct page *page);
/* The index of the location with most time in recorded calls; of those without any, the first. */
size_t busiest_location(struct fdr_file *file);
/* The calls of all locations of a file as columns of u32, to be freed; docs/PAGE.md. NULL: out of memory. */
uint32_t *page_overview(const struct page *page, size_t file, size_t *bytes);

/* ---- page_messages.c ---- */
struct page_messages *page_messages_of(const struct page *page);
void page_messages_free(struct page_messages *messages);
/* Messages as columns, to be freed; docs/PAGE.md. NULL: out of memory. */
void *page_messages_pack(const struct page *page, size_t *bytes);
json_t *page_comms(const struct page *page); /* names, by the numbers in the columns */
/* The fate of a message of this file: "received by rank 3". text[160] */
const char *page_partner(const struct page *page, size_t file, const struct fdr_read_event *message, char *text);

/* ---- beside.c ---- */
/* Tables of the ranks beside the culprit, aligned by ordinals of collectives and messages. Nothing without MPI. */
void ranks_beside(const struct page *page, FILE *to);

/* ---- page_findings.c, first_screen.c ---- */

#define FINDING_OF_JOB SIZE_MAX
struct page_finding {
    struct finding finding;
    size_t file;
    bool of_job; /* between ranks: its sentence names them */
};
struct page_findings {
    struct page_finding *row; /* to be freed */
    size_t count;
    char not_judged[NOT_JUDGED][240];
    size_t not_judged_count;
};
/* NULL: out of memory. */
struct page_findings *page_findings_of(const struct page *page);
void page_findings_free(struct page_findings *findings);
/* " <a ...>show</a>", to the place in the timeline. */
void page_finding_link(const struct page *page, FILE *to, const struct page_finding *finding);
void first_screen(const struct page *page, FILE *to);

#endif
