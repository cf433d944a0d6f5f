/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P10
 * P10: FDR_SAMPLE is parsed as documented. Each invalid value costs one line on standard error, and never the
 * program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/samples/sample_setting.h"

/* Parses `text` and returns the line on standard error in said[]. */
static struct fdri_samples_settings parse(const char *text, char *said, size_t bytes)
{
    int ends[2], before = dup(2);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    struct fdri_samples_settings s = fdri_samples_parse_setting(text);
    dup2(before, 2);
    close(before);
    close(ends[1]);
    ssize_t n = read(ends[0], said, bytes - 1);
    said[n > 0 ? n : 0] = 0;
    close(ends[0]);
    return s;
}

static void good_settings_are_silent(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t period;
        bool wall, events, provided;
        enum fdri_samples_stacks stacks;
    } good[] = {{"", 0, false, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"on", 1000000, false, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"1kHz", 1000000, false, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"2ms,wall", 2000000, true, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"2ms,wall,nostack", 2000000, true, false, false, FDRI_SAMPLES_NO_STACKS},
                {"2ms,wall,signal", 2000000, true, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"signal,wall,500Hz,unwind", 2000000, true, false, false, FDRI_SAMPLES_UNWINDER},
                {"wall,signal,signal", 1000000, true, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"cpu,nostack", 1000000, false, false, false, FDRI_SAMPLES_NO_STACKS},
                {"1kHz,off,1000us", 1000000, false, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"500Hz,on", 2000000, false, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"500Hz,on,500Hz", 2000000, false, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"wall,wall", 1000000, true, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"1kHz,,wall", 1000000, true, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"1kHz,off", 0, false, false, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"page-faults/100", 100, false, true, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"page-faults/100,on", 100, false, true, false, FDRI_SAMPLES_FRAME_POINTERS},
                {"page-faults/100,unwind,off", 0, false, true, false, FDRI_SAMPLES_UNWINDER},
                {"PAPI_TOT_INS/100000,nostack", 100000, false, true, true, FDRI_SAMPLES_NO_STACKS}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char said[600];
        struct fdri_samples_settings s = parse(good[i].text, said, sizeof said);
        if (*said) fail_msg("%s: %s", good[i].text, said);
        if (s.period_ns != good[i].period || s.wall != good[i].wall || s.events != good[i].events ||
            s.provided != good[i].provided || s.stacks != good[i].stacks ||
            s.outside != (good[i].wall && !strstr(good[i].text, "signal")))
            fail_msg("%s", good[i].text);
    }
}

static void bad_settings_report_the_used_value(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        uint64_t period;
    } bad[] = {{"fast", "'fast' is no rate", 0},
               {"1kHz,foo", "'foo' is no rate", 0},
               {"0.5", "'0.5' is no rate", 0},
               {"-5ms", "'-5ms' is no rate", 0},
               {"0Hz", "'0Hz' is no rate", 0},
               {"nan", "'nan' is no rate", 0},
               {",", "'' is no rate", 0},
               {"cache-misses/0", "'cache-misses/0' is no rate", 0},
               {"page-faults/1x", "'page-faults/1x' is no rate", 0},
               {"page-faults/10,cycles/10", "'cycles/10' is no rate", 0},
               {"wall,cpu", "'wall' and 'cpu' exclude each other; using 'cpu'", 1000000},
               {"1ms,500Hz", "'1ms' and '500Hz' exclude each other; using '500Hz'", 2000000},
               {"unwind,2ms,nostack", "'unwind' and 'nostack' exclude each other; using 'nostack'", 2000000},
               {"wall,cpu,bogus", "'bogus' is no rate", 0},
               {"1ms,signal", "'signal' is a way of 'wall'; using it without 'signal'", 1000000},
               {"page-faults/100,wall,cpu", "without 'cpu'", 100},
               {"10us", "using 100us", 100000},
               {"1GHz", "using 100us", 100000},
               {"page-faults/100,wall", "without 'wall'", 100},
               {"2kHz,page-faults/100", "without '2kHz'", 100},
               {"page-faults/100,2kHz", "without '2kHz'", 100},
               {"perf::TASK-CLOCK/10", "using 100000", 100000}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char said[600];
        struct fdri_samples_settings s = parse(bad[i].text, said, sizeof said);
        char *line = strchr(said, '\n');
        if (!line || line[1] || !strstr(said, bad[i].text) || !strstr(said, bad[i].says) ||
            s.period_ns != bad[i].period || s.wall)
            fail_msg("%s: period %llu, %s", bad[i].text, (unsigned long long)s.period_ns, said);
    }
}

static void wall_without_signal_reads_no_stacks(void **state)
{
    char said[600];
    (void)state;
    struct fdri_samples_settings s = parse("wall,unwind", said, sizeof said);
    assert_true(s.wall && s.outside && s.period_ns == 1000000);
    assert_non_null(strstr(said, "FDR_SAMPLE=wall,unwind: 'wall' reads no stacks"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_settings_are_silent),
                                       cmocka_unit_test(bad_settings_report_the_used_value),
                                       cmocka_unit_test(wall_without_signal_reads_no_stacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
