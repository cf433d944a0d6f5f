/* SPDX-License-Identifier: MIT */
/* The section behind the arena, built in static memory. Fatal path: see crash_path.h. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/system/syscall.h"
#include "export/crash/crash_path.h"
#include "export/crash/stack_words.h"
#include "format/arena/crash_section.h"

static uint8_t memory[FDRI_ARENA_CRASH_MAX_BYTES] __attribute__((aligned(8)));
struct fdri_crash_section fdri_crash_section = {.bytes = memory, .room = sizeof memory};

static void append(struct fdri_crash_section *s, const void *from, uint32_t count)
{
    if (count) memcpy(s->bytes + s->used, from, count);
    s->used += count;
}

void fdri_crash_section_open(struct fdri_crash_section *s)
{
    s->used = sizeof(struct fdri_arena_crash);
    s->count = 0;
}

bool fdri_crash_section_put(struct fdri_crash_section *s, enum fdri_arena_crash_kind kind, const void *a,
                            uint32_t a_bytes, const void *b, uint32_t b_bytes, const void *c, uint32_t c_bytes)
{
    struct fdri_arena_crash_entry entry = {kind, a_bytes + b_bytes + c_bytes};
    uint32_t start = s->used;
    if (s->room - s->used < sizeof entry + entry.bytes + 8ull) return false;
    append(s, &entry, sizeof entry);
    append(s, a, a_bytes);
    append(s, b, b_bytes);
    append(s, c, c_bytes);
    s->used = (s->used + 7) & ~7u;
    memset(s->bytes + start + sizeof entry + entry.bytes, 0, s->used - start - sizeof entry - entry.bytes);
    s->count++;
    return true;
}

void fdri_crash_section_close(struct fdri_crash_section *s)
{
    struct fdri_arena_crash head = {
        .magic = FDRI_ARENA_CRASH_MAGIC, .count = s->count, .bytes = s->used, .check = 0x243F6A8885A308D3u};
    for (uint32_t i = sizeof head; i < s->used; i += 8) {
        uint64_t v;
        memcpy(&v, s->bytes + i, 8);
        head.check = (head.check ^ v) * 0x9E3779B97F4A7C15u;
    }
    memcpy(s->bytes, &head, sizeof head);
}

/* ---- of the crash ---- */

bool fdri_crash_section_add(enum fdri_arena_crash_kind kind, const void *a, uint32_t a_bytes, const void *b,
                            uint32_t b_bytes, const void *c, uint32_t c_bytes)
{
    return fdri_crash_section_put(&fdri_crash_section, kind, a, a_bytes, b, b_bytes, c, c_bytes);
}
void fdri_crash_section_begin(void) { fdri_crash_section_open(&fdri_crash_section); }
void fdri_crash_section_end(void) { fdri_crash_section_close(&fdri_crash_section); }

/* ---- texts ---- */

static void text(const char *name, const char *value, uint32_t bytes)
{
    fdri_crash_section_add(FDRI_ARENA_CRASH_TEXT, name, (uint32_t)strlen(name) + 1, value, bytes, NULL, 0);
}

void fdri_crash_section_proc(const char *path)
{
    static char content[16384];
    char full[96];
    fdri_crash_append(fdri_crash_append(full, full + sizeof full, "/proc/self/"), full + sizeof full, path);
    int fd = fdri_system_openat(AT_FDCWD, full, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;
    uint32_t got = 0;
    while (got < sizeof content) {
        long n = fdri_system_read(fd, content + got, sizeof content - got);
        if (n <= 0) break;
        got += (uint32_t)n;
    }
    fdri_system_close(fd);
    if (got) text(path, content, got);
}

/* The message that the C library stored before abort(): a failed assertion, or an error of the heap. */
static void abort_text(void)
{
    struct message {
        unsigned size;
        char text[];
    };
    const struct message *m = fdri_crash.abort_message ? *fdri_crash.abort_message : NULL;
    if (m) text("abort", m->text, (uint32_t)strnlen(m->text, 1000));
}

/* std::type_info in the C++ ABI: table of functions, name, and for a class with one base that base. */
struct type {
    const void *table;
    const char *name;
    const struct type *base;
};

/* True if the type derives from std::exception by single inheritance, so its object begins with one. */
static bool is_exception(const struct type *t)
{
    static const char name[] = "St9exception";
    for (int i = 0; i < 32 && t && t->name; i++, t = t->base) {
        const char *its = t->name + (*t->name == '*');
        if (strnlen(its, sizeof name) == sizeof name - 1 && !memcmp(its, name, sizeof name - 1)) return true;
        if (t->table != fdri_crash.single_base) return false;
    }
    return false;
}

/* Adds what(), the function behind two destructors. Only the library's own are called; a what() of the program may do
 * anything. */
static void what_text(void)
{
    const char *(*what)(const void *), *says;
    const void *object = fdri_crash.current_exception ? fdri_crash.current_exception().object : NULL;
    const void *function = object ? (*(const void *const *const *)object)[2] : NULL;
    for (int i = 0; function && i < FDRI_CRASH_WHATS; i++) {
        if (function != fdri_crash.what_function[i]) continue;
        memcpy(&what, &function, sizeof what);
        says = what(object);
        if (says) text("what", says, (uint32_t)strnlen(says, 1000));
        return;
    }
}

/* Adds type and text of an uncaught exception. */
static void exception_text(void)
{
    const struct type *t = fdri_crash.exception_type ? fdri_crash.exception_type() : NULL;
    if (t && t->name) text("exception", t->name, (uint32_t)strnlen(t->name, 1000));
    if (is_exception(t)) what_text();
}

void fdri_crash_section_abort(void)
{
    if (fdri_crash_death.signal->number != SIGABRT) return;
    abort_text();
    exception_text();
}

void fdri_crash_section_texts(void)
{
    static const char *const files[] = {"status", "stat", "limits", "io", "oom_score", "cgroup", "wchan"};
    if (fdri_crash_section.room - fdri_crash_section.used > fdri_crash.context_bytes) {
        append(&fdri_crash_section, fdri_crash.context, fdri_crash.context_bytes);
        fdri_crash_section.count += fdri_crash.context_count;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) fdri_crash_section_proc(files[i]);
    uint32_t room = fdri_crash_section.room - fdri_crash_section.used - 64; /* last, because it is the longest */
    if (room > FDRI_CRASH_MAPS_NOTE && room < fdri_crash_section.room)
        text("maps", fdri_crash_maps.text, fdri_crash_maps_fit(&fdri_crash_maps, room));
}
