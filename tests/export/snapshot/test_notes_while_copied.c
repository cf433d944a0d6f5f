/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P6,P8 wrap=fdri_live_process_read,pwrite
 * P6, P8: each note in a snapshot is whole, although the program sets two new values in the middle of its copy. In the
 * process, a page in the middle of the note faults and the handler sets them. From outside, the reading is split in
 * two. */
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/reader.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/arena/arena.h"
#include "reader/live/find_process.h"
#include "recorder/recording.h"
#include "tests/support/oracle.h"

enum { NOTES = 300, PAGE = 4096 };

static const char *key;  /* of the note that crosses a page boundary */
static uint64_t halfway; /* offset of that boundary in the arena */
static int times_left;   /* how often the note is still set in the middle of a copy */
static bool faults;      /* by page faults */
static unsigned values;

static const char *value(unsigned n)
{
    static char text[101];
    memset(text, 'a' + (int)(n % 26), sizeof text - 1);
    return text;
}
static void set_twice(void)
{
    for (int i = 0; i < 2; i++) fdr_note(key, value(++values));
}

/* ---- in the process: the page faults at each copy ---- */

static void *page(void) { return fdri_life_recording.arena.base + halfway; }
static void arm(void)
{
    if (faults && times_left > 0) mprotect(page(), PAGE, PROT_NONE);
}
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    uint64_t at = (uint64_t)((uint8_t *)info->si_addr - fdri_life_recording.arena.base) - halfway;
    if (at >= PAGE || times_left <= 0) _exit(99);
    mprotect(page(), PAGE, PROT_READ | PROT_WRITE);
    times_left--;
    set_twice();
}

ssize_t __real_pwrite(int fd, const void *from, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *from, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *from, size_t count, off_t off)
{
    ssize_t n = __real_pwrite(fd, from, count, off);
    arm(); /* the next copy may read the page again */
    return n;
}

/* ---- from outside: the reading is split in two ---- */

int __real_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count);
int __wrap_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count);
int __wrap_fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count)
{
    if (times_left <= 0 || halfway <= off || halfway >= off + count)
        return __real_fdri_live_process_read(p, off, to, count);
    size_t first = (size_t)(halfway - off);
    int e = __real_fdri_live_process_read(p, off, to, first);
    times_left--;
    set_twice();
    return e ? e : __real_fdri_live_process_read(p, halfway, (uint8_t *)to + first, count - first);
}

/* ---- */

static void start(void)
{
    static char text[NOTES][24];
    struct fdr_config c = oracle_config(oracle_directory());
    c.crash = "0";
    c.buffer = "8M";
    fdr_finalize();
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < NOTES; i++) {
        snprintf(text[i], sizeof text[i], "note-%03d", i);
        fdr_note(text[i], value(0));
    }
    key = NULL;
    values = 0;
    const uint8_t *base = fdri_life_recording.arena.base, *end = base + fdri_life_recording.arena.super->arena_bytes;
    for (int i = 0; i < NOTES && !key; i++) {
        const uint8_t *at = memmem(base, (size_t)(end - base), text[i], strlen(text[i]) + 1);
        assert_non_null(at);
        const struct fdri_arena_note_entry *n = (const void *)(at - offsetof(struct fdri_arena_note_entry, key));
        uint64_t from = (uint64_t)((const uint8_t *)n->value[0] - base), border = (from + PAGE - 1) / PAGE * PAGE;
        if (border <= from || border >= from + 100) continue;
        key = text[i];
        halfway = border;
    }
    assert_non_null(key);
}

/* The value of the note in a file. */
static const char *note_in(struct fdr_file *f)
{
    const struct fdr_note_info *row;
    size_t n = fdr_notes(f, &row), i = 0;
    assert_int_equal(n, NOTES);
    while (i < n && strcmp(row[i].key, key) != 0) assert_string_equal(row[i++].value, value(0));
    assert_true(i < n);
    return row[i].value;
}

