/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60
 * Each source of counters agrees with an independent reading of the same fact, for the calling thread and for another
 * one. The second part checks how names in settings select counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd/descriptor.h"
#include "sampler/counters/counter.h"

enum { PAGES = 3000, SLEEPS = 20 };

static void touch(size_t pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    for (size_t i = 0; i < pages; i++) p[i * page] = 1;
    munmap((void *)p, pages * page);
}

static void use_cpu(uint64_t ns)
{
    uint64_t until = fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID) < until) {}
}

static void do_things(void)
{
    touch(PAGES);
    use_cpu(20000000);
    for (int i = 0; i < SLEEPS; i++) usleep(100);
}

/* Independent readings of the calling thread's activity. */
struct witness {
    struct rusage usage;
    uint64_t cpu_ns;
};
static struct witness look(void)
{
    struct witness w;
    getrusage(RUSAGE_THREAD, &w.usage);
    w.cpu_ns = fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return w;
}

/* The worker is active between two barriers. The test thread reads its counters from outside. */
struct worker {
    pthread_barrier_t barrier;
    int tid;
    struct witness before, after;
};
static void *work(void *p)
{
    struct worker *w = p;
    w->tid = (int)syscall(SYS_gettid);
    pthread_barrier_wait(&w->barrier);
    pthread_barrier_wait(&w->barrier);
    w->before = look();
    do_things();
    w->after = look();
    pthread_barrier_wait(&w->barrier);
    pthread_barrier_wait(&w->barrier);
    return NULL;
}

static bool works(const struct fdr_counter_source *s, uint32_t which)
{
    char why[FDRI_COUNTERS_WHY_BYTES] = "";
    int e = fdri_counters_try((struct fdri_counters_choice){s, which}, why, sizeof why);
    assert_true(e == 0 || (e < 0 && why[0])); /* a failure always has a reason */
    if (e) printf("# %s:%s: %s\n", s->name, s->counter[which].name, why);
    return e == 0;
}

static uint32_t working(const struct fdr_counter_source *s)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < s->count; i++) wanted |= works(s, i) ? 1u << i : 0u;
    return wanted;
}

static uint32_t number_of(const struct fdr_counter_source *s, const char *name)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (!strcmp(s->counter[i].name, name)) return i;
    fail();
    return 0;
}

static uint64_t rise(const struct fdr_counter_source *s, const uint64_t *from, const uint64_t *to, const char *name)
{
    uint32_t i = number_of(s, name);
    return to[i] - from[i];
}

/* Reads `s` for another thread before and after its activity. Returns false if no counter of `s` works here. */
static bool observe(const struct fdr_counter_source *s, uint32_t *wanted, uint64_t *from, uint64_t *to,
                    struct worker *w)
{
    struct fdri_counters_handle h;
    pthread_t thread;
    uint32_t held = fdri_fd_budget_used();
    if (!(*wanted = working(s))) return false;
    pthread_barrier_init(&w->barrier, NULL, 2);
    pthread_create(&thread, NULL, work, w);
    pthread_barrier_wait(&w->barrier);
    assert_int_equal(fdri_counters_handle_open(&h, s, w->tid, *wanted), 0);
    assert_int_equal(fdri_fd_budget_used() - held, s->descriptors(*wanted));
    assert_int_equal(fdri_counters_handle_read(&h, from), 0);
    pthread_barrier_wait(&w->barrier);
    pthread_barrier_wait(&w->barrier);
    assert_int_equal(fdri_counters_handle_read(&h, to), 0);
    pthread_barrier_wait(&w->barrier);
    pthread_join(thread, NULL);
    fdri_counters_handle_close(&h);
    assert_int_equal(fdri_fd_budget_used(), held);
    return true;
}

static bool is_near(uint64_t value, uint64_t truth, uint64_t slack)
{
    return value + slack >= truth && value <= truth + slack;
}

static void near(uint64_t value, uint64_t truth, uint64_t slack)
{
    if (!is_near(value, truth, slack))
        fail_msg("%llu, but the truth is %llu (+-%llu)", (unsigned long long)value, (unsigned long long)truth,
                 (unsigned long long)slack);
}

static uint64_t switches(const struct rusage *r) { return (uint64_t)(r->ru_nvcsw + r->ru_nivcsw); }

