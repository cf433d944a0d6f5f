/* SPDX-License-Identifier: MIT */
/* The page's scripts, styles and reader: the files of web/bundle/, which the build puts into the command. */
#ifndef FDRI_TOOLS_HTML_BUNDLE_H
#define FDRI_TOOLS_HTML_BUNDLE_H

#include <stddef.h>

struct bundle {
    const unsigned char *bytes; /* a NUL follows */
    size_t count;
};
extern const struct bundle bundle_page_js, bundle_page_css, bundle_worker_js, bundle_reader_wasm;
/* The rest of the content security policy: hashes of page.js and page.css. The licences of what page.js contains. */
extern const struct bundle bundle_hashes, bundle_licences_txt;

#endif
