/* SPDX-License-Identifier: MIT */
/* libfdr-papi: the functions that libfdr calls. */
#include <fdr/papi.h>

#include "sampler/papi/papi.h"

const struct fdr_counter_provider *fdr_papi_provider(void)
{
    static const struct fdr_counter_provider provider = {.size = sizeof provider,
                                                         .name = "PAPI",
                                                         .probe = fdri_papi_probe,
                                                         .choose = fdri_papi_choose,
                                                         .open = fdri_papi_open,
                                                         .read = fdri_papi_read,
                                                         .close = fdri_papi_close,
                                                         .overflow_choose = fdri_papi_overflow_choose,
                                                         .overflow_open = fdri_papi_overflow_open,
                                                         .overflow_close = fdri_papi_close};
    return &provider;
}
