/* SPDX-License-Identifier: MIT */
/* Text to settings. Each value comes from struct fdr_config, else the environment, else the default. A bad value costs
 * one message with variable, value and replacement. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fdr/fdr.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/text/message.h"
#include "base/text/number.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "format/classes/class_table.h"
#include "policies/policies.h"
#include "recorder/life/settings.h"
#include "recorder/recording.h"
#include "sampler/counters/counter_view.h"

struct source {
    const struct fdr_config *config;
    struct fdri_life_settings *s;
    size_t text_used, known_count;
    const char *known[64]; /* names passed to setting_text(): in the end, all settings */
};

/* Of the parse under way. Only fdr_init parses, under its lock. */
static bool strict;
static unsigned refused;

/* The text of one setting, "" if unset; notes it for the superblock. The environment of a setuid program is ignored. */
static const char *setting_text(struct source *in, const char *variable, const char *field)
{
    if (in->known_count < sizeof in->known / sizeof *in->known) in->known[in->known_count++] = variable;
    const char *v = field && *field                                ? field
                    : in->config && in->config->ignore_environment ? NULL
                                                                   : secure_getenv(variable);
    if (!v || !*v) return "";
    char *text = in->s->text;
    int n = snprintf(text + in->text_used, sizeof in->s->text - in->text_used, "%s=%s\n", variable, v);
    if (n > 0 && in->text_used + (size_t)n < sizeof in->s->text) in->text_used += (size_t)n;
    else text[in->text_used] = 0;
    return v;
}

static void report_bad_value(const char *variable, const char *value, const char *why, const char *instead)
{
    const int most = 200; /* so that the end of the message is not cut off */
    fdri_text_message("%s=%.*s%s: %s%s%s", variable, most, value, strlen(value) > (size_t)most ? "..." : "", why,
                      strict ? "" : "; using ", strict ? "" : instead);
    refused++;
}

/* A number followed by one of units[]; scale[] is parallel to units[]. */
static bool parse_scaled(const char *text, const char *const *units, const double *scale, uint64_t *out)
{
    const char *end;
    double v = fdri_text_number(text, &end);
    if (end == text || !(v >= 0)) return false;
    for (int i = 0; units[i]; i++) {
        if (strcmp(end, units[i])) continue;
        v *= scale[i];
        if (v > 9e18) return false;
        *out = (uint64_t)(v + 0.5);
        return true;
    }
    return false;
}

/* Refuses exponents and fractions of a byte: they are mostly slips. */
bool fdri_life_parse_size(const char *text, uint64_t *out)
{
    static const char *const units[] = {"", "K", "M", "G", "k", "m", "g", "KiB", "MiB", "GiB", NULL};
    static const double scale[] = {1, 1024, 1048576, 1073741824, 1024, 1048576, 1073741824, 1024, 1048576, 1073741824};
    bool slip = strpbrk(text, "eE") || (strchr(text, '.') && !strpbrk(text, "KMGkmg"));
    uint64_t bytes;
    if (slip || !parse_scaled(text, units, scale, &bytes) || (!bytes && strchr(text, '.'))) return false;
    *out = bytes;
    return true;
}

bool fdri_life_parse_duration(const char *text, uint64_t *out)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    static const double scale[] = {1, 1e3, 1e6, 1e9};
    if (!strcmp(text, "0")) {
        *out = 0;
        return true;
    }
    return parse_scaled(text, units, scale, out);
}

static const char not_a_size[] = "not a size (digits, alone or with K, M or G)";

static uint64_t size_setting(struct source *in, const char *variable, const char *field, uint64_t fallback,
                             const char *shown)
{
    const char *v = setting_text(in, variable, field);
    uint64_t out = fallback;
    if (*v && !fdri_life_parse_size(v, &out)) report_bad_value(variable, v, not_a_size, shown);
    return out;
}

static uint64_t duration_of(const char *variable, const char *v, uint64_t fallback, const char *shown)
{
    uint64_t out = fallback;
    if (*v && !fdri_life_parse_duration(v, &out))
        report_bad_value(variable, v, "not a duration (a number with ns, us, ms or s)", shown);
    return out;
}