static void perf_agrees_with_getrusage(void **state)
{
    const struct fdr_counter_source *s = &fdri_counters_source_perf;
    struct worker w;
    uint32_t wanted;
    uint64_t from[FDR_SOURCE_COUNTERS], to[FDR_SOURCE_COUNTERS];
    (void)state;
    if (!observe(s, &wanted, from, to, &w)) skip();
    uint64_t faults = (uint64_t)(w.after.usage.ru_minflt - w.before.usage.ru_minflt);
    assert_true(faults >= PAGES);
    if (wanted >> number_of(s, "page-faults") & 1) near(rise(s, from, to, "page-faults"), faults, 64);
    if (wanted >> number_of(s, "minor-faults") & 1) near(rise(s, from, to, "minor-faults"), faults, 64);
    /* each barrier may cause a switch, too */
    if (wanted >> number_of(s, "context-switches") & 1) {
        uint64_t truth = switches(&w.after.usage) - switches(&w.before.usage);
        assert_true(truth >= SLEEPS);
        near(rise(s, from, to, "context-switches"), truth, 8);
    }
}

/* perf's task-clock includes the time that a hypervisor takes from the running thread; the thread's own clock does not.
 * This is rare, so one of several attempts must agree. */
static void the_task_clock_agrees_with_the_cpu_clock(void **state)
{
    enum { TIMES = 6, SLACK = 3000000 };
    const struct fdr_counter_source *s = &fdri_counters_source_perf;
    uint64_t from[FDR_SOURCE_COUNTERS], to[FDR_SOURCE_COUNTERS], value = 0, truth = 0;
    (void)state;
    for (int i = 0; i < TIMES && (!i || !is_near(value, truth, SLACK)); i++) {
        struct worker w;
        uint32_t wanted;
        if (!observe(s, &wanted, from, to, &w) || !(wanted >> number_of(s, "task-clock") & 1)) skip();
        value = rise(s, from, to, "task-clock");
        truth = w.after.cpu_ns - w.before.cpu_ns;
    }
    near(value, truth, SLACK);
}

/* A thread opens its own counters and never waits. If it loses its processor between the readings of the two clocks,
 * these may differ. */
static void all_of_a_group_count_at_once(void **state)
{
    struct fdri_counters_handle h;
    uint64_t from[FDR_SOURCE_COUNTERS], to[FDR_SOURCE_COUNTERS];
    uint32_t clock = number_of(&fdri_counters_source_perf, "task-clock"), wanted = working(&fdri_counters_source_perf);
    int late = 0;
    (void)state;
    if (!(wanted >> clock & 1)) skip();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(fdri_counters_handle_open(&h, &fdri_counters_source_perf, 0, wanted), 0);
        assert_int_equal(fdri_counters_handle_read(&h, from), 0);
        uint64_t begin = fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        while (fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID) < begin + 300000) {}
        assert_int_equal(fdri_counters_handle_read(&h, to), 0);
        fdri_counters_handle_close(&h);
        late += to[clock] - from[clock] < 200000; /* two clocks */
    }
    assert_in_range(late, 0, 2);
}

static void task_agrees_with_getrusage(void **state)
{
    const struct fdr_counter_source *s = &fdri_counters_source_task;
    struct worker w;
    uint32_t wanted;
    uint64_t from[FDR_SOURCE_COUNTERS], to[FDR_SOURCE_COUNTERS];
    (void)state;
    if (!observe(s, &wanted, from, to, &w)) skip();
    near(rise(s, from, to, "page-faults"), (uint64_t)(w.after.usage.ru_minflt - w.before.usage.ru_minflt), 64);
    near(rise(s, from, to, "user-time") + rise(s, from, to, "system-time"), w.after.cpu_ns - w.before.cpu_ns, 40000000);
}

static void sched_agrees_with_the_cpu_clock(void **state)
{
    const struct fdr_counter_source *s = &fdri_counters_source_sched;
    struct worker w;
    uint32_t wanted;
    uint64_t from[FDR_SOURCE_COUNTERS], to[FDR_SOURCE_COUNTERS];
    (void)state;
    if (!observe(s, &wanted, from, to, &w)) skip();
    near(rise(s, from, to, "cpu-time"), w.after.cpu_ns - w.before.cpu_ns, 5000000);
    assert_true(rise(s, from, to, "timeslices") >= SLEEPS);
}

static void switches_agree_with_getrusage(void **state)
{
    const struct fdr_counter_source *s = &fdri_counters_source_switches;
    struct worker w;
    uint32_t wanted;
    uint64_t from[FDR_SOURCE_COUNTERS], to[FDR_SOURCE_COUNTERS];
    (void)state;
    if (!observe(s, &wanted, from, to, &w)) skip();
    near(rise(s, from, to, "context-switches"), switches(&w.after.usage) - switches(&w.before.usage), 8);
    assert_true(rise(s, from, to, "voluntary") >= SLEEPS);
}

