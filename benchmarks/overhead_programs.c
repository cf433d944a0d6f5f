/* SPDX-License-Identifier: MIT */
/* Eleven small programs whose functions are hooked, for the part `overhead`. Each line on standard input starts a
 * slice; all slices are equal work. Prints the processor time of each in ms. Usage: overhead_programs NAME SIZE */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))
#define CALL  __attribute__((noinline))

static volatile uint64_t sink;
static uint64_t seed = 88172645463325252u;

static inline PLAIN uint64_t rnd(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}

static PLAIN double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Work without calls: n steps of some 1 ns. */
static inline PLAIN uint64_t compute(uint64_t n)
{
    uint64_t x = n;
    for (uint64_t i = 0; i < n; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* ---- recursion ---- */
static CALL int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static PLAIN void slice_fib(int size)
{
    for (int i = 0; i < size; i++) sink += (uint64_t)fib(21);
}

/* ---- a sort with a comparison function ---- */
static CALL int compare(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}
static CALL void sort(int *from, int count)
{
    int low = 0, high = count - 1, middle = from[count / 2];
    while (low <= high) {
        while (compare(&from[low], &middle) < 0) low++;
        while (compare(&middle, &from[high]) < 0) high--;
        if (low > high) continue;
        int other = from[low];
        from[low++] = from[high];
        from[high--] = other;
    }
    if (high > 0) sort(from, high + 1);
    if (count - low > 1) sort(from + low, count - low);
}
static PLAIN void slice_sort(int size)
{
    static int number[10000];
    for (int k = 0; k < size; k++) {
        for (int i = 0; i < 10000; i++) number[i] = (int)rnd();
        sort(number, 10000);
    }
}

/* ---- a hash table ---- */
static CALL uint64_t hash(const char *s)
{
    uint64_t h = 14695981039346656037u;
    while (*s) h = (h ^ (uint8_t)*s++) * 1099511628211u;
    return h;
}
static CALL bool equal(const char *a, const char *b) { return !strcmp(a, b); }
static char word[1 << 12][24];
static CALL bool find_or_add(char (*table)[24], const char *key)
{
    uint64_t i = hash(key) & 4095;
    while (table[i][0] && !equal(table[i], key)) i = (i + 1) & 4095;
    bool there = table[i][0];
    if (!there) strcpy(table[i], key);
    return there;
}
static PLAIN void slice_hash(int size)
{
    char key[24];
    for (int i = 0; i < size * 10000; i++) {
        snprintf(key, sizeof key, "key%d", (int)(rnd() % 3000));
        sink += find_or_add(word, key);
    }
}

/* ---- functions of some 100 ns to 10 us ---- */
static double left[512], right[512];
static CALL double dot(int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += left[i] * right[i];
    return s;
}
static CALL double row(int n)
{
    double s = 0;
    for (int i = 0; i < 16; i++) s += dot(n);
    return s;
}
static PLAIN void slice_matrix(int size)
{
    for (int i = 0; i < 512; i++) left[i] = right[i] = (double)(rnd() % 1000);
    for (int i = 0; i < size * 100; i++) sink += (uint64_t)row(64 + i % 448);
}

/* ---- a tree ---- */
struct node {
    struct node *child[2];
    uint64_t key;
};
static struct node node[20000];
static CALL struct node *insert(struct node *at, struct node *new)
{
    if (!at) return new;
    at->child[new->key > at->key] = insert(at->child[new->key > at->key], new);
    return at;
}
static PLAIN void slice_tree(int size)
{
    for (int k = 0; k < size; k++) {
        struct node *root = NULL;
        memset(node, 0, sizeof node);
        for (int i = 0; i < 20000; i++) {
            node[i].key = rnd();
            root = insert(root, &node[i]);
        }
    }
}

/* ---- an interpreter, with a function for each instruction ---- */
static int64_t stack[64];
static int top;
static CALL void op_push(int64_t v) { stack[top++ & 63] = v; }
static CALL void op_add(void) { top--, stack[(top - 1) & 63] += stack[top & 63]; }
static CALL void op_multiply(void) { top--, stack[(top - 1) & 63] *= stack[top & 63]; }
static CALL void op_swap(void)
{
    int64_t v = stack[(top - 1) & 63];
    stack[(top - 1) & 63] = stack[(top - 2) & 63];
    stack[(top - 2) & 63] = v;
}
static CALL void op_drop(void) { top--; }
static CALL void step(int op)
{
    switch (op) {
    case 0: op_push(op); break;
    case 1: op_add(); break;
    case 2: op_multiply(); break;
    case 3: op_swap(); break;
    default: op_drop();
    }
}
static PLAIN void slice_interpreter(int size)
{
    for (int i = 0; i < size * 100000; i++) step((int)(rnd() % 5));
}

/* ---- many functions ---- */
/* clang-format off */
#define F(n) static CALL uint64_t f##n(uint64_t x) { return compute(x + (n) % 40); }
#define NAME(n) f##n,
#define TEN(m, n) m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7) m(n##8) m(n##9)
#define HUNDRED(m, n) \
    TEN(m, n##0) TEN(m, n##1) TEN(m, n##2) TEN(m, n##3) TEN(m, n##4) \
    TEN(m, n##5) TEN(m, n##6) TEN(m, n##7) TEN(m, n##8) TEN(m, n##9)
HUNDRED(F, 1) HUNDRED(F, 2) HUNDRED(F, 3)
static uint64_t (*const many[])(uint64_t) = {HUNDRED(NAME, 1) HUNDRED(NAME, 2) HUNDRED(NAME, 3)};
/* clang-format on */
enum { MANY = sizeof many / sizeof *many };
static PLAIN void slice_many(int size)
{
    for (int i = 0; i < size * 10000; i++) sink += many[rnd() % MANY](i % 64);
}

/* ---- long functions: nothing to mute ---- */
static CALL void relax(void) { sink += compute(200000); }
static PLAIN void slice_long(int size)
{
    for (int i = 0; i < size * 10; i++) relax();
}

/* ---- a list in memory order of chance: each call misses the caches ---- */
struct link {
    struct link *next;
    uint64_t value[15];
};
enum { LINKS = 1 << 17 };
static struct link *links;
static CALL struct link *visit(struct link *l)
{
    sink += l->value[0]++;
    return l->next;
}
static PLAIN void slice_list(int size)
{
    if (!links) {
        links = calloc(LINKS, sizeof *links);
        for (uint32_t i = 0; i < LINKS; i++) links[i].next = &links[(i * 40503u + 1) % LINKS];
    }
    struct link *l = links;
    for (int i = 0; i < size * 10000; i++) l = visit(l);
}

/* ---- threads ---- */
static PLAIN void *thread(void *size)
{
    static __thread char mine[1 << 12][24];
    char key[24];
    uint64_t own = 88172645463325252u + (uint64_t)(uintptr_t)&own;
    for (int i = 0; i < *(int *)size * 5000; i++) {
        own ^= own << 13, own ^= own >> 7, own ^= own << 17;
        snprintf(key, sizeof key, "key%d", (int)(own % 3000));
        find_or_add(mine, key);
        if (i % 8 == 0) row(64);
    }
    return NULL;
}
static PLAIN void slice_threads(int size)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, thread, &size);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
}

/* ---- the adversary: bursts of one function each, of 1 to 200 ms, with quiet times between ---- */
static PLAIN void slice_bursts(int size)
{
    seed = 88172645463325252u; /* each slice is the same */
    for (int work = size * 100; work > 0;) {
        int burst = 1 << rnd() % 8;
        if (burst > work) burst = work;
        work -= burst;
        if (rnd() % 2) {
            sink += compute((uint64_t)burst * 1000000);
            continue;
        }
        uint64_t (*f)(uint64_t) = many[rnd() % MANY];
        for (int i = 0; i < burst * 20000; i++) sink += f(i % 8);
    }
}

int main(int argc, char **argv) PLAIN;
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*slice)(int);
    } programs[] = {{"fib", slice_fib},         {"sort", slice_sort},    {"hash", slice_hash},
                    {"matrix", slice_matrix},   {"tree", slice_tree},    {"interpreter", slice_interpreter},
                    {"many", slice_many},       {"long", slice_long},    {"list", slice_list},
                    {"threads", slice_threads}, {"bursts", slice_bursts}};
    if (argc != 3) return fprintf(stderr, "usage: overhead_programs NAME SIZE\n"), 2;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(argv[1], programs[i].name)) continue;
        for (int c; (c = getchar()) == '\n';) {
            double began = cpu_ms();
            programs[i].slice(atoi(argv[2]));
            printf("%.3f\n", cpu_ms() - began);
            fflush(stdout);
        }
        return 0;
    }
    return fprintf(stderr, "overhead_programs: no program '%s'\n", argv[1]), 2;
}
