/* SPDX-License-Identifier: MIT */
/* The order of the page: facts first, then overview, scripts and recordings, so that a browser shows
 * each as it comes. */
#include "tools/html/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/live_files.h"
#include "tools/html/bundle.h"

static void write_bundle(FILE *to, const char *before, const struct bundle *b, const char *after)
{
    fputs(before, to);
    fwrite(b->bytes, 1, b->count, to);
    fputs(after, to);
}

static void write_head(const struct page *page, FILE *to)
{
    char who[128];
    story_who(page->death[page->culprit].file, who, sizeof who);
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", to);
    write_bundle(to, "<meta http-equiv=\"Content-Security-Policy\" content=\"", &bundle_hashes, "\">\n");
    fputs("<meta name=\"viewport\" content=\"width=device-width\">\n<title>fdr: ", to);
    html_text(to, who, 80);
    fputs("</title>\n", to);
    write_bundle(to, "<style>", &bundle_page_css, "</style>\n</head>\n<body>\n");
}

static bool write_data(const struct page *page, FILE *to)
{
    json_t *data = page_data(page);
    char *text = json_dumps(data, JSON_COMPACT);
    bool done = text && html_block(to, "id=\"data\"", text, strlen(text));
    free(text);
    json_decref(data);
    return done;
}

static bool write_overviews(const struct page *page, FILE *to)
{
    char attributes[48];
    size_t bytes;
    void *messages = page_messages_pack(page, &bytes);
    bool done = messages && html_block(to, "id=\"messages\"", messages, bytes);
    free(messages);
    for (size_t i = 0; i < page->files && done; i++) {
        snprintf(attributes, sizeof attributes, "id=\"overview%zu\"", i);
        done = html_block(to, attributes, page->prepared[i].overview, page->prepared[i].overview_bytes) != 0;
    }
    return done;
}

static void write_scripts(FILE *to)
{
    html_block(to, "id=\"worker\"", bundle_worker_js.bytes, bundle_worker_js.count);
    html_block(to, "id=\"reader\"", bundle_reader_wasm.bytes, bundle_reader_wasm.count);
    write_bundle(to, "<script>", &bundle_page_js, "</script>\n");
}

/* In pieces that the page drops as it unpacks them. */
static bool write_recording(const struct page *page, size_t index, FILE *to)
{
    char attributes[48];
    FILE *from = fopen(page->death[index].path, "rb");
    snprintf(attributes, sizeof attributes, "data-file=\"%zu\"", index);
    bool done = from && html_file(to, attributes, from);
    if (from) fclose(from);
    return done;
}

int page_write(struct page *page, FILE *to)
{
    if (!page_prepare(page)) {
        complain("out of memory");
        return COULD_NOT;
    }
    write_head(page, to);
    first_screen(page, to);
    fputs("<div id=\"app\"></div>\n", to);
    bool done = write_data(page, to) && write_overviews(page, to);
    write_scripts(to);
    for (size_t i = 0; i < page->files && done; i++)
        if (page->embedded[i]) done = write_recording(page, i, to);
    write_bundle(to, "<!--\n", &bundle_licences_txt, "-->\n</body>\n</html>\n");
    if (done && !ferror(to)) return DONE;
    complain("the page could not be written: %s", errno ? strerror(errno) : "out of memory");
    return COULD_NOT;
}
