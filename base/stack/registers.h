/* SPDX-License-Identifier: MIT */
/* The registers of an interrupted context, and a test for return addresses. */
#ifndef FDRI_BASE_STACK_REGISTERS_H
#define FDRI_BASE_STACK_REGISTERS_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* The order in which a bundle stores registers. x86-64: the kernel's gregs (r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip
 * eflags csgsfs err trapno oldmask cr2). aarch64: x0..x30 sp pc pstate fault address. */
#if defined(__x86_64__)
enum { FDRI_STACK_REGISTERS = 23, FDRI_STACK_MACHINE = 62 };
static inline void fdri_stack_registers(const ucontext_t *c, uint64_t *to)
{
    for (int i = 0; i < FDRI_STACK_REGISTERS; i++) to[i] = (uint64_t)c->uc_mcontext.gregs[i];
}
static inline uint64_t fdri_stack_registers_sp(const uint64_t *r) { return r[15]; }
static inline uint64_t fdri_stack_registers_pc(const uint64_t *r) { return r[16]; }
static inline uint64_t fdri_stack_registers_fp(const uint64_t *r) { return r[10]; }
static inline void fdri_stack_registers_place(uint64_t *r, uint64_t sp, uint64_t pc) { r[15] = sp, r[16] = pc; }
/* True if the instruction before p may be a call. Reads up to 7 bytes before p. */
static inline bool fdri_stack_after_call(const uint8_t *p)
{
    if (p[-5] == 0xe8) return true;
    for (int n = 2; n <= 7; n++)
        if (p[-n] == 0xff && (p[1 - n] & 0x38) == 0x10) return true;
    return false;
}
#elif defined(__aarch64__)
enum { FDRI_STACK_REGISTERS = 35, FDRI_STACK_MACHINE = 183 };
static inline void fdri_stack_registers(const ucontext_t *c, uint64_t *to)
{
    for (int i = 0; i < 31; i++) to[i] = c->uc_mcontext.regs[i];
    to[31] = c->uc_mcontext.sp;
    to[32] = c->uc_mcontext.pc;
    to[33] = c->uc_mcontext.pstate;
    to[34] = c->uc_mcontext.fault_address;
}
static inline uint64_t fdri_stack_registers_sp(const uint64_t *r) { return r[31]; }
static inline uint64_t fdri_stack_registers_pc(const uint64_t *r) { return r[32]; }
static inline uint64_t fdri_stack_registers_fp(const uint64_t *r) { return r[29]; }
static inline void fdri_stack_registers_place(uint64_t *r, uint64_t sp, uint64_t pc) { r[31] = sp, r[32] = pc; }
static inline bool fdri_stack_after_call(const uint8_t *p)
{
    uint32_t i;
    memcpy(&i, p - 4, 4);
    return (i & 0xfc000000u) == 0x94000000u || (i & 0xfffffc1fu) == 0xd63f0000u;
}
#else
enum { FDRI_STACK_REGISTERS = 1, FDRI_STACK_MACHINE = 0 };
static inline void fdri_stack_registers(const ucontext_t *c, uint64_t *to) { (void)c, to[0] = 0; }
static inline uint64_t fdri_stack_registers_sp(const uint64_t *r) { return r[0]; }
static inline uint64_t fdri_stack_registers_pc(const uint64_t *r) { return r[0]; }
static inline uint64_t fdri_stack_registers_fp(const uint64_t *r) { return r[0]; }
static inline void fdri_stack_registers_place(uint64_t *r, uint64_t sp, uint64_t pc) { (void)sp, r[0] = pc; }
static inline bool fdri_stack_after_call(const uint8_t *p)
{
    (void)p;
    return true;
}
#endif
#endif
