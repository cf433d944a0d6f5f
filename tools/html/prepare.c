/* SPDX-License-Identifier: MIT */
/* The long work, for two processors: the overviews of all files, and at the same time their flame graphs. */
#include "tools/html/page.h"

#include <pthread.h>
#include <stdlib.h>

static void *make_overviews(void *context)
{
    struct page *page = context;
    for (size_t i = 0; i < page->files; i++)
        page->prepared[i].overview = page_overview(page, i, &page->prepared[i].overview_bytes);
    return NULL;
}

static void make_flames(struct page *page)
{
    for (size_t i = 0; i < page->files; i++) {
        struct fdr_file *file = page->death[i].file;
        if (page->line[i]) continue;
        const struct fdr_file_info *info = fdr_file_info(file);
        struct view_window w = {.location = UINT32_MAX,
                                .cells = 1,
                                .base_ns = info->first_ns,
                                .from_ns = info->first_ns,
                                .to_ns = info->last_ns};
        if (!view_flame(file, &w, &page->prepared[i].flame)) view_nodes_free(&page->prepared[i].flame);
    }
}

bool page_prepare(struct page *page)
{
    pthread_t thread;
    page->findings = page_findings_of(page);
    page->messages = page->findings ? page_messages_of(page) : NULL;
    if (!page->messages) return false;
    page_choose(page);
    bool two = pthread_create(&thread, NULL, make_overviews, page) == 0;
    bool whole = true;
    make_flames(page);
    if (two) pthread_join(thread, NULL);
    else make_overviews(page);
    for (size_t i = 0; i < page->files; i++) whole = whole && page->prepared[i].overview;
    return whole;
}

void page_forget(struct page *page)
{
    for (size_t i = 0; page->prepared && i < page->files; i++) {
        free(page->prepared[i].overview);
        view_nodes_free(&page->prepared[i].flame);
    }
    free(page->prepared);
    page_findings_free(page->findings);
    page_messages_free(page->messages);
}
