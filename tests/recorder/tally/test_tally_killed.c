/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=240 promise=P7 */
/* P7: SIGKILL at every store (tests/support/kill_at_every_store.h) while keys are made and counted. Each file shows the
 * keys that were complete and at most one in the making; never another key. */
#include <fdr/tally.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/kill_at_every_store.h"

enum { KEYS = 30, KIND = FDR_TALLY_YOURS + 2 };
static struct shared {
    volatile uint32_t made, counted;
} * shared;
static uint32_t halves, moments;

static void key_of(uint32_t n, uint64_t key[3]) { key[0] = n, key[1] = ~(uint64_t)n, key[2] = 0; }

static void look(const uint8_t *bytes, size_t count)
{
    struct fdr_file *f;
    char message[256] = "";
    uint32_t made = shared->made, counted = shared->counted;
    if (fdr_file_open_memory(bytes, count, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    const struct fdr_tally_row *rows;
    size_t n = fdr_tallies(f, &rows);
    struct fdr_tally_room room = fdr_tally_room(f);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key[3], right[3];
        memcpy(key, rows[i].key, sizeof key);
        key_of((uint32_t)key[0], right);
        if (key[0] >= KEYS || memcmp(key, right, sizeof key)) fail_msg("a key that nobody made");
        sum += rows[i].counter[0];
    }
    if (room.damaged || room.half > 1) fail_msg("%u damaged, %u half", room.damaged, room.half);
    if (n < made || n > made + 1 || sum < counted || sum > counted + 1)
        fail_msg("%zu keys of %u, sum %llu of %u", n, made, (unsigned long long)sum, counted);
    halves += room.half;
    moments++;
    fdr_file_close(f);
}

static void record(void)
{
    fdr_marker(fdr_marker_define("begin"), 1);
    raise(SIGSTOP);
    for (uint32_t n = 0; n < KEYS; n++) {
        uint64_t key[3];
        fdr_tally t;
        key_of(n, key);
        if (fdr_tally_make(KIND, key, &t)) _exit(1);
        shared->made++;
        if (fdr_tally_add(t, 0, 1, NULL)) _exit(1);
        shared->counted++;
    }
    raise(SIGKILL);
}

static void P7_killed_while_keys_are_made(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    int status;
    c.buffer = "256K"; /* 16 places at first, so the larger table is made meanwhile */
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        death_child();
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        if (fdr_init(&c)) _exit(1);
        record();
    }
    struct killed_run run = killed_at_every_store(pid, p->live, look);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!run.traced) skip();
    assert_int_equal(shared->counted, KEYS);
    assert_true(halves >= KEYS * (5 - 1)); /* each step of each key was seen */
    assert_true(moments > halves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P7_killed_while_keys_are_made)};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
