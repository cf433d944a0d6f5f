/* SPDX-License-Identifier: MIT */
/* libfdr-papi: which events work. PAPI's own listing is not believed. An event works if it can be added and started,
 * and counts when the counted thing happens.
 *
 * The domain is set to everything before the first set is made. PAPI's default counts user mode only, in which context
 * switches stay 0. If the kernel's side may not be counted, they stay 0 all the same, and are refused here. */
#define _GNU_SOURCE
#include <errno.h>
#include <papi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sampler/papi/papi.h"

pthread_mutex_t fdri_papi_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t initialised; /* the process in which PAPI was initialised */
static int init_error;
struct fdri_papi_plan fdri_papi_plan;

static unsigned long thread_id(void) { return (unsigned long)syscall(SYS_gettid); }

/* Returns 0 or PAPI's error. A forked child starts anew: inherited sets count the parent. */
static int initialize(void)
{
    if (initialised == getpid()) return init_error;
    initialised = getpid();
    int e = PAPI_library_init(PAPI_VER_CURRENT);
    init_error = e == PAPI_VER_CURRENT ? 0 : e < 0 ? e : PAPI_EINVAL;
    if (!init_error) init_error = PAPI_thread_init(thread_id);
    if (!init_error) PAPI_set_domain(PAPI_DOM_ALL);
    return init_error;
}

int fdri_papi_begin(void)
{
    /* a thread of the parent may hold it for ever */
    if (initialised && initialised != getpid()) pthread_mutex_init(&fdri_papi_lock, NULL);
    pthread_mutex_lock(&fdri_papi_lock);
    int e = initialize();
    return e ? e : PAPI_register_thread(); /* PAPI finds names only for registered threads */
}

/* ---- does it count? ---- */

static void provoke(void)
{
    enum { PAGES = 4 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct timespec a_moment = {0, 50000}, t;
    volatile char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; p != MAP_FAILED && i < PAGES; i++) p[i * page] = 1;
    if (p != MAP_FAILED) munmap((void *)p, PAGES * page);
    nanosleep(&a_moment, NULL);
    for (int i = 0; i < 1000; i++) clock_gettime(CLOCK_MONOTONIC, &t);
}

