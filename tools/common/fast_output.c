/* SPDX-License-Identifier: MIT */
/* One buffer for standard output, and its number formats. */
#include "tools/common/fast_output.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/common/verbs.h"

struct out out;

static int first_error;

static void put_bytes(const char *bytes, size_t count)
{
    while (count > 0 && !out.failed) {
        ssize_t n = write(STDOUT_FILENO, bytes, count);
        if (n >= 0) {
            bytes += n;
            count -= (size_t)n;
        } else if (errno != EINTR) {
            out.failed = true;
            first_error = errno;
        }
    }
}

void out_flush(void)
{
    put_bytes(out.buffer, out.used);
    out.used = 0;
}

int out_finish(void)
{
    out_flush();
    if (!out.failed) return DONE;
    complain("standard output: %s", strerror(first_error));
    return COULD_NOT;
}

void out_long(const char *bytes, size_t count)
{
    if (out.used + count > OUT_BYTES) out_flush();
    if (count > OUT_BYTES) {
        put_bytes(bytes, count);
        return;
    }
    memcpy(out.buffer + out.used, bytes, count);
    out.used += count;
}

static unsigned digits_of(uint64_t value)
{
    unsigned n = 1;
    for (; value >= 10; value /= 10) n++;
    return n;
}

/* Two digits at a time: half the divisions. */
static void digits(char *end, uint64_t value)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
        "49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
        "9899";
    while (value >= 100) {
        end -= 2;
        memcpy(end, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) memcpy(end - 2, pairs + value * 2, 2);
    else end[-1] = (char)('0' + value);
}

void out_u64(uint64_t value)
{
    char *to = out_room();
    unsigned count = digits_of(value);
    digits(to + count, value);
    out.used += count;
}

void out_i64(int64_t value)
{
    if (value < 0) out_char('-');
    out_u64(value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void out_f64(double value)
{
    char text[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value) break;
    }
    out_text(text);
}

void out_spaces(unsigned count)
{
    for (; count >= 40; count -= 40) out_spaces(39), out_char(' ');
    memset(out_room(), ' ', count);
    out.used += count;
}

void out_u64_wide(uint64_t value, unsigned width)
{
    unsigned count = digits_of(value);
    if (count < width) out_spaces(width - count);
    out_u64(value);
}

void out_text_wide(const char *text, unsigned width)
{
    size_t count = strlen(text);
    if (count < width) out_spaces(width - (unsigned)count);
    out_text(text);
}

void out_zeros(uint64_t value, unsigned count)
{
    char *to = out_room();
    memset(to, '0', count);
    if (value) digits(to + count, value);
    out.used += count;
}

static void put_scaled(uint64_t value, uint64_t unit, const char *name)
{
    out_u64_wide(value / unit, 4);
    out_char('.');
    out_zeros(value % unit * 1000 / unit, 3);
    out_text(name);
}

void out_time(uint64_t ns)
{
    char text[HUMAN_BYTES];
    if (ns < 1000) {
        out_u64_wide(ns, 8);
        out_text(" ns ");
    } else if (ns < 1000000) {
        put_scaled(ns, 1000, " us ");
    } else if (ns < 1000000000) {
        put_scaled(ns, 1000000, " ms ");
    } else if (ns < 120000000000u) {
        put_scaled(ns, 1000000000, " s  ");
    } else {
        out_text_wide(human_time(text, ns), 11);
        out_char(' ');
    }
}

void out_cell(const char *text)
{
    size_t plain = 0;
    while (text[plain] >= 0x20 && text[plain] < 0x7f) plain++;
    out_bytes(text, plain);
    for (text += plain; *text; text += plain ? plain : 1) {
        plain = plain_bytes(text);
        out_bytes(plain ? text : " ", plain ? plain : 1);
    }
}

/* True if a text can stand between quotes unchanged. */
static bool plain_json(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f || *text == '"' || *text == '\\') return false;
    return true;
}

void out_json(const char *text)
{
    if (plain_json(text)) {
        out_char('"');
        out_text(text);
        out_char('"');
        return;
    }
    json_t *value = json_text(text);
    char *quoted = json_plain(value);
    out_text(quoted ? quoted : "\"\"");
    free(quoted);
    json_decref(value);
}
