/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P1,P7
 * P1, P7: the arena lies in pages of 2 MiB if the kernel provides them on request, in a file as in anonymous
 * memory. No page is missing, so reading it causes no page faults. The address ranges that stay after a recording
 * must not pile up. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include <fdr/fdr.h>

#include "base/bits.h"
#include "recorder/recording.h"
#include "recorder/memory/memory.h"

enum { LARGE = 2 << 20, ARENA = 4 * LARGE };

/* kB of large pages in the mapping that begins at `at`, summed up over all lines of its entry; -1: no such mapping. */
static long large_kb(const void *at)
{
    static const char *const names[] = {"AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"};
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool here = false;
    long sum = -1, kb;
    unsigned long from, to;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            here = from == (uintptr_t)at;
            if (here) sum = 0;
        }
        for (size_t i = 0; here && i < 3; i++)
            if (strncmp(line, names[i], strlen(names[i])) == 0 && sscanf(line + strlen(names[i]), "%ld", &kb) == 1)
                sum += kb;
    }
    fclose(f);
    return sum;
}

static int ram_file(uint64_t bytes)
{
    int fd = memfd_create("fdr-test-pages", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

static long faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt + u.ru_majflt;
}

/* Asks the kernel without fdr: does it have large pages for such memory now? */
static bool kernel_can(bool file)
{
    uint8_t *place = mmap(NULL, 2 * LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(place, MAP_FAILED);
    uint8_t *at = place + (fdri_bits_align_up((uintptr_t)place, LARGE) - (uintptr_t)place);
    int fd = file ? ram_file(LARGE) : -1, flags = MAP_FIXED | (file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
    assert_ptr_equal(mmap(at, LARGE, PROT_READ | PROT_WRITE, flags, fd, 0), at);
    at[0] = 1;
    bool can = madvise(at, LARGE, 25 /* MADV_COLLAPSE */) == 0;
    munmap(place, 2 * LARGE);
    if (file) close(fd);
    return can;
}

/* Counts no faults of ThreadSanitizer's shadow memory. */
__attribute__((no_sanitize("thread"))) static long faults_of_reading(const volatile uint8_t *base)
{
    unsigned sum = 0;
    long before = faults();
    for (uint64_t off = 0; off < ARENA; off += 4096) sum += base[off];
    (void)sum;
    return faults() - before;
}

static void large_as(bool file)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "8M",
                           .signal = "none",
                           .arena = file ? "mapped" : "anonymous"};
    if (!kernel_can(file)) {
        print_message("skipped: this kernel makes no large pages when asked\n");
        skip();
    }
    assert_int_equal(fdr_init(&c), 0);
    const uint8_t *base = fdri_life_recording.arena.base;
    assert_int_equal((uintptr_t)base % LARGE, 0);
    assert_true(large_kb(base) >= LARGE >> 10); /* memory may be fragmented, so not all pages have to be large */
    assert_int_equal(faults_of_reading(base), 0);
    fdr_finalize();
}
static void P1_a_mapped_arena_lies_in_large_pages(void **state) { (void)state, large_as(true); }
static void P1_an_anonymous_arena_lies_in_large_pages(void **state) { (void)state, large_as(false); }

/* No neighbouring mapping can merge with this one. */
static void alone(const uint8_t *m, uint64_t bytes)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512], rights[8];
    unsigned long from, to;
    bool found = false;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3) continue;
        if (from == (uintptr_t)m) {
            found = true;
            assert_int_equal(to - from, bytes);
        } else if (to == (uintptr_t)m || from == (uintptr_t)m + bytes) {
            assert_memory_equal(rights, "---p", 4);
        }
    }
    fclose(f);
    assert_true(found);
}

static void a_mapping_stands_alone_whatever_its_size(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {192 << 10, 1 << 20, LARGE - 4096, LARGE, LARGE + 4096, ARENA + (1 << 20)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *m = fdri_memory_pages_map(sizes[i], -1);
        assert_ptr_not_equal(m, MAP_FAILED);
        assert_int_equal((uintptr_t)m % (sizes[i] < LARGE ? 4096 : LARGE), 0);
        errno = 7;
        fdri_memory_pages_large(m, sizes[i], -1);
        assert_int_equal(errno, 7);
        alone(m, sizes[i]);
        for (uint64_t off = 0; off < sizes[i]; off += 4096) assert_int_equal(m[off], 0);
        munmap(m, sizes[i]);
    }
}

static long mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    long n = 0;
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;) n += c == '\n';
    fclose(f);
    return n;
}

/* Number of mappings that contain these addresses. A sanitizer's own mappings, which grow in number with them, do
 * not count. */
