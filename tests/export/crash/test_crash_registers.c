/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=60 promise=P10
 * P10: in the core file of a process that died while recording, every register is as without fdr. Programs load known
 * values into all general, floating-point and vector registers, then die. The registers in the bundle equal those in
 * the core. Skips where no core file is written into the working directory, and on other processors than x86-64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <sys/syscall.h>

#include "tests/support/core_files.h"

#if defined(__x86_64__)
#define PLACE(field)                                                                                                   \
    {                                                                                                                  \
#field, offsetof(struct user_regs_struct, field)                                                               \
    }
static const struct place {
    const char *name;
    size_t at;
} places[] = {PLACE(r8),  PLACE(r9),  PLACE(r10),     PLACE(r11),     PLACE(r12),      PLACE(r13), PLACE(r14),
              PLACE(r15), PLACE(rdi), PLACE(rsi),     PLACE(rbp),     PLACE(rbx),      PLACE(rdx), PLACE(rax),
              PLACE(rcx), PLACE(rsp), PLACE(rip),     PLACE(eflags),  PLACE(cs),       PLACE(ss),  PLACE(ds),
              PLACE(es),  PLACE(fs),  PLACE(fs_base), PLACE(gs_base), PLACE(orig_rax), PLACE(gs)};
enum { PLACES = sizeof places / sizeof *places, IN_BUNDLE = 18 }; /* the first ones */

static uint64_t vector[16][4];
static const uint32_t rounding = 0x1f81; /* mxcsr: the flag of an invalid operation is set, no other */
static int me, wide;                     /* the process id; does the processor have 32-byte registers? */

static void record(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 1000; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
    for (uint64_t i = 0; i < 64; i++) vector[i / 4][i % 4] = 0x0101010101010101u * (i + 1);
    me = getpid();
    __builtin_cpu_init();
    wide = __builtin_cpu_supports("avx") != 0;
}

#define VECTORS(move, name)                                                                                            \
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n " move " 32*\\i(%%rax), %%" name "\\i\n .endr\n"
#define SET(number, name) "movabs $0xaaaaaaaa000000" number ", %%" name "\n"
/* Sets the carry and direction flags. The other flags belong to the kernel and the processor. */
#define LOAD                                                                                                           \
    "testl %%ecx, %%ecx\n jz 1f\n" VECTORS("vmovdqu", "ymm") "1: jnz 2f\n" VECTORS(                                    \
        "movdqu", "xmm") "2: ldmxcsr %[rounding]\n fninit\n fldpi\n xorl %%eax, %%eax\n stc\n std\n" SET("01", "rbx")  \
        SET("02", "rcx") SET("03", "rdx") SET("04", "rsi") SET("05", "rdi") SET("06", "rbp") SET("08", "r8")           \
            SET("09", "r9") SET("0a", "r10") SET("0b", "r11") SET("0c", "r12") SET("0d", "r13") SET("0e", "r14")       \
                SET("0f", "r15")
#define DIE(how)                                                                                                       \
    do {                                                                                                               \
        record();                                                                                                      \
        __asm__ volatile(LOAD how "\n ud2"                                                                             \
                         :                                                                                             \
                         : "a"(vector), "c"(wide), [me] "m"(me), [rounding] "m"(rounding)                              \
                         : "memory");                                                                                  \
    } while (0)
#define SEND(number) "movl %[me], %%edi\n movl %[me], %%esi\n movl $" number ", %%edx\n movl $234, %%eax\n syscall"

static void by_segv(void) { DIE("movl $8, %%eax\n movl $1, (%%rax)"); }
static void by_wild(void) { DIE("movabs $0x7777777777777777, %%rax\n movl $1, (%%rax)"); } /* no canonical address */
static void by_fpe(void) { DIE("movl $7, %%eax\n movl $0, %%edx\n movl $0, %%ecx\n idivl %%ecx"); }
static void by_ill(void) { DIE("movabs $0xaaaaaaaa00000007, %%rax"); }
static void by_trap(void) { DIE("movabs $0xaaaaaaaa00000007, %%rax\n int3"); }
static void by_sent_segv(void) { DIE(SEND("11")); }
static void by_sent_abort(void) { DIE(SEND("6")); }

static const struct death {
    const char *name;
    void (*die)(void);
    int signal;
    bool sent; /* the signal comes from the process itself: its number is in rdi and rsi */
} deaths[] = {{"segv", by_segv, SIGSEGV, false},
              {"wild", by_wild, SIGSEGV, false},
              {"fpe", by_fpe, SIGFPE, false},
              {"ill", by_ill, SIGILL, false},
              {"trap", by_trap, SIGTRAP, false},
              {"sent segv", by_sent_segv, SIGSEGV, true},
              {"sent abort", by_sent_abort, SIGABRT, true}};