static void a_descriptor_outlives_its_thread_and_a_proc_file_says_so(void **state)
{
    struct worker w;
    struct fdri_counters_handle perf, task;
    uint64_t value[FDR_SOURCE_COUNTERS];
    pthread_t thread;
    (void)state;
    pthread_barrier_init(&w.barrier, NULL, 2);
    pthread_create(&thread, NULL, work, &w);
    pthread_barrier_wait(&w.barrier);
    uint32_t faults = number_of(&fdri_counters_source_perf, "page-faults");
    bool have_perf = works(&fdri_counters_source_perf, faults) &&
                     !fdri_counters_handle_open(&perf, &fdri_counters_source_perf, w.tid, 1u << faults);
    assert_int_equal(fdri_counters_handle_open(&task, &fdri_counters_source_task, w.tid, 1), 0);
    for (int i = 0; i < 3; i++) pthread_barrier_wait(&w.barrier);
    pthread_join(thread, NULL);
    for (int i = 0; i < 1000 && !fdri_counters_handle_read(&task, value); i++)
        usleep(1000); /* the kernel removes the thread */
    assert_true(fdri_counters_handle_read(&task, value) < 0);
    if (have_perf) {
        assert_int_equal(fdri_counters_handle_read(&perf, value), 0);
        assert_true(value[faults] >= PAGES);
        fdri_counters_handle_close(&perf);
    }
    fdri_counters_handle_close(&task);
}

static void process_memory_and_io(void **state)
{
    struct fdri_counters_handle memory, io;
    uint64_t a[FDR_SOURCE_COUNTERS], b[FDR_SOURCE_COUNTERS];
    static char buffer[1 << 16];
    size_t bytes = 64u << 20;
    (void)state;
    assert_int_equal(
        fdri_counters_handle_open(&memory, &fdri_counters_source_process, 0, working(&fdri_counters_source_process)),
        0);
    assert_int_equal(fdri_counters_handle_read(&memory, a), 0);
    assert_true(a[number_of(memory.open.source, "threads")] >= 1);
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_int_equal(fdri_counters_handle_read(&memory, b), 0);
    munmap(p, bytes);
    near(b[number_of(memory.open.source, "rss")] - a[number_of(memory.open.source, "rss")], bytes, bytes / 8);
    fdri_counters_handle_close(&memory);

    uint32_t wanted = working(&fdri_counters_source_io);
    if (!wanted) return;
    assert_int_equal(fdri_counters_handle_open(&io, &fdri_counters_source_io, 0, wanted), 0);
    assert_int_equal(fdri_counters_handle_read(&io, a), 0);
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 10; i++)
        assert_int_equal(write(null, buffer, (size_t)read(zero, buffer, sizeof buffer)), (ssize_t)sizeof buffer);
    close(zero);
    close(null);
    assert_int_equal(fdri_counters_handle_read(&io, b), 0);
    near(b[number_of(io.open.source, "read")] - a[number_of(io.open.source, "read")], 10 * sizeof buffer, 4096);
    near(b[number_of(io.open.source, "written")] - a[number_of(io.open.source, "written")], 10 * sizeof buffer, 4096);
    fdri_counters_handle_close(&io);
}

