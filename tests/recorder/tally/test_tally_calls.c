/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P5,P7,P8 */
/* P5, P7, P8: the functions of fdr/tally.h: their results, how long a tally holds, fork, the files, the counts of
 * triggers. No wrong byte makes a key or crashes the reader. */
#include <fdr/tally.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/api_fixture.h"

enum { KIND = FDR_TALLY_YOURS + 3 };
static const char name_of_key[24] = "twenty-four bytes of key";

static const struct fdr_tally_row *row_of(const struct fdr_file *f, uint32_t kind, const char *text)
{
    const struct fdr_tally_row *rows;
    size_t n = fdr_tallies(f, &rows);
    char key[64];
    for (size_t i = 0; i < n; i++) {
        fdr_tally_key_text(&rows[i], key, sizeof key);
        if (rows[i].kind == kind && (kind != FDR_TALLY_TRIGGER || !strcmp(key, text))) return &rows[i];
    }
    return NULL;
}

static void counters_count(void **state)
{
    (void)state;
    fdr_tally t, same;
    uint64_t v = 99;
    begin(NULL);
    assert_int_equal(fdr_tally_make(KIND, name_of_key, &t), 0);
    assert_int_equal(fdr_tally_make(KIND, name_of_key, &same), 0);
    assert_true(t == same);
    assert_int_equal(fdr_tally_add(t, 0, 5, &v), 0);
    assert_int_equal(v, 0);
    assert_int_equal(fdr_tally_add(t, 0, 2, &v), 0);
    assert_int_equal(v, 5);
    assert_int_equal(fdr_tally_set(t, 1, 17), 0);
    v = 16;
    assert_int_equal(fdr_tally_compare_set(t, 1, &v, 18), 0);
    assert_int_equal(v, 17);
    assert_int_equal(fdr_tally_compare_set(t, 1, &v, 18), 1);
    assert_int_equal(fdr_tally_read(t, 1, &v), 0);
    assert_int_equal(v, 18);
    const uint64_t all[FDR_TALLY_COUNTERS] = {7, 18, 0}, other[FDR_TALLY_COUNTERS] = {1, 2, 3};
    assert_int_equal(fdr_tally_set_all(&t, 1, other), 0);
    assert_int_equal(fdr_tally_read(t, 2, &v), 0);
    assert_int_equal(v, 3);
    assert_int_equal(fdr_tally_set_all(&t, 1, all), 0);
    struct fdr_file *f = take();
    const struct fdr_tally_row *r = row_of(f, KIND, NULL);
    assert_non_null(r);
    assert_memory_equal(r->key, name_of_key, sizeof name_of_key);
    assert_true(r->counter[0] == 7 && r->counter[1] == 18 && r->counter[2] == 0);
    assert_string_equal(fdr_tally_kind_name(KIND), "");
    end(f);
}

static void wrong_calls_say_so(void **state)
{
    (void)state;
    fdr_tally t = 1;
    uint64_t v;
    fdr_finalize();
    assert_int_equal(fdr_tally_make(KIND, name_of_key, &t), -ESRCH);
    assert_true(t == 0);
    begin(NULL);
    assert_int_equal(fdr_tally_make(0, name_of_key, &t), -EINVAL);
    assert_int_equal(fdr_tally_make(FDR_TALLY_KIND_END, name_of_key, &t), -EINVAL);
    assert_int_equal(fdr_tally_make(KIND, NULL, &t), -EINVAL);
    assert_int_equal(fdr_tally_add(t, 0, 1, NULL), -ESTALE);
    assert_int_equal(fdr_tally_make(KIND, name_of_key, &t), 0);
    assert_int_equal(fdr_tally_add(t, FDR_TALLY_COUNTERS, 1, NULL), -EINVAL);
    end(take());
    begin(NULL); /* an old tally never leads into a new recording */
    assert_int_equal(fdr_tally_add(t, 0, 1, NULL), -ESTALE);
    assert_int_equal(fdr_tally_set(t, 0, 1), -ESTALE);
    assert_int_equal(fdr_tally_set_all(&t, 1, (const uint64_t[FDR_TALLY_COUNTERS]){1}), -ESTALE);
    assert_int_equal(fdr_tally_read(t, 0, &v), -ESTALE);
    assert_int_equal(fdr_tally_compare_set(t, 0, &v, 1), -ESTALE);
    end(take());
}

static void a_forked_child_has_none(void **state)
{
    (void)state;
    fdr_tally t;
    uint64_t v = 0;
    int status;
    begin(NULL);
    assert_int_equal(fdr_tally_make(KIND, name_of_key, &t), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) _exit(fdr_tally_add(t, 0, 1, NULL) == -ESTALE ? 0 : 1);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(fdr_tally_read(t, 0, &v), 0);
    assert_int_equal(v, 0);
    end(take());
}

