/* SPDX-License-Identifier: MIT */
/* Sanitizers make programs 5 to 50 times slower. So a test repeats less there, if its proof does not depend on the
 * number: enum { ROUNDS = SANITIZED ? 40 : 300 }. */
#ifndef FDRI_TESTS_SANITIZED_H
#define FDRI_TESTS_SANITIZED_H
#include "base/atomic.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(FDRI_ATOMIC_TSAN)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#endif