static uint64_t duration_setting(struct source *in, const char *variable, const char *field, uint64_t fallback,
                                 const char *shown)
{
    return duration_of(variable, setting_text(in, variable, field), fallback, shown);
}

/* At most one hour: coarser times would be useless. */
static uint64_t resolution_setting(struct source *in, const char *field)
{
    static const char lossless[] = "0 (lossless)";
    const char *end, *v = setting_text(in, "FDR_RESOLUTION", field);
    uint64_t ns = duration_of("FDR_RESOLUTION", v, 0, lossless);
    if (ns && ns <= 3600000000000ull) return ns;
    if (ns) report_bad_value("FDR_RESOLUTION", v, "more than an hour", lossless);
    else if (fdri_text_number(v, &end) > 0 && fdri_life_parse_duration(v, &ns))
        report_bad_value("FDR_RESOLUTION", v, "less than half a ns", lossless);
    return 0;
}

static uint64_t deadline_setting(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_CRASH_DEADLINE", field);
    uint64_t ns = duration_of("FDR_CRASH_DEADLINE", v, 800000000, "800ms");
    if (ns) return ns;
    report_bad_value("FDR_CRASH_DEADLINE", v, "too short to write anything (FDR_CRASH=0 turns bundles off)", "800ms");
    return 800000000;
}

/* Index of the value in names[], or `fallback`. */
static int choice(struct source *in, const char *variable, const char *field, const char *const *names, int fallback)
{
    const char *v = setting_text(in, variable, field);
    if (!*v) return fallback;
    char list[128] = "";
    for (int i = 0; names[i]; i++) {
        if (!strcmp(v, names[i])) return i;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "known: ", names[i]);
    }
    report_bad_value(variable, v, list, names[fallback]);
    return fallback;
}

static void parse_buffer(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_BUFFER", field);
    uint64_t *out = &in->s->buffer_bytes;
    *out = 0;
    snprintf(in->s->buffer_text, sizeof in->s->buffer_text, "%s", *v ? v : "(default)");
    if (*v && !fdri_life_parse_size(v, out)) report_bad_value("FDR_BUFFER", v, not_a_size, "the default");
    else if (*v && !*out)
        report_bad_value("FDR_BUFFER", v, "a recording needs memory (FDR_ENABLE=0 turns it off)", "the default");
}

static void parse_bin(struct source *in, const char *field)
{
    const char *text = setting_text(in, "FDR_BIN", field);
    uint64_t v = 4096;
    if (*text && !fdri_life_parse_size(text, &v)) report_bad_value("FDR_BIN", text, not_a_size, "4K");
    else if (!fdri_bits_is_pow2(v) || v < FDRI_ARENA_BIN_MIN_BYTES || v > FDRI_ARENA_BIN_MAX_BYTES) {
        uint64_t near = v < FDRI_ARENA_BIN_MIN_BYTES   ? FDRI_ARENA_BIN_MIN_BYTES
                        : v > FDRI_ARENA_BIN_MAX_BYTES ? FDRI_ARENA_BIN_MAX_BYTES
                                                       : 1ull << fdri_bits_log2_floor(v);
        char instead[24];
        snprintf(instead, sizeof instead, "%" PRIu64, near);
        report_bad_value("FDR_BIN", text, "not a power of two from 512 to 64K", instead);
        v = near;
    }
    in->s->bin_bytes = (uint32_t)v;
}

/* The first word of a list with commas; *length 0: none is left. */
static const char *next_word(const char *text, size_t *length)
{
    text += strspn(text, ",");
    *length = strcspn(text, ",");
    return text;
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && !strncmp(word, name, length);
}

