/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=60 promise=P10
 * P10: threads with the smallest possible stack (16 KiB) call functions that fdr has not seen before. fdr names
 * these and compares them with rules and triggers, in a UTF-8 locale as well. A failure shows as a stack overflow,
 * or as more stack touched than MOST. */
#include <locale.h>
#include <sys/mman.h>

#include "tests/support/api_fixture.h"

enum { STACK = 256 << 10, MOST = 13 << 10, PAINT = 0x5a };

static void function_of_a_name_that_is_long_enough_for_everybody(void) { __asm__ volatile(""); }

static void *record_one(void *unused)
{
    fdr_region by_name = fdr_region_define("solver::iterate(std::vector<double>&, unsigned long)", "solver.cc", 12);
    fdr_enter(by_name);
    fdr_enter_address((void *)function_of_a_name_that_is_long_enough_for_everybody);
    fdr_leave_address((void *)function_of_a_name_that_is_long_enough_for_everybody);
    fdr_leave(by_name);
    return unused;
}

/* Bytes of its stack that a thread touches. */
static size_t stack_used(void)
{
    uint8_t *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t a;
    pthread_t t;
    assert_ptr_not_equal(stack, MAP_FAILED);
    memset(stack, PAINT, STACK);
    pthread_attr_init(&a);
    assert_int_equal(pthread_attr_setstack(&a, stack, STACK), 0);
    assert_int_equal(pthread_create(&t, &a, record_one, NULL), 0);
    pthread_join(t, NULL);
    size_t untouched = 0;
    while (stack[untouched] == PAINT) untouched++;
    munmap(stack, STACK);
    return STACK - untouched;
}

static void P10_a_small_stack_is_enough(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(FDRI_ATOMIC_TSAN)
    skip();
#endif
    assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
    begin(&(struct fdr_config){.filter = write_rules("exclude name std::*[a-z]_?\nmin 1us file *.[ch]pp\n")});
    size_t used = stack_used();
    print_message("%zu bytes of stack\n", used);
    assert_in_range(used, 1024, MOST);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_a_small_stack_is_enough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
