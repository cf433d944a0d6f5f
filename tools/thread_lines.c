/* SPDX-License-Identifier: MIT */
/* Threads of a process that died: their open regions and stacks. Threads with equal ones are shown once, with their
 * number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/short_names.h"
#include "tools/crash.h"

void print_thread_name(const char *before, const struct fdr_file *file, uint32_t tid, const char *behind)
{
    const struct fdr_location_info *l = location_of_thread(file, tid);
    const struct fdr_crash_thread_info *t;
    const char *name = l ? l->name : "";
    for (size_t i = 0, n = fdr_crash_threads(file, &t); i < n && !*name; i++)
        if (t[i].tid == tid) name = t[i].name;
    printf("%sthread %u%s%s%s", before, tid, *name ? " " : "", plain_name(name), behind);
}

void print_open_regions(const struct fdr_file *file, const struct fdr_location_info *l, uint64_t end_ns)
{
    char text[HUMAN_BYTES];
    for (size_t i = 0; i < l->open_count; i++) {
        const uint64_t enter = l->open[i].enter_ns;
        printf("  %*s%s", (int)(i < 20 ? 2 * i : 40), "", plain_shown(file, l->open[i].region));
        if (l->open[i].untimed) printf(", only counted\n");
        else printf(", for %s\n", human_time(text, end_ns > enter ? end_ns - enter : 0));
    }
    if (!l->open_count) printf("  (no region open)\n");
}

static void print_unanswered(const struct fdr_file *file, uint32_t tid)
{
    char name[48], line[256] = "?";
    snprintf(name, sizeof name, "task/%u/syscall", tid);
    const char *call = fdr_crash_text(file, name, NULL);
    snprintf(name, sizeof name, "task/%u/stat", tid);
    const char *stat = fdr_crash_text(file, name, NULL), *state = stat ? strrchr(stat, ')') : NULL;
    if (call) snprintf(line, sizeof line, "%.*s", (int)strcspn(call, "\n"), call);
    bool known = state && state[1] && state[2] > ' ' && state[2] < 0x7f;
    printf("  it did not answer: state %c, system call %s\n", known ? state[2] : '?', plain_name(line));
}

/* Another thread goes on until it answers or the file is copied. Its stack and its open regions have no time of their
 * own, but both lie between the cause and its newest event. */
static void print_two_moments(const struct fdr_location_info *l, uint64_t end_ns)
{
    char text[HUMAN_BYTES];
    if (l->moved_ns > end_ns)
        printf("  (it went on for %s: its regions are those of the end, its stack may be older)\n",
               human_time(text, l->moved_ns - end_ns));
}

/* ---- threads that are alike -------------------------------------------------------------------------------------- */

struct one_thread {
    uint32_t tid;
    const struct fdr_location_info *location; /* NULL: it recorded nothing */
    size_t stack;                             /* of fdr_crash_threads; SIZE_MAX: it is not there */
    uint64_t same;                            /* equal for threads that are alike */
    bool told;
};

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t state_hash(const struct fdr_file *file, uint32_t tid, uint64_t hash)
{
    char name[48];
    snprintf(name, sizeof name, "task/%u/syscall", tid);
    const char *call = fdr_crash_text(file, name, NULL);
    return call ? mix(hash, call, strcspn(call, " \n")) : hash; /* without its arguments */
}

/* Open regions, and the addresses of the stack. fdr's own threads are alike by name. */
static uint64_t hash_of(struct fdr_file *file, const struct one_thread *one)
{
    const struct fdr_crash_thread_info *t;
    const struct fdr_crash_frame *r;
    uint64_t hash = 0xcbf29ce484222325u;
    const struct fdr_location_info *l = one->location;
    for (size_t i = 0; l && i < l->open_count; i++) hash = mix(hash, &l->open[i].region, sizeof l->open[i].region);
    if (one->stack == SIZE_MAX) return mix(hash, "none", 4);
    fdr_crash_threads(file, &t);
    if (t[one->stack].own) hash = mix(hash, t[one->stack].name, strlen(t[one->stack].name));
    if (!t[one->stack].answered) return state_hash(file, one->tid, mix(hash, "silent", 6));
    for (size_t i = 0, n = fdr_crash_frames(file, one->stack, &r); i < n; i++)
        hash = mix(hash, &r[i].address, sizeof r[i].address);
    return hash;
}

static size_t gather(struct fdr_file *file, uint32_t dead, struct one_thread *to)
{
    const struct fdr_crash_thread_info *t;
    size_t count = 0, stacks = fdr_crash_threads(file, &t);
    for (size_t i = 0; i < stacks; i++)
        if (!t[i].faulting)
            to[count++] = (struct one_thread){
                .tid = t[i].tid, .location = location_of_thread(file, t[i].tid), .stack = i};
    /* the bundle has no section, or more threads than the section holds */
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (l->tid != dead && is_without_stack(file, l))
            to[count++] = (struct one_thread){.tid = l->tid, .location = l, .stack = SIZE_MAX};
    }
    for (size_t i = 0; i < count; i++) to[i].same = hash_of(file, &to[i]);
    return count;
}

/* "thread 12 worker, and 3 more like it: 13, 14, 15" */
static void print_heading(const struct fdr_file *file, struct one_thread *one, size_t from, size_t count)
{
    enum { TOLD = 8 };
    size_t like = 0, told = 0;
    for (size_t i = from + 1; i < count; i++) like += one[i].same == one[from].same;
    print_thread_name("\n", file, one[from].tid, like ? "" : "\n");
    if (like) printf(", and %zu more like it:", like);
    for (size_t i = from + 1; like && i < count; i++) {
        if (one[i].same != one[from].same) continue;
        one[i].told = true;
        if (told++ < TOLD) printf("%s %u", told > 1 ? "," : "", one[i].tid);
    }
    if (like) printf("%s; times are of the first\n", told > TOLD ? ", ..." : "");
}

static void print_body(struct fdr_file *file, const struct one_thread *one, uint64_t end_ns)
{
    const struct fdr_crash_thread_info *t;
    size_t stacks = fdr_crash_threads(file, &t);
    if (one->location) print_open_regions(file, one->location, end_ns);
    if (one->stack == SIZE_MAX) {
        if (stacks) printf("  its stack is missing: this bundle has the stacks of %zu threads\n", stacks);
        return;
    }
    t += one->stack;
    if (one->location) print_two_moments(one->location, end_ns);
    if (t->own && !t->answered) printf("  a thread of fdr: it answers no signal\n");
    else if (t->answered) print_frames(file, one->stack, 12);
    else print_unanswered(file, one->tid);
}

void print_other_threads(struct fdr_file *file, uint64_t end_ns, uint32_t dead)
{
    const struct fdr_crash_thread_info *t;
    struct one_thread *one = calloc(fdr_crash_threads(file, &t) + fdr_location_count(file) + 1, sizeof *one);
    size_t count = one ? gather(file, dead, one) : 0;
    for (size_t i = 0; i < count; i++) {
        if (one[i].told) continue;
        print_heading(file, one, i, count);
        print_body(file, &one[i], end_ns);
    }
    free(one);
}