static void parse_chain(struct source *in, const char *field)
{
    static const char *const names[] = {"", "duration", "depth", "class", "epoch"};
    static const struct fdri_policies_chain standard = {
        {FDRI_POLICIES_BY_DURATION, FDRI_POLICIES_BY_DEPTH, FDRI_POLICIES_BY_CLASS, FDRI_POLICIES_BY_EPOCH}, {0}};
    const char *v = setting_text(in, "FDR_REDUCE", field);
    struct fdri_policies_chain *c = &in->s->chain;
    *c = standard;
    if (!*v) return;
    int n = 0;
    size_t length;
    memset(c->step, 0, sizeof c->step);
    for (const char *w = next_word(v, &length); length; w = next_word(w + length, &length)) {
        int step = 0;
        for (int i = 1; i <= 4; i++)
            if (is_word(w, length, names[i])) step = i;
        for (int i = 0; i < n; i++)
            if (c->step[i] == step) step = 0;
        if (!step || n == FDRI_POLICIES_STEPS) {
            report_bad_value("FDR_REDUCE", v, "expected duration, depth, class, epoch, each at most once",
                             "duration,depth,class,epoch");
            *c = standard;
            return;
        }
        c->step[n++] = (uint8_t)step;
    }
    if (n) return;
    report_bad_value("FDR_REDUCE", v, "names no step", "duration,depth,class,epoch");
    *c = standard;
}

/* A list. Of several modes the one that leaves most bundles counts; "first" may stand beside each. */
static void parse_crash(struct source *in, const char *field)
{
    static const char *const modes[] = {"1", "all", "exit"};
    const char *v = setting_text(in, "FDR_CRASH", field);
    struct fdri_life_settings *s = in->s;
    size_t length;
    bool good = !*v || v[strspn(v, ",")];
    s->crash = strcmp(v, "0") ? FDRI_EXPORT_CRASH_FAULTS : FDRI_EXPORT_CRASH_OFF;
    for (const char *w = next_word(v, &length); s->crash && length; w = next_word(w + length, &length)) {
        bool first = is_word(w, length, "first"), known = first;
        for (int i = 0; i < 3; i++) {
            if (!is_word(w, length, modes[i])) continue;
            if (s->crash < FDRI_EXPORT_CRASH_FAULTS + i) s->crash = FDRI_EXPORT_CRASH_FAULTS + i;
            known = true;
        }
        s->crash_first |= first;
        good &= known;
    }
    if (good) return;
    report_bad_value("FDR_CRASH", v, "known: 0, or a list of 1, all, exit, first", "1");
    s->crash = FDRI_EXPORT_CRASH_FAULTS;
    s->crash_first = false;
}

/* "4,2,1": relative shares of the tiers, newest first; the last number holds for all older tiers. */
static void parse_shares(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_TELESCOPE", field);
    struct fdri_policies_tier_shares *s = &in->s->tiers;
    s->count = 0;
    if (!*v || !strcmp(v, "equal")) return;
    for (const char *at = v;; at++) {
        char *end;
        unsigned long share = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (share < 1 || share > 1000 || s->count == FDRI_POLICIES_SHARES || (*end && *end != ',')) {
            report_bad_value("FDR_TELESCOPE", v,
                             "expected up to 16 shares from 1 to 1000 (newest tier first), or equal", "equal");
            s->count = 0;
            return;
        }
        s->share[s->count++] = (uint16_t)share;
        if (!*(at = end)) return;
    }
}

static void parse_classes(struct source *in, const char *field)
{
    static_assert((int)FDRI_POLICIES_CLASSES == (int)FDRI_ARENA_CLASS_COUNT, "each class has a rank");
    const char *v = setting_text(in, "FDR_CLASSES", field);
    if (!*v) return;
    uint8_t rank = 1;
    size_t length, wrong = 0;
    char first[24] = "", why[96];
    for (const char *w = next_word(v, &length); length; w = next_word(w + length, &length)) {
        uint32_t class_ = fdri_classes_named(w, (uint32_t)length);
        if (class_ < FDRI_POLICIES_CLASSES && !in->s->chain.class_rank[class_])
            in->s->chain.class_rank[class_] = rank++;
        else if (!wrong++) snprintf(first, sizeof first, "%.*s", (int)length, w);
    }
    snprintf(why, sizeof why, "'%s' is not a class, or is given twice", first);
    if (wrong > 1) snprintf(why, sizeof why, "'%s' and %zu more are not classes, or are given twice", first, wrong - 1);
    if (wrong) report_bad_value("FDR_CLASSES", v, why, rank > 1 ? "the others" : "none");
    if (!v[strspn(v, ",")]) report_bad_value("FDR_CLASSES", v, "names no class", "none");
}

/* The number of RTMIN, RTMIN+3, RTMAX-1, as `kill -l` writes them; -1: another text. */
static int realtime_by_name(const char *v)
{
    bool up = !strncmp(v, "RTMIN", 5);
    if (!up && strncmp(v, "RTMAX", 5) != 0) return -1;
    char *end = (char *)v + 5;
    long from = up ? SIGRTMIN : SIGRTMAX, by = *end == (up ? '+' : '-') ? strtol(end, &end, 10) : 0;
    bool is_one = !*end && from + by >= SIGRTMIN && from + by <= SIGRTMAX;
    return is_one ? (int)(from + by) : -1;
}

static int signal_by_name(const char *v)
{
    static const struct {
        const char *name;
        int number;
    } known[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"QUIT", SIGQUIT}, {"WINCH", SIGWINCH},
                 {"URG", SIGURG},   {"PROF", SIGPROF}, {"IO", SIGIO},   {"PWR", SIGPWR}};
    if (!strncmp(v, "SIG", 3)) v += 3;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(v, known[i].name)) return known[i].number;
    int realtime = realtime_by_name(v);
    if (realtime > 0) return realtime;
    if (*v < '0' || *v > '9') return 0;
    char *end;
    long n = strtol(v, &end, 10);
    bool fatal = n == SIGKILL || n == SIGSTOP || n == SIGSEGV || n == SIGBUS || n == SIGFPE || n == SIGILL ||
                 n == SIGABRT || n == SIGTRAP || n == SIGSYS;
    bool library = n > 31 && n < SIGRTMIN; /* reserved by the C library, which refuses handlers for them */
    return *v && !*end && n > 0 && n <= SIGRTMAX && !fatal && !library ? (int)n : -1;
}

static void parse_signal(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_SIGNAL", field);
    in->s->signal = SIGUSR1;
    if (!*v) return;
    if (!strcmp(v, "none")) in->s->signal = 0;
    else if (signal_by_name(v) > 0) in->s->signal = signal_by_name(v);
    else report_bad_value("FDR_SIGNAL", v, "not a signal that fdr can use", "USR1");
}

/* "10%" of the file system, or a size. False: neither. */
static bool parse_limit(const char *v, struct fdri_policies_limit *limit)
{
    const char *end;
    double percent = fdri_text_number(v, &end);
    bool is_share = end != v && !strcmp(end, "%");
    limit->share = is_share ? percent / 100 : -1;
    return is_share ? percent >= 0 && percent <= 100 : fdri_life_parse_size(v, &limit->bytes);
}

static struct fdri_policies_limit limit_of(const char *variable, const char *v, double share, const char *shown)
{
    struct fdri_policies_limit limit = {.share = share};
    if (!*v || parse_limit(v, &limit)) return limit;
    report_bad_value(variable, v, "not a share from 0% to 100%, nor a size", shown);
    return (struct fdri_policies_limit){.share = share};
}

/* In days, hours, or as other durations. */
static uint64_t age_of(const char *v)
{
    const char *end;
    uint64_t age = 14 * 86400000000000ull;
    double n = fdri_text_number(v, &end), unit = !strcmp(end, "d") ? 86400e9 : !strcmp(end, "h") ? 3600e9 : 0;
    if (!*v) return age;
    if (unit > 0 && end != v && n >= 0 && n * unit < 9e18) return (uint64_t)(n * unit);
    if (!fdri_life_parse_duration(v, &age))
        report_bad_value("FDR_CRASH_AGE", v, "not a duration (a number with d, h, s, ms, us or ns)", "14d");
    return age;
}

static void parse_retention(struct source *in, const struct fdr_config *c)
{
    struct fdri_policies_retention *r = &in->s->retention;
    const char *most = setting_text(in, "FDR_CRASH_TOTAL", c->crash_total);
    r->off = !strcmp(most, "off");
    r->most = limit_of("FDR_CRASH_TOTAL", r->off ? "" : most, 0.10, "10%");
    r->unused = limit_of("FDR_CRASH_FREE", setting_text(in, "FDR_CRASH_FREE", c->crash_free), 0.15, "15%");
    r->age_ns = age_of(setting_text(in, "FDR_CRASH_AGE", c->crash_age));
}

static void parse_keep(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_KEEP", field);
    in->s->keep = 8;
    in->s->keep_newest = false;
    if (!*v) return;
    char *end;
    unsigned long n = strtoul(v, &end, 10);
    if (*v < '0' || *v > '9' || n < 1 || (*end && strcmp(end, ",oldest") && strcmp(end, ",newest"))) {
        report_bad_value("FDR_KEEP", v, "expected a count, with or without ,oldest or ,newest after it", "8,oldest");
        return;
    }
    in->s->keep = (uint32_t)fdri_bits_min(n, FDRI_EXPORT_KEEP_MAX);
    in->s->keep_newest = !strcmp(end, ",newest");
    if (n > FDRI_EXPORT_KEEP_MAX)
        report_bad_value("FDR_KEEP", v, "no more than 256 snapshots are kept",
                         in->s->keep_newest ? "256,newest" : "256,oldest");
}

static void parse_depth(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_DEPTH", field);
    in->s->depth = UINT32_MAX;
    if (!*v) return;
    char *end;
    errno = 0;
    unsigned long n = strtoul(v, &end, 10);
    if (*end || *v < '0' || *v > '9' || errno || n < 1 || n >= UINT32_MAX)
        report_bad_value("FDR_DEPTH", v, "not a depth (a whole number from 1 on)", "no limit");
    else in->s->depth = (uint32_t)n;
}

static void copy_list(struct source *in, char *to, size_t bytes, const char *variable, const char *field)
{
    const char *v = setting_text(in, variable, field);
    if (strlen(v) >= bytes) report_bad_value(variable, v, "longer than 511 bytes", "none");
    else if (*v && !v[strspn(v, ", |")]) report_bad_value(variable, v, "names nothing", "none");
    else strcpy(to, v);
}

static void copy_counters(struct source *in, char *to, size_t bytes, const char *variable, const char *field)
{
    copy_list(in, to, bytes, variable, field);
    if (!strcmp(to, "off")) *to = 0;
}

static void parse_counters(struct source *in, const struct fdr_config *c)
{
    struct fdri_counters_plan *p = &in->s->counters;
    copy_counters(in, p->sampled, sizeof p->sampled, "FDR_COUNTERS", c->counters);
    copy_counters(in, p->edges, sizeof p->edges, "FDR_EDGE_COUNTERS", c->edge_counters);
    copy_counters(in, p->papi, sizeof p->papi, "FDR_PAPI", c->papi);
    copy_list(in, in->s->edge_regions, sizeof in->s->edge_regions, "FDR_EDGE_REGIONS", c->edge_regions);
    const char *v = setting_text(in, "FDR_COUNTER_INTERVAL", c->counter_interval);
    p->interval_ns = 1000000;
    if (!*v ||
        (fdri_life_parse_duration(v, &p->interval_ns) && p->interval_ns >= 100000 && p->interval_ns <= 10000000000u))
        return;
    report_bad_value("FDR_COUNTER_INTERVAL", v, "not a duration from 100us to 10s", "1ms");
    p->interval_ns = 1000000;
}

static void parse_watchdog(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_WATCHDOG", field);
    in->s->watchdog_ns = 0;
    in->s->watchdog_job = false;
    if (!*v || !strcmp(v, "off") || !strcmp(v, "0")) return;
    char time[40];
    const char *comma = strchr(v, ',');
    bool good = !comma || !strcmp(comma, ",job");
    snprintf(time, sizeof time, "%.*s", (int)(comma ? fdri_bits_min((size_t)(comma - v), sizeof time - 1) : 39), v);
    if (!good || !fdri_life_parse_duration(time, &in->s->watchdog_ns) || in->s->watchdog_ns < 10000000) {
        report_bad_value("FDR_WATCHDOG", v, "not a duration of at least 10ms, with or without ,job after it", "off");
        in->s->watchdog_ns = 0;
    }
    in->s->watchdog_job = in->s->watchdog_ns && comma;
}

