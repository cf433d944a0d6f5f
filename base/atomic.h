/* SPDX-License-Identifier: MIT */
/* The atomics of the library and its reader; the order is in the name and there is no default. Spelled out elsewhere
 * are only relaxed ones of include/fdr/ and adapters/, which may not include this (docs/ORDERING.md).
 *   relaxed   no order between cores; program order within the thread is kept against its own handlers by
 *             fdri_atomic_signal_fence, which is all that one's own death needs
 *   release   what was written before is seen by whoever acquires this value
 *   acquire   pairs with a release
 *   acq_rel   both; the only read-modify-write order used on lists
 * Every use outside this file is labelled with its pair; docs/ORDERING.md has the table. */
#ifndef FDRI_BASE_ATOMIC_H
#define FDRI_BASE_ATOMIC_H
#include <stdbool.h>
#include <stdint.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define FDRI_ATOMIC_TSAN 1
#endif
#endif

#define fdri_atomic_load_relaxed(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define fdri_atomic_load_acquire(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define fdri_atomic_store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define fdri_atomic_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define fdri_atomic_add_relaxed(p, v)   __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define fdri_atomic_sub_relaxed(p, v)   __atomic_fetch_sub(p, v, __ATOMIC_RELAXED)
#define fdri_atomic_or_relaxed(p, v)    __atomic_fetch_or(p, v, __ATOMIC_RELAXED)
#define fdri_atomic_and_relaxed(p, v)   __atomic_fetch_and(p, v, __ATOMIC_RELAXED)
#define fdri_atomic_swap_relaxed(p, v)  __atomic_exchange_n(p, v, __ATOMIC_RELAXED)
#define fdri_atomic_add_acq_rel(p, v)   __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL)
#define fdri_atomic_sub_acq_rel(p, v)   __atomic_fetch_sub(p, v, __ATOMIC_ACQ_REL)
#define fdri_atomic_or_acq_rel(p, v)    __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL)
#define fdri_atomic_and_acq_rel(p, v)   __atomic_fetch_and(p, v, __ATOMIC_ACQ_REL)
#define fdri_atomic_swap_acq_rel(p, v)  __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL)

static inline bool fdri_atomic_cas_acq_rel_u64(uint64_t *p, uint64_t *expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
static inline bool fdri_atomic_cas_acq_rel_u16(uint16_t *p, uint16_t *expected, uint16_t desired)
{
    return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
static inline bool fdri_atomic_cas_acq_rel_u32(uint32_t *p, uint32_t *expected, uint32_t desired)
{
    return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* A counter only its owner writes while others read it. One add to memory, where the atomic spelling makes compilers
 * emit three instructions; an aligned word is not torn on any machine we build for. ThreadSanitizer gets the spelling
 * it can reason about. */
#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
#define fdri_atomic_bump_relaxed(p, v) fdri_atomic_store_relaxed(p, fdri_atomic_load_relaxed(p) + (v))
#else
#define fdri_atomic_bump_relaxed(p, v) ((void)(*(p) += (v)))
#endif

/* The same as a release. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(FDRI_ATOMIC_TSAN)
#define fdri_atomic_bump_release(p, v) (__atomic_signal_fence(__ATOMIC_SEQ_CST), (void)(*(p) += (v)))
#else
#define fdri_atomic_bump_release(p, v) fdri_atomic_store_release(p, fdri_atomic_load_relaxed(p) + (v))
#endif

/* Orders this thread's stores as its own signal handlers, and a reader of its memory after its death, see them. */
#define fdri_atomic_signal_fence()  __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define fdri_atomic_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define fdri_atomic_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif
