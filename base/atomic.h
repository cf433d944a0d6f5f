/* SPDX-License-Identifier: MIT */
/* Atomics (this header), bits, clocks, racy reads: the lowest room, used by the library and its reader.
 *
 *   atomic.h          atomic operations                bits.h   arithmetic on bits
 *   clock.h, clock.c  the clocks                       racy.h   reads of words that another thread may write
 *
 * The memory order is part of the name of each atomic operation; there is no default. Only include/fdr/, which may not
 * include this header, and some adapters spell atomics out; they use relaxed ones.
 *
 *   relaxed   no order between cores. fdri_atomic_signal_fence keeps program order within the thread, as the thread's
 *             own signal handlers see it; the death of the process needs no more than that
 *   release   a thread that acquires the value sees all earlier writes
 *   acquire   pairs with a release
 *   acq_rel   both; the only read-modify-write order used on lists
 * Each acquire and release outside of this header carries a label that names its pair; docs/ORDERING.md has the
 * table. */
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

/* Adds to a counter that only its owner writes while other threads read it. This is one add to memory; the atomic
 * spelling makes compilers emit three instructions. No supported processor tears an aligned word. ThreadSanitizer needs
 * the atomic spelling. */
#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
#define fdri_atomic_bump_relaxed(p, v) fdri_atomic_store_relaxed(p, fdri_atomic_load_relaxed(p) + (v))
#else
#define fdri_atomic_bump_relaxed(p, v) ((void)(*(p) += (v)))
#endif

/* The same, with release order. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(FDRI_ATOMIC_TSAN)
#define fdri_atomic_bump_release(p, v) (__atomic_signal_fence(__ATOMIC_SEQ_CST), (void)(*(p) += (v)))
#else
#define fdri_atomic_bump_release(p, v) fdri_atomic_store_release(p, fdri_atomic_load_relaxed(p) + (v))
#endif

/* Fixes the order in which this thread's signal handlers, and a reader of its memory after its death, see its
 * stores. */
#define fdri_atomic_signal_fence()  __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define fdri_atomic_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define fdri_atomic_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif
