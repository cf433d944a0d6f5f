/* SPDX-License-Identifier: MIT */
/* Without elfutils: an address keeps the name of its module and its offset there. */
#include "reader/symbols.h"

void fdr_file_symbolise(struct fdr_file *f) { fdri_reader_symbols_fallback(f); }
