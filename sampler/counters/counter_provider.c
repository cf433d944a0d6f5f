/* SPDX-License-Identifier: MIT */
/* The provider of counters outside of libfdr: one that the program registered, libfdr-papi linked with the program, or
 * libfdr-papi loaded for FDR_PAPI or FDR_SAMPLE. Libfdr itself never links PAPI. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fdr/version.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/counters/counter.h"

typedef const struct fdr_counter_provider *provider_function(void);

/* Defined if the program is linked with libfdr-papi. */
extern provider_function fdr_papi_provider __attribute__((weak));

static const struct fdr_counter_provider *known;

int fdr_counter_provide(const struct fdr_counter_provider *p)
{
    if (p && (p->size < offsetof(struct fdr_counter_provider, overflow_choose) || !p->name || !p->probe || !p->choose ||
              !p->open || !p->read || !p->close))
        return -EINVAL;
    known = p;
    return 0;
}

/* Loads libfdr-papi from the folder of libfdr, otherwise by the loader's search path. */
static void *load(void)
{
    static const char name[] = "libfdr-papi.so.0";
    char path[1024];
    Dl_info self;
    if (dladdr((void *)(uintptr_t)&load, &self) && self.dli_fname) {
        const char *slash = strrchr(self.dli_fname, '/');
        int folder = slash ? (int)(slash - self.dli_fname) + 1 : 0;
        snprintf(path, sizeof path, "%.*s%s", folder, self.dli_fname, name);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library || !access(path, R_OK)) return library; /* if the file exists, its own error is the reason */
    }
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

const struct fdr_counter_provider *fdri_counters_provider(char *why, size_t why_bytes)
{
    static const struct fdr_counter_provider *loaded;
    if (known) return known;
    if (fdr_papi_provider) return fdr_papi_provider();
    if (!loaded) {
        void *library = load();
        void *symbol = library ? dlsym(library, "fdr_papi_provider") : NULL;
        provider_function *function;
        memcpy(&function, &symbol, sizeof function);
        if (symbol) loaded = function();
        else snprintf(why, why_bytes, "libfdr-papi: %s", library ? "it has no symbol fdr_papi_provider" : dlerror());
    }
    return loaded;
}