/* Triggers on regions have a shorter one by default: a disk of 250 MB/s writes 64 MiB in that time. */
static void parse_holdoff(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_HOLDOFF", field);
    in->s->region_holdoff_ns = duration_of("FDR_HOLDOFF", v, 250000000, "1s, for regions 250ms");
    in->s->holdoff_ns = 1000000000;
    fdri_life_parse_duration(v, &in->s->holdoff_ns);
}

static void parse_overhead(struct source *in, const char *field)
{
    const char *v = setting_text(in, "FDR_OVERHEAD", field), *end = v;
    in->s->overhead = -1;
    if (!*v || !strcmp(v, "off")) return;
    double percent = fdri_text_number(v, &end);
    if (end != v && !strcmp(end, "%") && percent >= 0 && percent <= 100) in->s->overhead = percent / 100;
    else report_bad_value("FDR_OVERHEAD", v, "not a share from 0% to 100%, such as 2%", "off");
}

static void copy_path(char *to, size_t bytes, const char *variable, const char *v, const char *fallback)
{
    if (strlen(v) >= bytes) {
        report_bad_value(variable, v, "too long", *fallback ? fallback : "none");
        v = "";
    }
    snprintf(to, bytes, "%s", *v ? v : fallback);
}

/* Makes a relative path absolute, from the working directory at the start. */
static void make_absolute(char *path, size_t bytes, const char *variable, const char *start)
{
    char whole[1100];
    if (path[0] == '/' || start[0] != '/') return;
    int n = snprintf(whole, sizeof whole, "%s/%s", start, path);
    if (n < (int)bytes) memcpy(path, whole, (size_t)n + 1);
    else report_bad_value(variable, path, "too long with the working directory put before it", "the relative path");
}

/* A message if FDR_DIR looks unusable. It is used all the same: it may be usable by the time of a snapshot. The check
 * creates nothing, as several processes may start at once. */
static void look_at_dir(const struct fdri_life_settings *s)
{
    struct stat st;
    int e = stat(s->dir, &st) ? errno : !S_ISDIR(st.st_mode) ? ENOTDIR : 0;
    if (!e && faccessat(AT_FDCWD, s->dir, W_OK | X_OK, AT_EACCESS)) e = errno;
    if (e)
        fdri_text_message("FDR_DIR=%s: %s; recording goes on, but snapshots fail until that changes, and a crash "
                          "bundle stays in the live directory",
                          s->dir, strerror(e));
}

void fdri_life_program_path(char *path, size_t bytes)
{
    ssize_t n = readlink("/proc/self/exe", path, bytes - 1);
    if (n < 0) n = readlink("/proc/thread-self/exe", path, bytes - 1); /* the first thread has ended */
    path[n > 0 ? n : 0] = 0;
}

/* Sets the name to the last component of path, as a path would lead to another directory. False: it is empty. */
static bool name_of(struct fdri_life_settings *s, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (*name) snprintf(s->name, sizeof s->name, "%.63s", name);
    return *name;
}
static void default_name(struct fdri_life_settings *s)
{
    char path[512];
    fdri_life_program_path(path, sizeof path);
    if (!name_of(s, path)) snprintf(s->name, sizeof s->name, "program");
}

