/* SPDX-License-Identifier: MIT */
/* The buffered writer of the converters: output files, integers, JSON strings and UTF-8. */
#include "convert/convert_text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void flush(struct fdri_convert_text *text)
{
    size_t done = 0;
    while (done < text->used && !text->error) {
        ssize_t n = write(text->fd, text->buffer + done, text->used - done);
        if (n >= 0) done += (size_t)n;
        else if (errno != EINTR) text->error = errno;
    }
    text->used = 0;
}

/* Opens a new file under a temporary name beside its final one. O_EXCL: neither another writer's file nor a link.
 * Returns -1 with errno. */
static int open_part(struct fdri_convert_text *t)
{
    size_t bytes = strlen(t->path) + sizeof ".4294967295.999.part";
    int fd = -1;
    t->part = malloc(bytes);
    for (unsigned n = 0; t->part && fd < 0 && n < 1000; n++) {
        snprintf(t->part, bytes, "%s.%u.%u.part", t->path, (unsigned)getpid(), n);
        fd = open(t->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

/* A regular file gets its name when it is whole. Other targets (a pipe, a link) are written in place. "-" is a copy
 * of standard output, at its present position. */
static int open_output(struct fdri_convert_text *t)
{
    struct stat s;
    if (strcmp(t->path, "-") == 0) return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (lstat(t->path, &s) ? errno == ENOENT : S_ISREG(s.st_mode)) return open_part(t);
    return open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static void write_out(struct fdri_convert_text *t)
{
    free(t->part);
    free(t->path);
    free(t);
}

int fdri_convert_text_open(struct fdri_convert_text **text, const char *path)
{
    struct fdri_convert_text *t = malloc(sizeof *t);
    if (!t) return -ENOMEM;
    t->error = 0;
    t->used = 0;
    t->path = strdup(path);
    t->part = NULL;
    t->fd = t->path ? open_output(t) : -1;
    if (t->fd < 0) {
        int error = t->path ? errno : ENOMEM;
        write_out(t);
        return -error;
    }
    *text = t;
    return 0;
}

int fdri_convert_text_close(struct fdri_convert_text *text, int status)
{
    flush(text);
    if (close(text->fd) != 0 && !text->error) text->error = errno;
    if (!status) status = -text->error;
    if (text->part && !status && rename(text->part, text->path)) status = -errno;
    if (text->part && status) unlink(text->part);
    write_out(text);
    return status;
}

void fdri_convert_text_bytes(struct fdri_convert_text *text, const char *bytes, size_t count)
{
    while (count > 0) {
        if (text->used == FDRI_CONVERT_TEXT_BYTES) flush(text);
        size_t part = FDRI_CONVERT_TEXT_BYTES - text->used;
        if (part > count) part = count;
        memcpy(text->buffer + text->used, bytes, part);
        text->used += part;
        bytes += part;
        count -= part;
    }
}

void fdri_convert_text_string(struct fdri_convert_text *text, const char *string)
{
    fdri_convert_text_bytes(text, string, strlen(string));
}

void fdri_convert_text_u64(struct fdri_convert_text *text, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    fdri_convert_text_bytes(text, digits + at, sizeof digits - at);
}

void fdri_convert_text_i64(struct fdri_convert_text *text, int64_t value)
{
    if (value < 0) fdri_convert_text_bytes(text, "-", 1);
    fdri_convert_text_u64(text, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* The caller's locale may have another decimal point, even one of several bytes. */
static void point_of_c(char *digits)
{
    size_t before = strspn(digits, "-0123456789"), point = strcspn(digits + before, "0123456789e");
    if (point == 0) return;
    digits[before] = '.';
    memmove(digits + before + 1, digits + before + point, strlen(digits + before + point) + 1);
}

void fdri_convert_text_f64(struct fdri_convert_text *text, double value)
{
    char digits[40];
    if (!isfinite(value)) {
        fdri_convert_text_string(text, "null");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) break;
    }
    point_of_c(digits);
    fdri_convert_text_string(text, digits);
}

size_t fdri_convert_text_sequence(const void *at)
{
    const unsigned char *s = at;
    if (s[0] < 0x80) return 1;
    size_t count = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (size_t i = 1; i < count; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
    if (s[0] == 0xed && s[1] > 0x9f) return 0;
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;
    if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
    return count;
}

size_t fdri_convert_text_plain(const void *at)
{
    const unsigned char *s = at;
    bool control = s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
    bool turns = s[0] == 0xe2 &&
                 ((s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae) || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
    return control || turns ? 0 : fdri_convert_text_sequence(s);
}

/* Escapes a character of `count` bytes, at most three. */
static void escaped(struct fdri_convert_text *text, const unsigned char *s, size_t count)
{
    char code[8];
    unsigned c = s[0];
    if (count == 2) c = (s[0] & 31u) << 6 | (s[1] & 63u);
    if (count == 3) c = (s[0] & 15u) << 12 | (s[1] & 63u) << 6 | (s[2] & 63u);
    if (c == '"' || c == '\\') snprintf(code, sizeof code, "\\%c", c);
    else snprintf(code, sizeof code, "\\u%04x", c & 0xffffu);
    fdri_convert_text_string(text, code);
}

void fdri_convert_text_json(struct fdri_convert_text *text, const char *string)
{
    const unsigned char *s = (const unsigned char *)string;
    fdri_convert_text_bytes(text, "\"", 1);
    while (*s) {
        size_t count = fdri_convert_text_sequence(s);
        if (count == 0) fdri_convert_text_string(text, "\xef\xbf\xbd");
        else if (*s == '"' || *s == '\\' || !fdri_convert_text_plain(s)) escaped(text, s, count);
        else fdri_convert_text_bytes(text, (const char *)s, count);
        s += count ? count : 1;
    }
    fdri_convert_text_bytes(text, "\"", 1);
}