static uint64_t value(const struct core_note *t, const char *name)
{
    uint64_t v = 0;
    for (size_t i = 0; i < PLACES; i++)
        if (!strcmp(places[i].name, name)) memcpy(&v, (const char *)&t->registers + places[i].at, 8);
    return v;
}

/* Checks that the program loaded the intended values. */
static void check_loaded(const struct death *d, const struct core_note *t)
{
    assert_int_equal(t->signal, d->signal);
    assert_int_equal(value(t, "r8"), 0xaaaaaaaa00000008u);
    assert_int_equal(value(t, "rbp"), 0xaaaaaaaa00000006u);
    assert_int_equal(value(t, "r15"), 0xaaaaaaaa0000000fu);
    assert_int_equal(value(t, "eflags") & 0x401, 0x401);
    if (t->fp_bytes) assert_int_equal(t->fp[160 + 15 * 16], 61); /* xmm15 */
}

/* Compares all but orig_rax, the number of the system call that sent the signal. A handler's return does not restore
 * it. */
static void compare_general(const struct death *d, const struct core_note *with, const struct core_note *without)
{
    for (size_t i = 0; i < PLACES; i++) {
        uint64_t a = value(without, places[i].name), b = value(with, places[i].name);
        if (d->sent && !strcmp(places[i].name, "orig_rax")) continue;
        bool own = d->sent && (!strcmp(places[i].name, "rdi") || !strcmp(places[i].name, "rsi"));
        if (own) assert_int_equal(a, without->pid), assert_int_equal(b, with->pid);
        else if (a != b) fail_msg("%s: %s is %" PRIx64 ", without a recording %" PRIx64, d->name, places[i].name, b, a);
    }
}

/* Compares control words, status, mxcsr, xmm, and the upper halves of ymm. Excludes the address of the last
 * floating-point instruction, which some processors do not keep. */
static void compare_vectors(const struct death *d, const struct core_note *with, const struct core_note *without)
{
    assert_int_equal(with->fp_bytes, without->fp_bytes);
    assert_int_equal(with->state_bytes, without->state_bytes);
    if (memcmp(with->fp, without->fp, 6) || memcmp(with->fp + 24, without->fp + 24, 416 - 24))
        fail_msg("%s: floating point registers differ", d->name);
    if (memcmp(with->state + 24, without->state + 24, 416 - 24)) fail_msg("%s: extended state differs", d->name);
    if (!with->state_bytes || !wide) return;
    assert_true(with->state_bytes >= 576 + 256);
    assert_int_equal(without->state[576 + 15 * 16], 63); /* the value was loaded */
    if (memcmp(with->state + 576, without->state + 576, 256)) fail_msg("%s: ymm registers differ", d->name);
}

static void compare_bundle(const struct death *d, const struct core_note *core)
{
    struct fdr_file *f;
    char message[200] = "";
    const struct fdr_crash_thread_info *t;
    assert_int_equal(fdr_file_open(death_file(death_place_as_it_is()->dir), &f, message, sizeof message), FDR_WHOLE);
    assert_true(fdr_crash_threads(f, &t) > 0);
    assert_true(t->faulting && t->answered);
    assert_int_equal(t->register_count, 23);
    for (size_t i = 0; i < IN_BUNDLE; i++) {
        assert_string_equal(fdr_crash_register_name(t->machine, i), places[i].name);
        if (t->registers[i] != value(core, places[i].name))
            fail_msg("%s: %s is %" PRIx64 " in the bundle, %" PRIx64 " in the core", d->name, places[i].name,
                     t->registers[i], value(core, places[i].name));
    }
    fdr_file_close(f);
}

static void P10_all_registers_are_the_same(void **state)
{
    static struct core_note without, with;
    (void)state;
    __builtin_cpu_init();
    wide = __builtin_cpu_supports("avx") != 0;
    for (const struct death *d = deaths; d < deaths + sizeof deaths / sizeof *deaths; d++) {
        struct fdr_config c = death_config(death_place());
        int status, other;
        without = core_of(NULL, d->die, &status);
        if (!without.found) {
            print_message("%s: no core file here: skipped\n", d->name);
            skip();
        }
        with = core_of(&c, d->die, &other);
        assert_true(with.found);
        assert_int_equal(status, other);
        check_loaded(d, &without);
        compare_general(d, &with, &without);
        compare_vectors(d, &with, &without);
        compare_bundle(d, &with);
    }
    print_message("vectors of the core: %zu and %zu bytes\n", with.fp_bytes, with.state_bytes);
}
#else
static void P10_all_registers_are_the_same(void **state)
{
    (void)state;
    print_message("this test loads the registers of x86-64 only: skipped\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_all_registers_are_the_same)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
