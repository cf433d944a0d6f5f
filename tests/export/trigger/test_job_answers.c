/* SPDX-License-Identifier: MIT */
/* ctest: label=unit
 * An ask of one rank to all is read as it was written. Answers count once for each rank, and ranks that were not
 * reached are named, with any bytes in the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "export/trigger/job_asks.h"

static void asks(void **state)
{
    (void)state;
    struct fdri_trigger_ask a = {.id = 0xfedc, .at_ns = 1234567890123456789u, .rank = 7, .host = "node1"}, b;
    char text[320];
    strcpy(a.reason, "trigger slow: region step over 1s");
    size_t n = fdri_trigger_ask_write(&a, text, sizeof text);
    assert_int_equal(n, strlen(text));
    strcat(text, "rank 3 taken\n");
    assert_true(fdri_trigger_ask_read(text, &b));
    assert_int_equal(b.id, a.id);
    assert_int_equal(b.at_ns, a.at_ns);
    assert_int_equal(b.rank, 7);
    assert_string_equal(b.host, "node1");
    assert_string_equal(b.reason, a.reason);
    assert_int_equal(fdri_trigger_ask_write(&a, text, 20), 0);
    static const char *const others[] = {
        "", "fdr-ask 1 ", "fdr-ask 2 00 1 1 h\nx\n", "fdr-ask 1 zz 1 1 h\n", "fdr-ask 1 12 1 1 host", "rank 3 taken\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(fdri_trigger_ask_read(others[i], &b));
}

static void say(uint32_t size, const char *text, const char *expected, bool all)
{
    struct fdri_trigger_answers a = {.size = size, .answered = calloc(FDRI_TRIGGER_RANKS, 1)};
    char said[700];
    fdri_trigger_answers_add(&a, text);
    fdri_trigger_answers_add(&a, "rank 0 taken\n"); /* the file in the other directory */
    fdri_trigger_answers_say(&a, said, sizeof said);
    assert_string_equal(said, expected);
    assert_int_equal(fdri_trigger_answers_all(&a), all);
    free(a.answered);
}

static void answers(void **state)
{
    (void)state;
    say(2, "fdr-ask 1 1 0 1 h\nr\nrank 0 taken\nrank 1 taken\n", "2 of 2 ranks took a snapshot", true);
    say(8, "rank 4 taken\nrank 4 taken\nrank 99999999 taken\nrank x\nrank\n",
        "2 of 8 ranks took a snapshot; not reached: 1-3, 5-7", false);
    say(3, "rank 1 failed: No space left on device\nrank 2 taken", "2 of 3 ranks took a snapshot; could take none: 1",
        true);
    say(0, "rank 5 taken\n", "2 ranks took a snapshot; the size of the job is not known", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(asks), cmocka_unit_test(answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
