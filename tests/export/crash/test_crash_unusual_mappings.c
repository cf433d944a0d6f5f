/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P7
 * ctest: without=tsan (it runs handlers where its own functions wait)
 * P7: a bundle has the stacks of a process with an unusual memory map. In one case tens of thousands of mappings
 * precede the stack. In the other the first thread has ended, so that /proc/self shows no map at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/mman.h>

#include "tests/support/deaths.h"

enum { PAGES = 20000 };
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;

static void record(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 10; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
}

__attribute__((noinline)) static int inner(int n) { return *nowhere + n; }
__attribute__((noinline)) static int outer(int n) { return inner(n) + 1; }

/* Two neighbours of different access are two mappings. */
static void among_many(void)
{
    char *all = mmap(NULL, PAGES * 4096ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) _exit(77);
    for (int i = 0; i < PAGES; i += 2)
        if (mprotect(all + i * 4096ul, 4096, PROT_READ | PROT_WRITE)) _exit(77);
    record();
    outer(1);
}

static void *crash_later(void *first)
{
    pthread_join(*(pthread_t *)first, NULL);
    record();
    outer(1);
    return NULL;
}
static void first_one_ended(void)
{
    static pthread_t me, t;
    me = pthread_self();
    pthread_create(&t, NULL, crash_later, &me);
    pthread_exit(NULL);
}

static struct fdr_file *bundle_of(void (*die)(void))
{
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    struct fdr_file *f = NULL;
    char message[256];
    pid_t pid;
    int status = death_of(&c, die, &pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip(); /* the kernel allows fewer mappings here */
    assert_int_equal(status & ~0x80, SIGSEGV);
    assert_true(death_ends_with(death_file(p->dir), ".crash.fdr"));
    assert_int_equal(fdr_file_open(death_file(p->dir), &f, message, sizeof message), FDR_WHOLE);
    return f;
}

static void has_stack(struct fdr_file *f)
{
    const struct fdr_crash_thread_info *t;
    const struct fdr_crash_frame *frame;
    assert_true(fdr_crash_threads(f, &t) > 0);
    assert_true(t[0].faulting && t[0].answered);
    assert_true(fdr_crash_frames(f, 0, &frame) >= 3); /* inner, outer, and the caller */
}

static void P7_stacks_behind_many_mappings(void **state)
{
    (void)state;
    struct fdr_file *f = bundle_of(among_many);
    size_t bytes;
    char missing[32] = "";
    unsigned long lines = 0, more = 0;
    has_stack(f);
    const char *maps = fdr_crash_text(f, "maps", &bytes);
    assert_non_null(maps);
    for (size_t i = 0; i < bytes; i++) {
        lines += maps[i] == '\n';
        if (maps[i] == '\n' && bytes - i > 4 && bytes - i < sizeof missing && !memcmp(maps + i, "\n... ", 5))
            memcpy(missing, maps + i + 1, bytes - i - 1);
    }
    assert_int_equal(sscanf(missing, "... %lu more", &more), 1); /* the text says that the list is not complete */
    assert_true(lines + more > PAGES);
    fdr_file_close(f);
}

static void P7_stacks_behind_the_end_of_the_first_thread(void **state)
{
    (void)state;
    struct fdr_file *f = bundle_of(first_one_ended);
    size_t bytes;
    has_stack(f);
    assert_non_null(fdr_crash_text(f, "maps", &bytes));
    fdr_file_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P7_stacks_behind_many_mappings),
                                       cmocka_unit_test(P7_stacks_behind_the_end_of_the_first_thread)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
