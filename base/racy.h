/* SPDX-License-Identifier: MIT */
/* Reading memory that its owner goes on writing. What is read may be torn; the callers check what they read against a
 * generation, a second reading or a checksum, which is nothing ThreadSanitizer can know: so it is kept out, by name. */
#ifndef FDR_BASE_RACY_H
#define FDR_BASE_RACY_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"

#define FDR_RACY __attribute__((no_sanitize("thread")))

/* `count` is a multiple of 8, both sides are aligned to 8. */
FDR_RACY static inline void fdr_copy_racy(void *to, const void *from, size_t count)
{
#if defined(__SANITIZE_THREAD__) || defined(FDR_TSAN_)
    for (size_t i = 0; i < count / 8; i++) ((volatile uint64_t *)to)[i] = ((const volatile uint64_t *)from)[i];
#else
    memcpy(to, from, count);
#endif
}

/* A link in memory that may be somebody else's by now, and then says anything: the value counts only for who wins a
 * swap that fails in that case. Acquires what was released to *p; the winner tells ThreadSanitizer so, which saw no
 * load. */
FDR_RACY static inline uint32_t fdr_peek_acquire(const uint32_t *p) { return fdr_load_acquire(p); }

#if defined(__SANITIZE_THREAD__) || defined(FDR_TSAN_)
void __tsan_acquire(void *p); /* of its runtime */
void __tsan_release(void *p);
static inline void fdr_peeked(uint32_t *p) { __tsan_acquire(p); }
static inline void fdr_hand_over(uint32_t *p) { __tsan_release(p); }
static inline void fdr_take_over(uint32_t *p) { __tsan_acquire(p); }
#else
static inline void fdr_peeked(uint32_t *p) { (void)p; }
/* What was before the one comes before what follows the other, by means that it does not see. */
static inline void fdr_hand_over(uint32_t *p) { (void)p; }
static inline void fdr_take_over(uint32_t *p) { (void)p; }
#endif

/* Zeroes memory that was a free bin: who lost the race for it may still read its link, and finds out by the tag. */
FDR_RACY static inline void fdr_clear_racy(void *to, size_t count)
{
#if defined(__SANITIZE_THREAD__) || defined(FDR_TSAN_)
    for (size_t i = 0; i < count / 8; i++) ((volatile uint64_t *)to)[i] = 0;
#else
    memset(to, 0, count);
#endif
}
#endif
