/* SPDX-License-Identifier: MIT */
/* Without elfutils: frames have module and offset only. */
#include <fdr/reader.h>
#include <stdbool.h>
#include <stdint.h>

#include "reader/bundle/crash_bundle.h"
#include "reader/file/file.h"

void fdri_bundle_unwind(struct fdr_file *f, struct fdri_bundle_thread *t) { (void)f, (void)t; }

void fdri_bundle_frame_at(struct fdr_file *f, struct fdri_bundle_thread *t, uint64_t address, bool after, bool guessed)
{
    (void)after;
    struct fdr_crash_frame *r = fdri_bundle_frame(t);
    const struct fdri_file_definition *m = fdri_bundle_module_at(f, address);
    if (!r) return;
    r->address = address;
    r->guessed = guessed;
    if (!m) return;
    r->module = m->d.name;
    r->offset = address - m->d.address;
}

void fdri_bundle_unwind_end(struct fdri_bundle *b) { (void)b; }
