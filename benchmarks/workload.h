/* SPDX-License-Identifier: MIT */
/* The work of the call benchmarks: 40 regions in a call tree of depth 1 to 6. About half of the calls are leaves; no
 * call does any work. Include this once per kind of recorder, with W_PREFIX, W_ENTER(region) and W_LEAVE(region)
 * defined. W_PREFIX_pass() is then one round through the tree. Each kind has its own copy of the same functions. */
#ifndef FDR_BENCH_WORKLOAD_H
#define FDR_BENCH_WORKLOAD_H
#define W_REGIONS     40
#define W_JOIN2(a, b) a##_##b
#define W_JOIN(a, b)  W_JOIN2(a, b)
#define W_NAME(n)     W_JOIN(W_PREFIX, n)
#define W_FENCE()     __asm__ volatile("" ::: "memory")
#define W_GO(n)       W_NAME(n)()
#define W_TIMES(k)    for (int times_ = 0; times_ < (k); times_++)
#define W_BOTH(a, b)  (W_GO(a), W_GO(b))
#define W_REGION(n, ...)                                                                                               \
    static __attribute__((noinline)) void W_NAME(n)(void)                                                              \
    {                                                                                                                  \
        W_ENTER(n);                                                                                                    \
        W_FENCE();                                                                                                     \
        __VA_ARGS__;                                                                                                   \
        W_FENCE();                                                                                                     \
        W_LEAVE(n);                                                                                                    \
    }
#define W_LEAF(n) W_REGION(n, (void)0)
#endif

/* depth 6 */
W_LEAF(32)
W_LEAF(33)
W_LEAF(34)
W_LEAF(35)
W_LEAF(36)
W_LEAF(37)
W_LEAF(38)
W_LEAF(39)
/* depth 5 */
W_REGION(24, W_GO(32))
W_REGION(25, W_GO(33); W_GO(34))
W_LEAF(26)
W_REGION(27, W_TIMES(3) W_GO(35))
W_REGION(28, W_GO(36))
W_LEAF(29)
W_REGION(30, W_GO(37); W_GO(38))
W_REGION(31, W_GO(39))
/* depth 4 */
W_REGION(16, W_GO(24); W_GO(26))
W_REGION(17, W_GO(25))
W_LEAF(18)
W_REGION(19, W_GO(27))
W_REGION(20, W_TIMES(2) W_GO(29))
W_REGION(21, W_GO(28); W_GO(30))
W_LEAF(22)
W_REGION(23, W_GO(31))
/* depth 3 */
W_REGION(8, W_GO(16); W_GO(18))
W_REGION(9, W_GO(17))
W_LEAF(10)
W_REGION(11, W_GO(19); W_GO(20))
W_REGION(12, W_TIMES(2) W_GO(22))
W_REGION(13, W_GO(21))
W_REGION(14, W_GO(23); W_GO(18))
W_LEAF(15)
/* depth 2 */
W_REGION(2, W_TIMES(2) W_BOTH(8, 10))
W_REGION(3, W_GO(9); W_GO(11))
W_LEAF(4)
W_REGION(5, W_GO(12); W_GO(13))
W_REGION(6, W_TIMES(4) W_GO(15))
W_REGION(7, W_GO(14))
/* depth 1 */
W_REGION(0, W_TIMES(2) W_BOTH(2, 3); W_GO(4); W_GO(5))
W_REGION(1, W_GO(6); W_GO(7); W_GO(4))

static void W_NAME(pass)(void)
{
    W_TIMES(3) W_GO(0);
    W_GO(1);
}
#undef W_PREFIX
#undef W_ENTER
#undef W_LEAVE
