/* SPDX-License-Identifier: MIT */
/* Readings of all clocks at once, and the rate of the tick counter. */
#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct fdri_clock_reading fdri_clock_read(bool ticks)
{
    struct fdri_clock_reading best = {0, 0, 0};
    uint64_t tightest = UINT64_MAX;
    for (int i = 0; i < 50; i++) {
        uint64_t a = ticks ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC);
        uint64_t m = fdri_clock_ns(CLOCK_MONOTONIC);
        uint64_t r = fdri_clock_ns(CLOCK_REALTIME);
        uint64_t b = ticks ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC);
        if (b - a >= tightest) continue;
        tightest = b - a;
        /* CLOCK_MONOTONIC is read after about a third of the bracket. */
        best = (struct fdri_clock_reading){ticks ? a + (b - a) / 3 : m, m, r};
    }
    return best;
}

bool fdri_clock_ticks_usable(void)
{
#if defined(__aarch64__)
    return true;
#elif defined(__x86_64__)
    static const char *const path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    /* kvm-clock and the clock page of Hyper-V derive from a TSC that the host promises to be stable */
    const char *const built_on_it[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"};
    bool usable = false;
    for (size_t i = 0; n > 0 && i < 3; i++) usable |= !strncmp(text, built_on_it[i], strlen(built_on_it[i]));
    return usable;
#else
    return false;
#endif
}

uint64_t fdri_clock_ticks_rate(uint64_t window_ns)
{
#if defined(__aarch64__)
    (void)window_ns;
    uint64_t hz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
#else
    struct fdri_clock_reading a = fdri_clock_read(true), b = a;
    while (b.monotonic_ns - a.monotonic_ns < window_ns) b = fdri_clock_read(true);
    return (uint64_t)((unsigned __int128)(b.tick - a.tick) * 1000000000u / (b.monotonic_ns - a.monotonic_ns));
#endif
}