/* True for events that must have counted after that; others may rightly be 0. */
static bool must_move(const char *name)
{
    static const char *const words[] = {"TASK-CLOCK", "CPU-CLOCK", "PAGE-FAULTS", "MINOR-FAULTS", "CONTEXT-SWITCHES",
                                        "TOT_CYC",    "TOT_INS",   "CYCLES",      "INSTRUCTIONS"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return true;
    return false;
}

static bool in_kernel_only(const char *name) { return strstr(name, "MIGRATIONS") || strstr(name, "CGROUP-SWITCHES"); }

static int paranoid(void)
{
    FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    int level = 0;
    if (f && fscanf(f, "%d", &level) != 1) level = 0;
    if (f) fclose(f);
    return level;
}

const char *fdri_papi_component(int code)
{
    int component = PAPI_get_event_component(code);
    const PAPI_component_info_t *info = component < 0 ? NULL : PAPI_get_component_info(component);
    return info ? info->short_name : "PAPI";
}

static bool refuse(char *why, size_t bytes, int code, const char *what, int error)
{
    snprintf(why, bytes, "%s (component %s): %s", what, fdri_papi_component(code), PAPI_strerror(error));
    return false;
}

/* Adds, starts, provokes and reads the event in a set of its own. */
static bool event_counts(int code, const char *name, char *why, size_t bytes)
{
    int set = PAPI_NULL;
    long long value[1] = {0};
    int e = PAPI_create_eventset(&set);
    if (e) return refuse(why, bytes, code, "PAPI_create_eventset", e);
    const char *step = "PAPI_add_event";
    if (!(e = PAPI_add_event(set, code)) && (step = "PAPI_start", !(e = PAPI_start(set)))) {
        provoke();
        step = "PAPI_stop";
        e = PAPI_stop(set, value);
    }
    PAPI_cleanup_eventset(set);
    PAPI_destroy_eventset(&set);
    if (e) return refuse(why, bytes, code, step, e);
    bool hidden = in_kernel_only(name) && geteuid() && paranoid() >= 2;
    if (!hidden && (value[0] || !must_move(name))) return true;
    snprintf(why, bytes, "component %s: starts, but stays 0 (perf_event_paranoid is %d)", fdri_papi_component(code),
             paranoid());
    return false;
}

/* ---- choosing ---- */

static void unit_of(int code, struct fdr_counter_info *info)
{
    PAPI_event_info_t about;
    if (PAPI_get_event_info(code, &about) == PAPI_OK && about.units[0])
        snprintf(info->unit, sizeof info->unit, "%.15s", about.units);
    if (strstr(info->name, "-CLOCK") || strstr(info->name, "SW_CPU_CLOCK") || strstr(info->name, "SW_TASK_CLOCK"))
        strcpy(info->unit, "ns");
}

/* Explains why PAPI may not know an event: its components that do not work on this machine. */
static void unknown(struct fdr_counter_info *info, int error)
{
    int used = snprintf(info->why, sizeof info->why, "PAPI knows no such event here: %s", PAPI_strerror(error));
    for (int c = 0; c < PAPI_num_components() && used < (int)sizeof info->why; c++) {
        const PAPI_component_info_t *about = PAPI_get_component_info(c);
        if (about && about->disabled && !strncmp(about->name, "perf_event", sizeof "perf_event"))
            used += snprintf(info->why + used, sizeof info->why - (size_t)used, " (component %.20s is off: %.80s)",
                             about->name, about->disabled_reason);
    }
}

int fdri_papi_describe(struct fdr_counter_info *info, const char *name, int length)
{
    int code = PAPI_NULL;
    *info = (struct fdr_counter_info){.kind = FDR_METRIC_COUNTER, .per_thread = 1};
    snprintf(info->name, sizeof info->name, "%.*s", length, name);
    int e = PAPI_event_name_to_code(info->name, &code);
    if (e) unknown(info, e);
    else info->works = event_counts(code, info->name, info->why, sizeof info->why);
    if (!e) unit_of(code, info);
    return code;
}

/* The number of chosen events that fit into one set. */
static int count_fitting(bool multiplex, int *error)
{
    int code[FDRI_PAPI_MAX + 1], set = fdri_papi_make_set(multiplex), total = fdri_papi_codes(code), n = 0;
    *error = set < 0 ? set : 0;
    if (set < 0) return 0;
    while (n < total && !(*error = PAPI_add_event(set, code[n]))) n++;
    fdri_papi_drop_set(set);
    return n;
}

/* Tests all chosen events together. Events that do not fit are multiplexed if PAPI can, otherwise refused. Multiplexed
 * events do not overflow. */
static void test_together(struct fdr_counter_info *out, const size_t *place)
{
    struct fdri_papi_plan *p = &fdri_papi_plan;
    int code[FDRI_PAPI_MAX + 1], total = fdri_papi_codes(code), error, multiplex_error = PAPI_ECNFLCT;
    int alone = count_fitting(false, &error);
    p->multiplexed = false;
    if (alone == total) return;
    if (!p->period && !(multiplex_error = PAPI_multiplex_init()) && count_fitting(true, &multiplex_error) == total) {
        p->multiplexed = true;
        return;
    }
    int fits = 0;
    for (int i = 0; i < p->count; i++) {
        if (fdri_papi_place(code, alone, p->event[i]) >= 0) {
            p->event[fits++] = p->event[i];
            continue;
        }
        out[place[i]].works = 0;
        snprintf(out[place[i]].why, sizeof out[place[i]].why, "does not fit beside the others: %s; multiplexing: %s",
                 PAPI_strerror(error), PAPI_strerror(multiplex_error));
    }
    p->count = fits;
}

size_t fdri_papi_choose(const char *names, struct fdr_counter_info *out, size_t most)
{
    size_t n = 0, place[FDRI_PAPI_MAX];
    struct fdri_papi_plan *plan = &fdri_papi_plan;
    int e = fdri_papi_begin();
    plan->count = 0;
    if (!e) fdri_papi_retire();
    for (const char *p = names; *p;) {
        int length = (int)strcspn(p, ",");
        if (length && n < most) {
            struct fdr_counter_info *info = &out[n];
            int code = e ? 0 : fdri_papi_describe(info, p, length);
            if (e) {
                *info = (struct fdr_counter_info){.kind = FDR_METRIC_COUNTER, .per_thread = 1};
                snprintf(info->name, sizeof info->name, "%.*s", length, p);
                snprintf(info->why, sizeof info->why, "PAPI_library_init: %s", PAPI_strerror(e));
            }
            if (info->works && plan->count < FDRI_PAPI_MAX) {
                place[plan->count] = n;
                plan->event[plan->count++] = code;
            }
        }
        n += length > 0;
        p += length + (p[length] == ',');
    }
    if (plan->count) test_together(out, place);
    pthread_mutex_unlock(&fdri_papi_lock);
    return n;
}

/* ---- listing ---- */

struct listing {
    struct fdr_counter_info *out;
    size_t most, count, failed;
    char why[200];
};

static void try_code(struct listing *l, int code)
{
    char name[PAPI_MAX_STR_LEN];
    struct fdr_counter_info info;
    if (PAPI_event_code_to_name(code, name) || strlen(name) >= sizeof info.name) return;
    fdri_papi_describe(&info, name, (int)strlen(name));
    if (info.works) {
        if (l->count < l->most) l->out[l->count] = info;
        l->count++;
    } else if (!l->failed++) {
        snprintf(l->why, sizeof l->why, "%.60s: %.120s", name, info.why);
    }
}

size_t fdri_papi_probe(struct fdr_counter_info *out, size_t most)
{
    struct listing l = {.out = out, .most = most};
    int e = fdri_papi_begin(), code = (int)(0 | PAPI_PRESET_MASK);
    if (!e && !PAPI_enum_event(&code, PAPI_ENUM_FIRST)) {
        do try_code(&l, code);
        while (!PAPI_enum_event(&code, PAPI_PRESET_ENUM_AVAIL));
    }
    for (int c = 0; !e && c < PAPI_num_components(); c++) {
        code = (int)(0 | PAPI_NATIVE_MASK);
        if (PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, c)) continue;
        do try_code(&l, code);
        while (!PAPI_enum_cmp_event(&code, PAPI_ENUM_EVENTS, c));
    }
    pthread_mutex_unlock(&fdri_papi_lock);
    if (!e && !l.failed) return l.count;
    if (l.count < most) {
        out[l.count] = (struct fdr_counter_info){.kind = FDR_METRIC_COUNTER, .per_thread = 1};
        if (e) {
            strcpy(out[l.count].name, "PAPI");
            snprintf(out[l.count].why, sizeof out[l.count].why, "PAPI_library_init: %s", PAPI_strerror(e));
        } else {
            snprintf(out[l.count].name, sizeof out[l.count].name, "PAPI: %zu others", l.failed);
            memcpy(out[l.count].why, l.why, sizeof l.why);
        }
    }
    return l.count + 1;
}