static void write_text(const char *folder, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void energy_goes_on_when_the_counter_wraps(void **state)
{
    char root[] = "/tmp/fdr-powercap-XXXXXX", zone[300], why[FDRI_COUNTERS_WHY_BYTES], command[400];
    struct fdri_counters_handle h;
    uint64_t value[FDR_SOURCE_COUNTERS];
    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(zone, sizeof zone, "%s/intel-rapl:0", root);
    mkdir(zone, 0700);
    write_text(zone, "energy_uj", "1000\n");
    write_text(zone, "max_energy_range_uj", "5000\n");
    fdri_counters_powercap_folder = root;
    assert_int_equal(fdri_counters_source_energy.probe(0, why, sizeof why), 0);
    assert_int_equal(fdri_counters_source_energy.probe(4, why, sizeof why), -ENOENT);
    assert_non_null(strstr(why, "intel-rapl:1"));
    assert_int_equal(fdri_counters_handle_open(&h, &fdri_counters_source_energy, 0, 1), 0);
    assert_int_equal(fdri_counters_handle_read(&h, value), 0);
    assert_int_equal(value[0], 1000);
    write_text(zone, "energy_uj", "4900\n");
    assert_int_equal(fdri_counters_handle_read(&h, value), 0);
    write_text(zone, "energy_uj", "150\n");
    assert_int_equal(fdri_counters_handle_read(&h, value), 0);
    assert_int_equal(value[0], 5150);
    fdri_counters_handle_close(&h);
    fdri_counters_powercap_folder = "/sys/class/powercap";
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

/* ---- names ---- */

static int broken_probe(uint32_t which, char *why, size_t bytes)
{
    snprintf(why, bytes, "broken by design (%u)", which);
    return -ENODEV;
}
static int good_probe(uint32_t which, char *why, size_t bytes)
{
    (void)which;
    (void)why;
    (void)bytes;
    return 0;
}
static const struct fdr_counter fake_counters[] = {{"page-faults", "", FDR_METRIC_COUNTER, FDR_U64},
                                                   {"sparks", "uJ", FDR_METRIC_COUNTER, FDR_U64}};
static int read_none(struct fdr_counter_handle *h, uint64_t *value)
{
    (void)h;
    (void)value;
    return 0;
}
static const struct fdr_counter_source broken = {.size = sizeof broken,
                                                 .read = read_none,
                                                 .name = "broken",
                                                 .scope = FDR_COUNTER_THREAD,
                                                 .counter = fake_counters,
                                                 .count = 2,
                                                 .probe = broken_probe};
static const struct fdr_counter_source good = {.size = sizeof good,
                                               .read = read_none,
                                               .name = "good",
                                               .scope = FDR_COUNTER_THREAD,
                                               .counter = fake_counters,
                                               .count = 2,
                                               .probe = good_probe};

static size_t choose(const char *list, bool threads_only, char *texts, char *missing)
{
    struct fdri_counters_choice choice[32];
    char text[64];
    size_t n = fdri_counters_choose(list, threads_only, choice, 32, missing, 400);
    texts[0] = 0;
    for (size_t i = 0; i < n; i++) {
        fdri_counters_text(text, sizeof text, choice[i]);
        sprintf(texts + strlen(texts), "%s%s", i ? "," : "", text);
    }
    return n;
}

static void names_become_counters(void **state)
{
    char texts[2000], missing[400];
    (void)state;
    fdr_counter_source_add(&broken);
    fdr_counter_source_add(&good);
    assert_int_equal(choose("page-faults", false, texts, missing), 1);
    assert_string_equal(texts, "good:page-faults"); /* the first counter that works */
    assert_string_equal(missing, "");
    assert_int_equal(choose("broken:page-faults", false, texts, missing), 0);
    assert_string_equal(missing, "broken:page-faults: broken by design (0)");
    assert_int_equal(choose("broken:sparks|good:sparks,sparks good:sparks", false, texts, missing), 1);
    assert_string_equal(texts, "good:sparks");
    assert_int_equal(choose("nothing,process:rss", true, texts, missing), 0);
    assert_non_null(strstr(missing, "nothing: unknown"));
    assert_non_null(strstr(missing, "process:rss: counts the whole process"));
    choose("all", false, texts, missing);
    assert_non_null(strstr(missing, "broken:page-faults and 1 more of broken: broken by design (0)"));
    assert_null(strstr(texts, "broken"));
    fdri_counters_source_forget();
    assert_true(choose("default", false, texts, missing) >= 4);
    assert_non_null(strstr(texts, "process:rss"));
    assert_int_equal(choose("", false, texts, missing), 0);
}

static void a_quarter_of_the_descriptors(void **state)
{
    struct rlimit old, small = {.rlim_cur = 40, .rlim_max = 0};
    (void)state;
    getrlimit(RLIMIT_NOFILE, &old);
    small.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_NOFILE, &small);
    uint32_t held = fdri_fd_budget_used();
    assert_true(fdri_fd_budget_take(10 - held));
    assert_false(fdri_fd_budget_take(1));
    struct fdri_counters_handle h;
    assert_int_equal(fdri_counters_handle_open(&h, &fdri_counters_source_task, 0, 1), -EMFILE);
    fdri_counters_handle_close(&h); /* closes a handle that holds nothing */
    fdri_fd_budget_give(10 - held);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(fdri_fd_budget_used(), held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perf_agrees_with_getrusage),
        cmocka_unit_test(the_task_clock_agrees_with_the_cpu_clock),
        cmocka_unit_test(all_of_a_group_count_at_once),
        cmocka_unit_test(task_agrees_with_getrusage),
        cmocka_unit_test(sched_agrees_with_the_cpu_clock),
        cmocka_unit_test(switches_agree_with_getrusage),
        cmocka_unit_test(a_descriptor_outlives_its_thread_and_a_proc_file_says_so),
        cmocka_unit_test(process_memory_and_io),
        cmocka_unit_test(energy_goes_on_when_the_counter_wraps),
        cmocka_unit_test(names_become_counters),
        cmocka_unit_test(a_quarter_of_the_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
