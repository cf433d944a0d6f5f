/* SPDX-License-Identifier: MIT */
/* OTF2's functions behind ours. A program that is linked with libfdr-otf2 is linked with OTF2, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapters/otf2/otf2_adapter.h"

fdri_otf2_any *fdri_otf2_real(const char *name)
{
    fdri_otf2_any *found;
    *(void **)&found = dlsym(RTLD_NEXT, name);
    if (found) return found;
    fprintf(stderr, "fdr: libfdr-otf2: no library behind it has %s; link the program with OTF2, behind libfdr-otf2\n",
            name);
    abort(); /* as the dynamic linker would have ended the program without us */
}
