/* SPDX-License-Identifier: MIT */
/* Machine stacks: registers of an interrupted thread, its own stack, sizes of frames, a guard for foreign code. Files:
 * context (this header: where a thread was when a signal interrupted it), registers, thread_stack, frame_size,
 * entry_hook, fault_guard. Neighbours: recorder/jumps/, sampler/samples/ and export/crash/ look at stacks; below:
 * base/system/. */
#ifndef FDRI_BASE_STACK_CONTEXT_H
#define FDRI_BASE_STACK_CONTEXT_H
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

struct fdri_stack_context {
    uint64_t pc, sp, fp, link;
}; /* link: return address if it is in a register, as in leaf functions of aarch64; else 0 */

static inline struct fdri_stack_context fdri_stack_context_of(const ucontext_t *u)
{
#if defined(__x86_64__)
    const greg_t *r = u->uc_mcontext.gregs;
    return (struct fdri_stack_context){(uint64_t)r[REG_RIP], (uint64_t)r[REG_RSP], (uint64_t)r[REG_RBP], 0};
#elif defined(__aarch64__)
    return (struct fdri_stack_context){u->uc_mcontext.pc, u->uc_mcontext.sp, u->uc_mcontext.regs[29],
                                       u->uc_mcontext.regs[30]};
#else
    (void)u;
    return (struct fdri_stack_context){0, 0, 0, 0};
#endif
}

/* The target of the direct call that returns to `address`; `before` are the FDRI_STACK_CALL_BYTES of code before
 * `address`. 0: there is no direct call. */
#define FDRI_STACK_CALL_BYTES 5u
static inline uint64_t fdri_stack_call_target(const uint8_t before[FDRI_STACK_CALL_BYTES], uint64_t address)
{
    int32_t distance;
#if defined(__x86_64__)
    memcpy(&distance, before + 1, 4);
    return before[0] == 0xe8 ? address + (uint64_t)(int64_t)distance : 0;
#elif defined(__aarch64__)
    memcpy(&distance, before + 1, 4);
    uint32_t code = (uint32_t)distance;
    if (code >> 26 != 0x25) return 0;
    return address - 4 + (uint64_t)((int64_t)(int32_t)(code << 6) >> 4);
#else
    (void)before, (void)address, (void)distance;
    return 0;
#endif
}
#endif
