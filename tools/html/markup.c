/* SPDX-License-Identifier: MIT */
/* Text, base64 and gzip in HTML. Names come from programs that nobody checked: nothing here writes one unescaped. */
#include "tools/html/page.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void character(FILE *to, const char *text, size_t bytes)
{
    switch (text[0]) {
    case '&': fputs("&amp;", to); return;
    case '<': fputs("&lt;", to); return;
    case '>': fputs("&gt;", to); return;
    case '"': fputs("&quot;", to); return;
    case '\'': fputs("&#39;", to); return;
    default: fwrite(text, 1, bytes, to);
    }
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (size_t step; *text; text += step ? step : 1, count++) step = plain_bytes(text);
    return count;
}

void html_text(FILE *to, const char *text, unsigned most)
{
    size_t all = characters(text), head = most / 2, tail = most - head;
    for (size_t n = 0, step; *text; text += step ? step : 1, n++) {
        step = plain_bytes(text);
        if (most && all > most && n >= head && n < all - tail) {
            if (n == head) fputs("\xe2\x80\xa6", to);
        } else if (step) {
            character(to, text, step);
        } else {
            fputs("\xef\xbf\xbd", to);
        }
    }
}

void html_name(FILE *to, const char *name)
{
    fputs("<bdi>", to);
    html_text(to, *name ? name : "\"\"", 90);
    fputs("</bdi>", to);
}

void html_format(FILE *to, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    html_text(to, text, 0);
}

static size_t base64(FILE *to, const unsigned char *bytes, size_t count)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t done = 0;
    char text[4096];
    size_t used = 0;
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t v = (uint32_t)bytes[i] << 16 | (uint32_t)(left > 1 ? bytes[i + 1] : 0) << 8 |
                     (left > 2 ? bytes[i + 2] : 0);
        text[used++] = digit[v >> 18];
        text[used++] = digit[v >> 12 & 63];
        text[used++] = left > 1 ? digit[v >> 6 & 63] : '=';
        text[used++] = left > 2 ? digit[v & 63] : '=';
        if (used < sizeof text && i + 3 < count) continue;
        done += fwrite(text, 1, used, to);
        used = 0;
    }
    return done;
}

/* gzip, to be freed; NULL: no memory. */
static unsigned char *gzip(const void *bytes, size_t count, size_t *packed)
{
    z_stream z = {0};
    const int gzip_format = 16;
    if (deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + gzip_format, 9, Z_DEFAULT_STRATEGY) != Z_OK) return NULL;
    size_t room = deflateBound(&z, count);
    unsigned char *out = malloc(room);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (unsigned)count;
    z.next_out = out;
    z.avail_out = (unsigned)room;
    bool done = out && deflate(&z, Z_FINISH) == Z_STREAM_END;
    *packed = room - z.avail_out;
    deflateEnd(&z);
    if (!done) free(out), out = NULL;
    return out;
}

/* Takes the packed bytes. */
static size_t block(FILE *to, const char *attributes, unsigned char *packed, size_t count)
{
    if (!packed) return 0;
    fprintf(to, "<script type=\"text/plain\" %s>", attributes);
    size_t done = base64(to, packed, count);
    fputs("</script>\n", to);
    free(packed);
    return done;
}

size_t html_block(FILE *to, const char *attributes, const void *bytes, size_t count)
{
    size_t packed_bytes = 0;
    unsigned char *packed = count < UINT32_MAX / 2 ? gzip(bytes, count, &packed_bytes) : NULL;
    return block(to, attributes, packed, packed_bytes);
}

/* ---- files ---- */

struct piece {
    unsigned char bytes[1 << 20];
    size_t count, packed_bytes;
    unsigned char *packed;
};

static void *pack_piece(void *context)
{
    struct piece *p = context;
    p->packed = p->count ? gzip(p->bytes, p->count, &p->packed_bytes) : NULL;
    return NULL;
}

static void pack_both(struct piece piece[2])
{
    pthread_t thread;
    bool two = piece[1].count && pthread_create(&thread, NULL, pack_piece, &piece[1]) == 0;
    pack_piece(&piece[0]);
    if (two) pthread_join(thread, NULL);
    else pack_piece(&piece[1]);
}

static bool write_piece(FILE *to, const char *attributes, struct piece *p)
{
    char all[128];
    if (!p->count) return true;
    snprintf(all, sizeof all, "%.80s data-bytes=\"%zu\"", attributes, p->count);
    return block(to, all, p->packed, p->packed_bytes) != 0;
}

bool html_file(FILE *to, const char *attributes, FILE *from)
{
    struct piece *piece = malloc(2 * sizeof *piece);
    bool done = piece != NULL;
    while (done) {
        for (int i = 0; i < 2; i++) piece[i].count = fread(piece[i].bytes, 1, sizeof piece[i].bytes, from);
        if (!piece[0].count) break;
        pack_both(piece);
        bool first = write_piece(to, attributes, &piece[0]);
        done = write_piece(to, attributes, &piece[1]) && first;
    }
    free(piece);
    return done && !ferror(from);
}
