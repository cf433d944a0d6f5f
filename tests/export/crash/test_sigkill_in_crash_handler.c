/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=60 promise=P7 wrap=fdri_crash_section_begin,fdri_crash_bundle_write
 * P7: SIGKILL comes during the crash handler, before it writes the crash section. The file that stays is undamaged,
 * names the cause of death and has every event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static int here; /* the process is killed before this stage */

void __real_fdri_crash_section_begin(void);
void __wrap_fdri_crash_section_begin(void);
void __real_fdri_crash_bundle_write(void);
void __wrap_fdri_crash_bundle_write(void);
void __wrap_fdri_crash_section_begin(void)
{
    if (here == 0) raise(SIGKILL);
    __real_fdri_crash_section_begin();
}
void __wrap_fdri_crash_bundle_write(void)
{
    if (here == 1) raise(SIGKILL);
    __real_fdri_crash_bundle_write();
}

static void fault(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 10000; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
    *nowhere = 1;
}

static void recovered_says_so(struct fdr_file *f, const struct death_place *p, bool killed)
{
    char path[600], message[200] = "";
    struct fdr_file *again;
    snprintf(path, sizeof path, "%s/recovered.fdr", p->dir);
    if (fdr_file_recover(f, path, message, sizeof message)) fail_msg("stage %d: %s", here, message);
    if (fdr_file_open(path, &again, message, sizeof message) != FDR_WHOLE) fail_msg("stage %d: %s", here, message);
    assert_int_equal(fdr_file_info(again)->killed_in_handler, killed);
    fdr_file_close(again);
    unlink(path);
}

static void P7_killed_in_the_handler(void **state)
{
    (void)state;
    for (here = 0; here < 3; here++) {
        struct fdr_file *f;
        char message[200] = "";
        pid_t pid;
        const struct death_place *p = death_place();
        struct fdr_config c = death_config(p);
        int status = death_of(&c, fault, &pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == (here < 2 ? SIGKILL : SIGSEGV));
        const char *left = death_file(here < 2 ? p->live : p->dir);
        assert_true(death_ends_with(left, here < 2 ? ".live.fdr" : ".crash.fdr"));
        if (fdr_file_open(left, &f, message, sizeof message) != FDR_WHOLE) fail_msg("stage %d: %s", here, message);
        assert_null(death_check(f));
        assert_string_equal(fdr_file_info(f)->state, "crashed");
        assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
        assert_int_equal(fdr_file_info(f)->killed_in_handler, here < 2);
        recovered_says_so(f, p, here < 2);
        fdr_file_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P7_killed_in_the_handler)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
