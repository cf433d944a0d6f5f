/* SPDX-License-Identifier: MIT */
/* JSON output of the verbs. */
#include "tools/common/verbs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *json_f64(double value) { return isfinite(value) ? json_real(value) : json_null(); }
json_t *json_u64(uint64_t value) { return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value); }

json_t *json_text(const char *text)
{
    json_t *good = json_string(text);
    if (good) return good;
    /* Not UTF-8: keeps ASCII and replaces the rest. It is rare, an old locale in a path. */
    char *clean = malloc(strlen(text) * 3 + 1), *to = clean;
    if (!clean) return json_string("");
    for (; *text; text++) {
        if ((unsigned char)*text < 0x80) *to++ = *text;
        else to = stpcpy(to, "\xef\xbf\xbd");
    }
    *to = '\0';
    good = json_string(clean);
    free(clean);
    return good;
}

/* Keys that differ only in bytes that are not UTF-8 would become equal; the later one gets a number. */
static void set_named(json_t *object, const char *key, json_t *value)
{
    json_t *clean = json_text(key);
    char name[256];
    snprintf(name, sizeof name, "%s", json_string_value(clean));
    for (unsigned n = 2; json_object_get(object, name); n++)
        snprintf(name, sizeof name, "%.200s.%u", json_string_value(clean), n);
    json_object_set_new(object, name, value);
    json_decref(clean);
}

json_t *json_notes(const struct fdr_file *file)
{
    const struct fdr_note_info *note;
    json_t *o = json_object();
    for (size_t i = 0, n = fdr_notes(file, &note); i < n; i++) set_named(o, note[i].key, json_text(note[i].value));
    return o;
}

#define JSON_FLAGS (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17))

/* Escapes DEL, U+0080 to U+009F and characters that change the direction of text, which jansson leaves unchanged.
 * Nothing else in JSON becomes longer. */
static size_t escape(char *to, const unsigned char *s)
{
    size_t count = character_bytes(s);
    unsigned code = count == 3   ? (s[0] & 15u) << 12 | (s[1] & 63u) << 6 | (s[2] & 63u)
                    : count == 2 ? (s[0] & 31u) << 6 | (s[1] & 63u)
                                 : s[0];
    sprintf(to, "\\u%04x", code);
    return count ? count : 1;
}

char *json_plain(const json_t *value)
{
    char *plain = json_dumps(value, JSON_FLAGS), *line, *to;
    size_t odd = 0;
    for (const char *c = plain; c && *c; c++) odd += !plain_bytes(c); /* also counts bytes inside a character */
    if (!plain || !odd || !(line = to = malloc(strlen(plain) + 6 * odd + 1))) return plain;
    for (const char *c = plain; *c;) {
        size_t n = plain_bytes(c);
        if (n) to = mempcpy(to, c, n), c += n;
        else c += escape(to, (const unsigned char *)c), to += 6;
    }
    *to = '\0';
    free(plain);
    return line;
}

static void print_value(const json_t *value)
{
    char *line = json_plain(value);
    if (line) fputs(line, stdout);
    free(line);
}

static void print_members(const json_t *object)
{
    const char *key;
    json_t *member;
    const char *before = "\n";
    json_object_foreach((json_t *)object, key, member)
    {
        json_t *name = json_text(key);
        fputs(before, stdout);
        print_value(name);
        fputs(": ", stdout);
        print_value(member);
        json_decref(name);
        before = ",\n";
    }
}

static void print_elements(const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        fputs(i ? ",\n" : "\n", stdout);
        print_value(json_array_get(array, i));
    }
}

int print_json(json_t *value)
{
    bool array = json_is_array(value);
    fputc(array ? '[' : '{', stdout);
    if (array) print_elements(value);
    else print_members(value);
    fputs(array ? "\n]\n" : "\n}\n", stdout);
    json_decref(value);
    return finish_output();
}
