/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=240 wrap=fdri_part_open
 * P8: a handler leaves by longjmp at each instruction of opening the first bin of a partition, and of a call that sets the first moments
 * aside. Bins and files are whole whatever follows, and what was set aside stays as it was. */
#include "tests/api_fixture.h"

#include "tests/rnd.h"
#include "tests/steps.h"

#ifdef CAN_STEP
enum { REGIONS = 12, DEPTH = 60, EACH = 300 };
static const uint64_t length[FDR_BANDS] = {100, 2000, 100000, 1000000};
static fdr_region region[REGIONS];
static uint64_t seed, now;
static uint32_t band; /* of the call that is left */

static struct fdr_location *self(void) { return fdri_self.loc; }
static void enter(void) { fdr_enter_at(region[rnd(&seed, REGIONS)], ++now); }
static void leave(void) { fdr_leave_at(fdri_self.top->region, now); }

static void leave_after(uint64_t ns)
{
    now += ns;
    leave();
}

static void to_depth(uint32_t depth)
{
    while (self()->depth < depth) enter();
    while (self()->depth > depth) leave_after(1);
}

static void present(uint32_t depth, uint32_t calls)
{
    for (uint32_t i = 0; i < calls; i++) {
        to_depth(depth - 1);
        enter();
        leave_after(length[rnd(&seed, 8) ? band : rnd(&seed, FDR_BANDS)]);
    }
}

static void start(const char *pin)
{
    begin(&(struct fdr_config){.strategy = rnd(&seed, 2) ? "telescope" : "last",
                               .buffer = "512K",
                               .bin = rnd(&seed, 2) ? "512" : "4K",
                               .pin = pin});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "room_steps.c", 1);
    now = 1000000;
    enter();
}

/* Bins on their way when it was left are nobody's from then on, though counted by their partition or as free still. */
static void whole(uint32_t n)
{
    char text[160];
    const char *wrong = fdri_bins_check(&fdri_rec.arena, text, sizeof text);
    if (wrong && !strstr(wrong, "bins lost") && !strstr(wrong, "miscounted")) fail_msg("left at %u: %s", n, wrong);
}

/* Where stepping begins. */
static enum { NOWHERE, OPENING } from;

/* Leaves f at instruction n behind there. */
static bool leave_behind(uint32_t n, void (*f)(void))
{
    volatile bool left = true;
    if (!sigsetjmp(steps_away, 1)) {
        steps_until = n;
        f();
        steps_off();
        left = false;
    }
    from = NOWHERE;
    steps_until = 0;
    return left;
}

void __real_fdri_part_open(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t off,
                           uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max);
void __wrap_fdri_part_open(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t off,
                           uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max);
void __wrap_fdri_part_open(struct fdri_arena *a, struct fdr_location *l, struct fdr_part *p, uint32_t off,
                           uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max)
{
    if (from == OPENING) steps_on();
    __real_fdri_part_open(a, l, p, off, size_log2, base_ordinal, record_bits_max);
}

static void end_call(void) { leave_after(length[band]); }

static void P8_a_first_bin(void **state)
{
    (void)state;
    uint32_t depth = 0, n = 1;
    for (bool left = true; left; n++) {
        if (!depth--) {
            if (n > 1) fdr_file_close(take());
            start(NULL);
            depth = DEPTH;
        }
        band = rnd(&seed, FDR_BANDS);
        to_depth(depth + 1); /* nothing of this depth was stored */
        from = OPENING;
        left = leave_behind(n, end_call);
        present(depth + 1, 20);
        whole(n);
    }
    fdr_file_close(take());
    fdr_finalize();
    assert_true(n > 100);
}

static uint64_t set_aside(void)
{
    uint64_t records = 0;
    for (uint32_t off = self()->parts_first; off; off = ((struct fdr_part *)fdri_off(&fdri_self, off))->next) {
        const struct fdr_part *p = fdri_off(&fdri_self, off);
        if (p->flags & FDR_PART_ASIDE) records += p->total + 1;
    }
    return records;
}

static void P8_first_moments(void **state)
{
    (void)state;
    uint32_t n = 1, tried = 0, any = 0;
    for (bool left = true; left; n += n < EACH ? 1 : 1 + rnd(&seed, n / 20), tried++) {
        start("100us");
        while (!fdri_self.aside_due) present(2 + rnd(&seed, 3), 1);
        now++;
        left = leave_at(enter, n);
        while (fdri_self.aside_due) present(2, 1);
        uint64_t before = set_aside();
        any += before != 0;
        for (int i = 0; i < 40; i++) present(2 + rnd(&seed, 3), 20);
        if (set_aside() != before) fail_msg("left at %u: what was set aside is added to, or given back", n);
        whole(n);
        fdr_file_close(take());
    }
    fdr_finalize();
    assert_true(any > 100);
}

int main(void)
{
    steps_begin();
    seed = 9;
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_a_first_bin), cmocka_unit_test(P8_first_moments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    printf("skipped: steps single instructions of x86-64, without sanitizers\n");
    return 77;
}
#endif
