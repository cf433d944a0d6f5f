/* SPDX-License-Identifier: MIT */
/* A fake libpapi with the functions that libfdr-papi calls, for machines whose own PAPI has no events.
 *   FAKE::FAULTS, FAKE::PAGE-FAULTS  the thread's minor faults       FAKE::CONTEXT-SWITCHES  starts, stays 0
 *   FAKE::CPU-CLOCK                  the thread's CPU time, ns       FAKE::BROKEN            cannot be added
 * FAKE::PAGE-FAULTS and FAKE::CPU-CLOCK overflow by perf events, as PAPI's do. The first event of a set leads the
 * others in the kernel; readings return its count. As with PAPI, a thread runs one set at a time and must be registered
 * before it looks for names, or the library crashes.
 * Variables: FAKE_QUIET: the component has no interrupts. FAKE_PERF: all sets count by perf events, so that fdr reads
 * descriptors. FAKE_EMPTY: PAPI starts and has no events. FAKE_COUNTERS: events in one set (8). FAKE_MULTIPLEX: sets
 * can be multiplexed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <papi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FAULTS, PAGE_FAULTS, SWITCHES, CLOCK, BROKEN, EVENTS, SETS = 256 };
static const char *const names[EVENTS] = {"FAKE::FAULTS", "FAKE::PAGE-FAULTS", "FAKE::CONTEXT-SWITCHES",
                                          "FAKE::CPU-CLOCK", "FAKE::BROKEN"};
static struct {
    int used, count, running, multiplex, event[32], fd[32], overflows;
    long owner;
    long long base[32];
} sets[SETS];
static __thread int known, runs;

static int code_of(int event) { return (int)((unsigned)event | PAPI_NATIVE_MASK); }
static int event_of(int code) { return (int)((unsigned)code & ~PAPI_NATIVE_MASK); }

static long long now(int event)
{
    struct rusage r;
    struct timespec t;
    getrusage(RUSAGE_THREAD, &r);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    if (event == FAULTS || event == PAGE_FAULTS) return r.ru_minflt;
    return event == CLOCK ? t.tv_sec * 1000000000ll + t.tv_nsec : 0;
}

int PAPI_library_init(int version)
{
    known = 1;
    runs = 0;
    return getenv("FAKE_DEAD") ? PAPI_ENOSUPP : version;
}
int PAPI_thread_init(unsigned long (*id)(void))
{
    (void)id;
    return PAPI_OK;
}
int PAPI_set_domain(int domain) { return domain == PAPI_DOM_ALL ? PAPI_OK : PAPI_EINVAL; }
int PAPI_register_thread(void) { return known = 1, PAPI_OK; }
int PAPI_unregister_thread(void) { return known = 0, PAPI_OK; }
int PAPI_multiplex_init(void) { return getenv("FAKE_MULTIPLEX") ? PAPI_OK : PAPI_ENOSUPP; }
char *PAPI_strerror(int e)
{
    return e == PAPI_ECNFLCT   ? "conflict"
           : e == PAPI_ENOEVNT ? "no event"
           : e == PAPI_EISRUN  ? "is running"
                               : "not supported";
}
int PAPI_num_components(void) { return 1; }
int PAPI_get_event_component(int code)
{
    (void)code;
    return 0;
}
const PAPI_component_info_t *PAPI_get_component_info(int c)
{
    static PAPI_component_info_t info = {.name = "fake", .short_name = "fake"};
    info.hardware_intr = !getenv("FAKE_QUIET");
    info.hardware_intr_sig = SIGRTMIN + 2;
    return c == 0 ? &info : NULL;
}
int PAPI_event_name_to_code(const char *name, int *code)
{
    if (!known) abort();
    for (int i = 0; i < EVENTS && !getenv("FAKE_EMPTY"); i++)
        if (!strcmp(name, names[i])) return *code = code_of(i), PAPI_OK;
    return PAPI_ENOEVNT;
}
int PAPI_event_code_to_name(int code, char *name)
{
    if (event_of(code) >= EVENTS) return PAPI_ENOEVNT;
    strcpy(name, names[event_of(code)]);
    return PAPI_OK;
}
int PAPI_get_event_info(int code, PAPI_event_info_t *info)
{
    (void)code;
    memset(info, 0, sizeof *info);
    return PAPI_OK;
}
int PAPI_enum_event(int *code, int modifier)
{
    (void)code;
    (void)modifier;
    return PAPI_ENOEVNT;
}
int PAPI_enum_cmp_event(int *code, int modifier, int component)
{
    if (component || getenv("FAKE_EMPTY")) return PAPI_ENOEVNT;
    if (modifier == PAPI_ENUM_FIRST) return *code = code_of(0), PAPI_OK;
    if (event_of(*code) + 1 >= EVENTS) return PAPI_ENOEVNT;
    ++*code;
    return PAPI_OK;
}

int PAPI_create_eventset(int *set)
{
    for (int i = 0; i < SETS; i++) {
        if (__atomic_exchange_n(&sets[i].used, 1, __ATOMIC_ACQ_REL)) continue;
        sets[i].count = sets[i].running = sets[i].multiplex = 0;
        sets[i].overflows = 0;
        return *set = i, PAPI_OK;
    }
    return PAPI_ENOMEM;
}
int PAPI_assign_eventset_component(int set, int component)
{
    (void)set;
    (void)component;
    return PAPI_OK;
}
int PAPI_set_multiplex(int set) { return sets[set].multiplex = 1, PAPI_OK; }
int PAPI_add_event(int set, int code)
{
    const char *most = getenv("FAKE_COUNTERS");
    if (event_of(code) == BROKEN) return PAPI_ENOEVNT;
    for (int i = 0; i < sets[set].count; i++)
        if (sets[set].event[i] == event_of(code)) return PAPI_ECNFLCT;
    if (!sets[set].multiplex && sets[set].count >= (most ? atoi(most) : 8)) return PAPI_ECNFLCT;
    sets[set].event[sets[set].count++] = event_of(code);
    return PAPI_OK;
}

static void on_overflow(int number) { (void)number; }
static int open_event(int event, int threshold, int leader)
{
    struct perf_event_attr a = {
        .size = sizeof a, .type = PERF_TYPE_SOFTWARE, .disabled = leader < 0, .exclude_kernel = 1};
    a.config = event == CLOCK      ? PERF_COUNT_SW_TASK_CLOCK
               : event == SWITCHES ? PERF_COUNT_SW_DUMMY
                                   : PERF_COUNT_SW_PAGE_FAULTS_MIN;
    a.sample_period = (unsigned)threshold;
    a.read_format = PERF_FORMAT_GROUP;
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, leader, 0);
}
static void close_events(int set)
{
    for (int i = 0; i < sets[set].count && sets[set].overflows; i++) close(sets[set].fd[i]);
    sets[set].overflows = 0;
}
static int open_events(int set, int threshold)
{
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    int *fd = sets[set].fd, bad = 0;
    sets[set].overflows = 1;
    for (int i = 0; i < sets[set].count; i++) {
        fd[i] = open_event(sets[set].event[i], i ? 0 : threshold, i ? fd[0] : -1);
        bad |= fd[i] < 0 || (threshold && fcntl(fd[i], F_SETFD, FD_CLOEXEC));
    }
    if (!threshold) return bad;
    return bad || fcntl(fd[0], F_SETFL, O_ASYNC | O_NONBLOCK) || fcntl(fd[0], F_SETOWN_EX, &owner) ||
           fcntl(fd[0], F_SETSIG, SIGRTMIN + 2);
}
int PAPI_overflow(int set, int code, int threshold, int flags, PAPI_overflow_handler_t handler)
{
    struct sigaction a = {.sa_handler = on_overflow};
    (void)flags;
    (void)handler;
    if (sets[set].running) return PAPI_EISRUN;
    if (!sets[set].count || sets[set].event[0] != event_of(code)) return PAPI_ENOEVNT;
    if (event_of(code) != CLOCK && event_of(code) != PAGE_FAULTS) return PAPI_ENOSUPP;
    close_events(set);
    if (!threshold) return PAPI_OK;
    sigaction(SIGRTMIN + 2, &a, NULL);
    return open_events(set, threshold) ? PAPI_ESYS : PAPI_OK;
}
int PAPI_start(int set)
{
    if (runs) return PAPI_EISRUN;
    if (!sets[set].overflows && getenv("FAKE_PERF") && open_events(set, 0)) return PAPI_ESYS;
    runs = 1;
    if (sets[set].overflows) ioctl(sets[set].fd[0], PERF_EVENT_IOC_ENABLE, 0);
    sets[set].owner = syscall(SYS_gettid);
    sets[set].running = 1;
    for (int i = 0; i < sets[set].count; i++) sets[set].base[i] = now(sets[set].event[i]);
    return PAPI_OK;
}
int PAPI_read(int set, long long *value)
{
    long long group[33];
    if (!sets[set].running) return PAPI_ENOTRUN;
    if (sets[set].owner != syscall(SYS_gettid)) abort(); /* sets belong to their threads */
    if (sets[set].overflows && read(sets[set].fd[0], group, sizeof group) < 0) return PAPI_ESYS;
    for (int i = 0; i < sets[set].count; i++)
        value[i] = sets[set].overflows ? group[1 + i] : now(sets[set].event[i]) - sets[set].base[i];
    return PAPI_OK;
}
int PAPI_stop(int set, long long *value)
{
    int e = PAPI_read(set, value);
    if (sets[set].overflows) ioctl(sets[set].fd[0], PERF_EVENT_IOC_DISABLE, 0);
    runs = sets[set].running = 0;
    return e;
}
int PAPI_cleanup_eventset(int set)
{
    if (sets[set].running) return PAPI_EISRUN;
    close_events(set);
    return PAPI_OK;
}
int PAPI_destroy_eventset(int *set)
{
    __atomic_store_n(&sets[*set].used, 0, __ATOMIC_RELEASE);
    return *set = PAPI_NULL, PAPI_OK;
}