static void is_whole(const char *text)
{
    if (strlen(text) != 100 || strspn(text, (char[]){text[0], 0}) != 100) fail_msg("'%s'", text);
}

static struct fdr_file *opened(const char *path)
{
    struct fdr_file *f;
    char message[256] = "";
    if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    return f;
}

static void P6_a_note_that_is_set_during_a_snapshot(void **state)
{
    (void)state;
    struct sigaction ours, before;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO;
    start();
    faults = true;
    sigaction(SIGSEGV, &ours, &before);
    for (int n = 1; n < 4; n++) {
        times_left = n;
        arm();
        assert_int_equal(fdr_snapshot("notes"), 0);
        /* once in the copy of the meta blocks, once in the copy of the note */
        if (n <= 2) assert_int_equal(times_left, 0);
        times_left = 0;
        mprotect(page(), PAGE, PROT_READ | PROT_WRITE);
        struct fdr_file *f = opened(fdr_last_snapshot());
        is_whole(note_in(f));
        fdr_file_close(f);
    }
    sigaction(SIGSEGV, &before, NULL);
    faults = false;
    fdr_finalize();
}

static void from_outside(const char *path, int times)
{
    struct fdri_live_process p;
    char message[256] = "";
    if (!fdri_live_process_find((uint32_t)getpid(), &p, message, sizeof message)) fail_msg("%s", message);
    FILE *out = fopen(path, "w+e");
    assert_non_null(out);
    times_left = times;
    assert_int_equal(fdri_live_external_copy(&p, fileno(out), "notes", FDRI_LIVE_EXTERNAL_FILE), 0);
    if (times < 10) assert_int_equal(times_left, 0);
    times_left = 0;
    fclose(out);
    fdri_live_process_close(&p);
}

static void P6_a_note_that_is_set_during_a_snapshot_from_outside(void **state)
{
    (void)state;
    char path[300];
    start();
    snprintf(path, sizeof path, "%s/outside.fdr", oracle_directory());
    for (int n = 1; n < 10; n++) {
        from_outside(path, n);
        struct fdr_file *f = opened(path);
        is_whole(note_in(f));
        fdr_file_close(f);
    }
    from_outside(path, 1000000); /* at each reading of the note */
    struct fdr_file *f = opened(path);
    assert_string_equal(note_in(f), "[changing]");
    fdr_file_close(f);
    fdr_finalize();
}

/* The oldest block links back to the newest. The reader shows each block once and ends. */
static void P8_blocks_that_go_round(void **state)
{
    static uint8_t bytes[4 << 20];
    struct fdr_config c = oracle_config(oracle_directory());
    const struct fdr_note_info *row;
    struct fdr_file *f;
    char text[32];
    (void)state;
    c.buffer = "1M";
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < NOTES; i++) {
        snprintf(text, sizeof text, "note %d", i);
        fdr_note(text, "value");
    }
    assert_int_equal(fdr_snapshot("notes"), 0);
    FILE *in = fopen(fdr_last_snapshot(), "r");
    size_t size = in ? fread(bytes, 1, sizeof bytes, in) : 0;
    assert_in_range(size, FDRI_ARENA_SUPERBLOCK_BYTES, sizeof bytes - 1);
    fclose(in);
    const struct fdri_arena_superblock *s = (const void *)bytes;
    struct fdri_arena_notes_block *b = (void *)(bytes + s->notes_off);
    while (b->next) b = (void *)(bytes + b->next);
    b->next = s->notes_off;
    assert_int_equal(fdr_file_open_memory(bytes, size, &f, text, sizeof text), FDR_DAMAGED);
    assert_in_range(fdr_notes(f, &row), NOTES, 4 * NOTES);
    fdr_file_close(f);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_blocks_that_go_round),
                                       cmocka_unit_test(P6_a_note_that_is_set_during_a_snapshot),
                                       cmocka_unit_test(P6_a_note_that_is_set_during_a_snapshot_from_outside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