static void full_tables_say_so(void **state)
{
    (void)state;
    uint32_t got = 0, asked = 2000;
    static int said[2000];
    fdr_tally t;
    begin(&(struct fdr_config){.buffer = "1M"});
    for (uint32_t n = 0; n < asked; n++) {
        uint32_t key[6] = {n, 1, 2, 3, 4, 5};
        said[n] = fdr_tally_make(KIND, key, &t);
        assert_true(said[n] == 0 || said[n] == -ENOSPC);
        got += said[n] == 0;
    }
    for (uint32_t n = 0; n < asked; n++) {
        uint32_t key[6] = {n, 1, 2, 3, 4, 5};
        assert_int_equal(fdr_tally_make(KIND, key, &t), said[n]);
    }
    struct fdr_file *f = take();
    struct fdr_tally_room room = fdr_tally_room(f);
    assert_int_equal(room.places, 16 + 256);
    assert_int_equal(room.refused, 2 * (asked - got));
    assert_true(got > 256);
    end(f);
}

/* Tallies are there for a late comer in a buffer that events have filled. */
static void a_full_buffer_has_room_for_keys(void **state)
{
    (void)state;
    uint32_t got = 0;
    fdr_tally t;
    begin(&(struct fdr_config){.buffer = "4M"});
    fdr_region r = fdr_region_define("r", NULL, 0);
    while (fdr_usage().reductions < 500)
        for (int i = 0; i < 1000; i++) fdr_enter(r), fdr_leave(r);
    for (uint32_t n = 0; n < 150; n++) {
        uint32_t key[6] = {n};
        got += fdr_tally_make(KIND, key, &t) == 0;
    }
    assert_true(got > 140); /* 64 places at first; in a full buffer 128 more */
    struct fdr_file *f = take();
    assert_int_equal(fdr_tally_room(f).places, 64 + 128);
    end(f);
}

static void triggers_are_counted(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.holdoff = "3600s", .keep = "100"});
    int id = fdr_trigger_add("mine: api");
    assert_true(id > 0);
    for (int i = 0; i < 7; i++) fdr_trigger_fire(id, 1);
    while (fdr_usage().snapshots < 1) usleep(1000);
    fdr_trigger_remove(id);
    struct fdr_file *f = take();
    const struct fdr_tally_row *r = row_of(f, FDR_TALLY_TRIGGER, "mine");
    assert_non_null(r);
    assert_string_equal(fdr_tally_kind_name(r->kind), "trigger");
    assert_int_equal(r->counter[0], 7);
    assert_int_equal(r->counter[1], 6);
    /* the file of the snapshot is there a moment before it is counted */
    assert_true(r->counter[2] <= 1);
    end(f);
}

/* ---- wrong bytes ---- */

static uint8_t *file_bytes(const char *path, size_t *count)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_int_equal(fstat(fd, &st), 0);
    uint8_t *b = aligned_alloc(64, ((size_t)st.st_size + 63) & ~(size_t)63);
    assert_int_equal(read(fd, b, (size_t)st.st_size), st.st_size);
    close(fd);
    *count = (size_t)st.st_size;
    return b;
}

enum { MADE = 20 };
static void only_made_keys(const uint8_t *bytes, size_t count)
{
    struct fdr_file *f;
    char message[256];
    fdr_file_open_memory(bytes, count, &f, message, sizeof message);
    if (!f) return;
    const struct fdr_tally_row *rows;
    size_t n = fdr_tallies(f, &rows);
    assert_true(n <= MADE);
    for (size_t i = 0; i < n; i++) {
        uint32_t key[6];
        memcpy(key, rows[i].key, sizeof key);
        assert_true(rows[i].kind == KIND && key[0] < MADE && key[5] == key[0] * 3);
    }
    fdr_file_close(f);
}

static void P8_no_flipped_bit_makes_a_key(void **state)
{
    (void)state;
    size_t count;
    begin(&(struct fdr_config){.buffer = "256K"});
    for (uint32_t n = 0; n < MADE; n++) {
        uint32_t key[6] = {n, 0, 0, 0, 0, n * 3};
        fdr_tally t;
        assert_int_equal(fdr_tally_make(KIND, key, &t), 0);
    }
    assert_int_equal(fdr_snapshot("flip"), 0);
    uint8_t *b = file_bytes(fdr_last_snapshot(), &count);
    fdr_finalize();
    struct fdri_arena_superblock *s = (void *)b;
    struct fdri_arena_tallies *t = (void *)(b + s->section[0].off);
    assert_true(fdri_arena_section_is(&s->section[0], FDRI_ARENA_SECTION_TALLIES));
    uint32_t from[] = {(uint32_t)((uint8_t *)&s->section - b), s->section[0].off, t->larger};
    uint32_t size[] = {32, fdri_arena_tallies_bytes(t->log2), 64 + 8 * 64};
    memset(b + FDRI_ARENA_SPARE_OFF, 0, sizeof(struct fdri_arena_spare)); /* without checks, as after a kill */
    only_made_keys(b, count);
    for (int i = 0; i < 3; i++)
        for (uint32_t bit = 0; bit < size[i] * 8; bit += 17) {
            b[from[i] + bit / 8] ^= (uint8_t)(1u << bit % 8);
            only_made_keys(b, count);
            b[from[i] + bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counters_count),
                                       cmocka_unit_test(wrong_calls_say_so),
                                       cmocka_unit_test(a_forked_child_has_none),
                                       cmocka_unit_test(full_tables_say_so),
                                       cmocka_unit_test(a_full_buffer_has_room_for_keys),
                                       cmocka_unit_test(triggers_are_counted),
                                       cmocka_unit_test(P8_no_flipped_bit_makes_a_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
