/* SPDX-License-Identifier: MIT */
/* Reading memory that its owner may write at the same time. The result may be torn; callers check it by a generation, a
 * second reading or a checksum. ThreadSanitizer cannot know these checks, so these functions exclude it. */
#ifndef FDRI_BASE_RACY_H
#define FDRI_BASE_RACY_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"

#define FDRI_RACY __attribute__((no_sanitize("thread")))

/* `count` is a multiple of 8; both sides are aligned to 8. */
FDRI_RACY static inline void fdri_racy_copy(void *to, const void *from, size_t count)
{
#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
    for (size_t i = 0; i < count / 8; i++) ((volatile uint64_t *)to)[i] = ((const volatile uint64_t *)from)[i];
#else
    memcpy(to, from, count);
#endif
}

/* Reads a link in memory that may have changed hands and then contains arbitrary bytes. The value is valid only for the
 * thread whose following compare-and-swap succeeds; the swap fails if the memory changed hands. The load acquires the
 * stores released to *p. ThreadSanitizer saw no load, so the winner reports it by fdri_racy_peeked. */
FDRI_RACY static inline uint32_t fdri_racy_peek_acquire(const uint32_t *p) { return fdri_atomic_load_acquire(p); }

#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
void __tsan_acquire(void *p); /* of ThreadSanitizer's runtime */
void __tsan_release(void *p);
static inline void fdri_racy_peeked(uint32_t *p) { __tsan_acquire(p); }
static inline void fdri_racy_hand_over(uint32_t *p) { __tsan_release(p); }
static inline void fdri_racy_take_over(uint32_t *p) { __tsan_acquire(p); }
#else
static inline void fdri_racy_peeked(uint32_t *p) { (void)p; }
/* hand_over happens before take_over, by means that ThreadSanitizer does not see. */
static inline void fdri_racy_hand_over(uint32_t *p) { (void)p; }
static inline void fdri_racy_take_over(uint32_t *p) { (void)p; }
#endif

/* Zeroes memory that was a free bin. A thread that lost the race for the bin may still read its link; it finds out by
 * the tag. */
FDRI_RACY static inline void fdri_racy_clear(void *to, size_t count)
{
#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
    for (size_t i = 0; i < count / 8; i++) ((volatile uint64_t *)to)[i] = 0;
#else
    memset(to, 0, count);
#endif
}
#endif
