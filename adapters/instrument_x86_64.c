/* SPDX-License-Identifier: MIT */
/* The hooks that g++ calls at the first instruction of each function that it does not inline (-mfentry), and before
 * each return (-minstrument-return=call). The compiler expects all registers kept: at the entry those of arguments,
 * before the return those of the result. A function that only passes its arguments on keeps those as well.
 *
 * While nothing records, a hook is a load, a comparison and a return. Otherwise it keeps the general registers and
 * calls functions that use no others. For rare cases it keeps the vector registers, too, in the width that is in use,
 * and calls the functions for everything. The stack need not be aligned: g++ does not align it for functions of the
 * same file that do not need it. */
#include <fdr/fdr.h>
#include <stdint.h>

#define HOOK FDR_API __attribute__((naked, no_instrument_function, hot, used))

/* The parts of the state that XSAVE must keep beyond the xmm registers; 0: the processor has none. And: does it tell
 * which of them are in use? */
struct fdr_instrument_wide {
    uint32_t parts, tells;
};
struct fdr_instrument_wide fdr_instrument_wide_ __attribute__((visibility("hidden")));

/* In an archive, the file with the start of the recording must be linked with this one. */
void fdr_instrument_start_(void) __attribute__((visibility("hidden")));
__attribute__((used)) static void (*const needed)(void) = fdr_instrument_start_;

#define PUSH(r) "pushq %" #r "\n\t.cfi_adjust_cfa_offset 8\n\t"
#define POP(r)  "popq %" #r "\n\t.cfi_adjust_cfa_offset -8\n\t"
#define RETURN_IF_OFF                                                                                                  \
    "movq fdr_switch_@GOTPCREL(%rip), %r11\n\t"                                                                        \
    "cmpl $0, (%r11)\n\t"                                                                                              \
    "je 1f\n\t"
#define KEEP            PUSH(rax) PUSH(rcx) PUSH(rdx) PUSH(rsi) PUSH(rdi) PUSH(r8) PUSH(r9) PUSH(r10)
#define RESTORE         POP(r10) POP(r9) POP(r8) POP(rdi) POP(rsi) POP(rdx) POP(rcx) POP(rax)
#define CALL(function)  "call *" #function "@GOTPCREL(%rip)\n\t"
#define EACH_VECTOR(op) op(0, 0) op(1, 16) op(2, 32) op(3, 48) op(4, 64) op(5, 80) op(6, 96) op(7, 112)
#define STORE(n, at)    "movups %xmm" #n ", " #at "(%rsp)\n\t"
#define LOAD(n, at)     "movups " #at "(%rsp), %xmm" #n "\n\t"
/* Arguments and results lie in registers 0 to 7. If the wide parts of all registers are unused, XSAVE is not needed;
 * it takes many times as long. XSAVE needs at most 1664 bytes for these parts of the state. It leaves the rest of its
 * header alone, and XRSTOR wants zeros there. -8(%rbp): XSAVE's parts, or 0. */
#define KEEP_VECTORS                                                                                                   \
    "pushq %rbp\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset rbp, 0\n\t"                                             \
    "movq %rsp, %rbp\n\t.cfi_def_cfa_register rbp\n\t"                                                                 \
    "subq $1792, %rsp\n\t"                                                                                             \
    "andq $-64, %rsp\n\t"                                                                                              \
    "movl fdr_instrument_wide_(%rip), %eax\n\t"                                                                        \
    "cmpl $0, 4+fdr_instrument_wide_(%rip)\n\t"                                                                        \
    "je 4f\n\t"                                                                                                        \
    "movl $1, %ecx\n\t"                                                                                                \
    "xgetbv\n\t"                                                                                                       \
    "andl $0x44, %eax\n\t"                                                                                             \
    "je 4f\n\t"                                                                                                        \
    "movl fdr_instrument_wide_(%rip), %eax\n"                                                                          \
    "4:\tmovl %eax, -8(%rbp)\n\t" EACH_VECTOR(                                                                         \
        STORE) "testl %eax, %eax\n\t"                                                                                  \
               "je 5f\n\t"                                                                                             \
               "xorl %edx, %edx\n\t"                                                                                   \
               "movq %rdx, 512(%rsp)\n\tmovq %rdx, 520(%rsp)\n\tmovq %rdx, 528(%rsp)\n\tmovq %rdx, 536(%rsp)\n\t"      \
               "movq %rdx, 544(%rsp)\n\tmovq %rdx, 552(%rsp)\n\tmovq %rdx, 560(%rsp)\n\tmovq %rdx, 568(%rsp)\n\t"      \
               "xsave (%rsp)\n"                                                                                        \
               "5:\t"
#define RESTORE_VECTORS                                                                                                \
    "movl -8(%rbp), %eax\n\t"                                                                                          \
    "testl %eax, %eax\n\t"                                                                                             \
    "je 4f\n\t"                                                                                                        \
    "xorl %edx, %edx\n\t"                                                                                              \
    "xrstor (%rsp)\n\t"                                                                                                \
    "jmp 5f\n"                                                                                                         \
    "4:\t" EACH_VECTOR(LOAD) "5:\tmovq %rbp, %rsp\n\t.cfi_def_cfa_register rsp\n\t" POP(rbp) ".cfi_restore rbp\n\t"

/* clang-format off */
/* Behind the eight registers lie the return address of the hook, and that of the function. */
HOOK void __fentry__(void);
void __fentry__(void)
{
    __asm__(RETURN_IF_OFF
            KEEP
            "movq 64(%rsp), %rdi\n\t"
            "movq 72(%rsp), %rsi\n\t"
            "leaq 72(%rsp), %rdx\n\t"
            CALL(fdr_try_enter_)
            "testl %eax, %eax\n\t"
            "je 2f\n"
            "3:\n\t.cfi_remember_state\n\t"
            RESTORE
            "1:\tret\n"
            "2:\n\t.cfi_restore_state\n\t"
            KEEP_VECTORS
            "movq 72(%rbp), %rdi\n\t"
            "movq 80(%rbp), %rsi\n\t"
            "leaq 80(%rbp), %rdx\n\t"
            CALL(fdr_enter_at_entry_)
            RESTORE_VECTORS
            "jmp 3b");
}

HOOK void __return__(void);
void __return__(void)
{
    __asm__(RETURN_IF_OFF
            KEEP
            "leaq 72(%rsp), %rdi\n\t"
            CALL(fdr_try_leave_)
            "testq %rax, %rax\n\t"
            "jne 2f\n"
            "3:\n\t.cfi_remember_state\n\t"
            RESTORE
            "1:\tret\n"
            "2:\n\t.cfi_restore_state\n\t"
            "movq %rax, %r11\n\t"
            KEEP_VECTORS
            "leaq 80(%rbp), %rdi\n\t"
            "movq %r11, %rsi\n\t"
            CALL(fdr_leave_frame_)
            RESTORE_VECTORS
            "jmp 3b");
}
/* clang-format on */

/* Runs before anything records through these hooks. Parts: SSE, AVX, and the upper halves of AVX-512's registers. */
__attribute__((constructor(101), no_instrument_function)) static void learn_state(void)
{
    const uint32_t wanted = 0x46;
    uint32_t enabled, high, a = 0xd, b, c = 1, d;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx")) return;
    __asm__("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    fdr_instrument_wide_ = (struct fdr_instrument_wide){.parts = enabled & wanted, .tells = a & 4};
}