int fdri_life_settings_parse(struct fdri_life_settings *s, const struct fdr_config *given)
{
    static const char *const onoff[] = {"0", "1", NULL}, *const arenas[] = {"mapped", "anonymous", NULL};
    static const char *const strategies[] = {"whole", "last", "first", "telescope", NULL}, *const timers[] = {
                                                                                               "tsc", "monotonic",
                                                                                               NULL};
    static const char *const forks[] = {"daemon", "follow", "off", NULL};
    static const char *const finals[] = {"none", "snapshot", NULL};
    struct fdr_config none = {.size = sizeof none}, c = none;
    if (given) memcpy(&c, given, given->size < sizeof c ? given->size : sizeof c); /* shorter in older callers */
    struct source in = {.config = &c, .s = s};
    memset(s, 0, sizeof *s);
    strict = c.strict;
    refused = 0;
    s->enable = choice(&in, "FDR_ENABLE", c.enable, onoff, 1);
    parse_buffer(&in, c.buffer);
    parse_bin(&in, c.bin);
    s->arena = choice(&in, "FDR_ARENA", c.arena, arenas, 0) ? FDRI_LIFE_ANONYMOUS : FDRI_LIFE_MAPPED;
    s->strategy = (enum fdri_arena_strategy)choice(&in, "FDR_STRATEGY", c.strategy, strategies,
                                                   FDRI_ARENA_STRATEGY_TELESCOPE);
    parse_chain(&in, c.reduce);
    parse_shares(&in, c.telescope);
    parse_classes(&in, c.classes);
    s->min_duration_ns = duration_setting(&in, "FDR_MIN_DURATION", c.min_duration, 0, "0");
    s->resolution_ns = resolution_setting(&in, c.resolution);
    parse_holdoff(&in, c.holdoff);
    s->disk_bytes = size_setting(&in, "FDR_DISK", c.disk, 512u << 20, "512M");
    parse_depth(&in, c.depth);
    s->monotonic = choice(&in, "FDR_TIMER", c.timer, timers, 0);
    parse_signal(&in, c.signal);
    parse_crash(&in, c.crash);
    s->crash_deadline_ns = deadline_setting(&in, c.crash_deadline);
    parse_retention(&in, &c);
    parse_keep(&in, c.keep);
    parse_counters(&in, &c);
    s->final_snapshot = choice(&in, "FDR_FINALIZE", c.finalize, finals, 0);
    s->live_force = choice(&in, "FDR_LIVE_FORCE", c.live_force, onoff, 0);
    char shm[64];
    snprintf(shm, sizeof shm, "/dev/shm/fdr-%u", (unsigned)geteuid());
    copy_path(s->live_dir, sizeof s->live_dir, "FDR_LIVE_DIR", setting_text(&in, "FDR_LIVE_DIR", c.live_dir), shm);
    char cwd[sizeof s->dir];
    if (!getcwd(cwd, sizeof cwd)) strcpy(cwd, ".");
    const char *dir = setting_text(&in, "FDR_DIR", c.dir);
    copy_path(s->dir, sizeof s->dir, "FDR_DIR", dir, cwd);
    bool dir_given = strcmp(s->dir, dir) == 0; /* not too long, so not replaced */
    make_absolute(s->dir, sizeof s->dir, "FDR_DIR", cwd);
    make_absolute(s->live_dir, sizeof s->live_dir, "FDR_LIVE_DIR", cwd);
    if (s->enable && dir_given) look_at_dir(s);
    copy_path(s->sample, sizeof s->sample, "FDR_SAMPLE", setting_text(&in, "FDR_SAMPLE", c.sample), "");
    copy_path(s->filter, sizeof s->filter, "FDR_FILTER", setting_text(&in, "FDR_FILTER", c.filter), "");
    copy_path(s->triggers, sizeof s->triggers, "FDR_TRIGGERS", setting_text(&in, "FDR_TRIGGERS", c.triggers), "");
    parse_watchdog(&in, c.watchdog);
    copy_list(&in, s->watchdog_ignore, sizeof s->watchdog_ignore, "FDR_WATCHDOG_IGNORE", c.watchdog_ignore);
    parse_overhead(&in, c.overhead);
    s->pin_ns = duration_setting(&in, "FDR_PIN", c.pin, 0, "0");
    s->fork = (enum fdri_life_fork_mode)choice(&in, "FDR_FORK", c.fork, forks, FDRI_LIFE_FORK_DAEMON);
    s->check = choice(&in, "FDR_CHECK", c.check, onoff, 0);
    if (!c.name || !name_of(s, c.name)) default_name(s);
    if (!c.ignore_environment) fdri_life_check_misspelt(in.known, in.known_count);
    return strict && refused ? -EINVAL : 0;
}
