/* SPDX-License-Identifier: MIT */
/* P8: any bytes. Everything the reader can be asked is asked; every event is looked at for nesting and time. */
#include <fdr/reader.h>
#include <stdlib.h>

static void walk(struct fdr_file *f, const struct fdr_select *select)
{
    struct fdr_iter *it = fdr_iter_open(f, select);
    struct fdr_read_event e;
    uint64_t newest = 0, count = 0;
    if (!it) return;
    while (fdr_iter_next(it, &e)) {
        if (e.time_ns < newest && !(select && select->one_location_after_another)) abort();
        newest = e.time_ns;
        if (++count > 20000000u) abort(); /* an event needs at least a bit */
    }
    fdr_iter_close(it);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fdr_file *f;
    char message[256];
    setenv("FDR_SYMBOLS", "0", 1);
    if (fdr_file_open_memory(data, size, &f, message, sizeof message) == FDR_UNREADABLE) return 0;
    const struct fdr_ledger_row *ledger;
    const struct fdr_total *totals;
    const struct fdr_reduction_info *reductions;
    walk(f, NULL); /* before and after bins are known to be good */
    fdr_file_verify(f);
    fdr_ledger(f, &ledger);
    fdr_totals(f, &totals);
    fdr_reductions(f, &reductions);
    struct fdr_select some = {
        .depth_min = 2, .depth_max = 5, .from_ns = 1000, .min_duration_ns = 3, .one_location_after_another = true};
    walk(f, NULL);
    walk(f, &some);
    for (uint32_t kind = 0; kind < 9; kind++) fdr_definition(f, (enum fdr_definition_kind)kind, 3);
    fdr_file_close(f);
    return 0;
}