static long mappings_of(void *const *at, size_t count)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long from, to;
    long n = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        bool any = false;
        if (sscanf(line, "%lx-%lx ", &from, &to) != 2) continue;
        for (size_t i = 0; i < count; i++) any |= (uintptr_t)at[i] >= from && (uintptr_t)at[i] < to;
        n += any;
    }
    fclose(f);
    return n;
}

/* The kernel allows a process some 65,000 mappings. */
static void what_is_left_of_many_recordings_is_one_mapping(void **state)
{
    enum { TIMES = 40, OTHERS = 4 }; /* mappings of other code between them may separate them */
    struct fdr_config c = {.size = sizeof c, .ignore_environment = 1, .signal = "none"};
    void *at[TIMES];
    (void)state;
    for (int i = 0; i < TIMES; i++) {
        c.buffer = i % 3 ? "256K" : "2052K";
        c.arena = i % 2 ? "mapped" : "anonymous";
        assert_int_equal(fdr_init(&c), 0);
        at[i] = fdri_life_recording.arena.base;
        fdr_finalize();
    }
    assert_in_range(mappings_of(at, TIMES), 1, OTHERS);
}

/* If a mapping failed, its place is given back once and not touched again: another mapping may lie there. */
static void what_was_given_back_stays_so(void **state)
{
    (void)state;
    assert_ptr_not_equal(fdri_memory_pages_map(ARENA, -1), MAP_FAILED);
    fdri_memory_pages_unmap();
    long before = mappings();
    fdri_memory_pages_empty();
    fdri_memory_pages_unmap();
    assert_int_equal(mappings(), before);
}

static bool huge_pages_free(void)
{
    void *m = mmap(NULL, 2 * LARGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    return m != MAP_FAILED && munmap(m, 2 * LARGE) == 0;
}

/* Also for a size that is not a multiple of the page size. */
static void P7_a_file_in_hugetlbfs(void **state)
{
    (void)state;
    static const char *const sizes[] = {"192K", "2M", "2052K"};
    struct fdr_config c = {.size = sizeof c, .ignore_environment = 1, .signal = "none", .arena = "mapped"};
    char dir[] = "/tmp/fdr-test-XXXXXX", live[40];
    assert_non_null(mkdtemp(dir));
    snprintf(live, sizeof live, "%s/live", dir);
    c.live_dir = live;
    bool can = huge_pages_free() && mount("none", dir, "hugetlbfs", 0, "pagesize=2M") == 0;
    for (size_t i = 0; i < 3 && can; i++) {
        c.buffer = sizes[i];
        assert_int_equal(fdr_init(&c), 0);
        assert_true(fdri_life_recording.kept_live_file.fd >= 0);
        fdr_finalize();
    }
    rmdir(live);
    if (can) umount(dir);
    rmdir(dir);
    if (!can) print_message("skipped: no free pages of hugetlbfs, or no right to mount it\n");
    if (!can) skip();
}

/* Pages of 1 GiB begin at multiples of 1 GiB, and the last one must lie within the reserved place. If no such page
 * is free, the error is ENOMEM and not one about the address. */
static void a_file_of_pages_of_1_gib(void **state)
{
    (void)state;
    int fd = memfd_create("fdr-test-pages", MFD_CLOEXEC | MFD_HUGETLB | 30u << 26 /* MFD_HUGE_1GB */);
    if (fd < 0) {
        print_message("skipped: there are no such pages here\n");
        skip();
    }
    assert_int_equal(ftruncate(fd, 1 << 30), 0);
    errno = 0;
    void *m = fdri_memory_pages_map(ARENA, fd);
    if (m == MAP_FAILED) assert_int_equal(errno, ENOMEM);
    else fdri_memory_pages_unmap();
    close(fd);
}

static void what_cannot_be_mapped_is_said(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    errno = 0;
    assert_ptr_equal(fdri_memory_pages_map(ARENA, fd), MAP_FAILED);
    assert_int_equal(errno, EACCES); /* not the error of giving back the place */
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P1_a_mapped_arena_lies_in_large_pages),
        cmocka_unit_test(P1_an_anonymous_arena_lies_in_large_pages),
        cmocka_unit_test(a_mapping_stands_alone_whatever_its_size),
        cmocka_unit_test(what_is_left_of_many_recordings_is_one_mapping),
        cmocka_unit_test(what_was_given_back_stays_so),
        cmocka_unit_test(P7_a_file_in_hugetlbfs),
        cmocka_unit_test(a_file_of_pages_of_1_gib),
        cmocka_unit_test(what_cannot_be_mapped_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
