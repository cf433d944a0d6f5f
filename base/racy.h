/* SPDX-License-Identifier: MIT */
/* Reading memory that its owner goes on writing. What is read may be torn; the callers check what they read against a
 * generation, a second reading or a checksum, which is nothing ThreadSanitizer can know: so it is kept out, by name. */
#ifndef FDRI_BASE_RACY_H
#define FDRI_BASE_RACY_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"

#define FDRI_RACY __attribute__((no_sanitize("thread")))

/* `count` is a multiple of 8, both sides are aligned to 8. */
FDRI_RACY static inline void fdri_racy_copy(void *to, const void *from, size_t count)
{
#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
    for (size_t i = 0; i < count / 8; i++) ((volatile uint64_t *)to)[i] = ((const volatile uint64_t *)from)[i];
#else
    memcpy(to, from, count);
#endif
}

/* A link in memory that may be somebody else's by now, and then says anything: the value counts only for who wins a
 * swap that fails in that case. Acquires what was released to *p; the winner tells ThreadSanitizer so, which saw no
 * load. */
FDRI_RACY static inline uint32_t fdri_racy_peek_acquire(const uint32_t *p) { return fdri_atomic_load_acquire(p); }

#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
void __tsan_acquire(void *p); /* of its runtime */
void __tsan_release(void *p);
static inline void fdri_racy_peeked(uint32_t *p) { __tsan_acquire(p); }
static inline void fdri_racy_hand_over(uint32_t *p) { __tsan_release(p); }
static inline void fdri_racy_take_over(uint32_t *p) { __tsan_acquire(p); }
#else
static inline void fdri_racy_peeked(uint32_t *p) { (void)p; }
/* What was before the one comes before what follows the other, by means that it does not see. */
static inline void fdri_racy_hand_over(uint32_t *p) { (void)p; }
static inline void fdri_racy_take_over(uint32_t *p) { (void)p; }
#endif

/* Zeroes memory that was a free bin: who lost the race for it may still read its link, and finds out by the tag. */
FDRI_RACY static inline void fdri_racy_clear(void *to, size_t count)
{
#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
    for (size_t i = 0; i < count / 8; i++) ((volatile uint64_t *)to)[i] = 0;
#else
    memset(to, 0, count);
#endif
}
#endif
