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

#include "base/fd/open_high.h"
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

/* ---- as a source ---- */

static struct fdr_counter chosen[FDR_SOURCE_COUNTERS];
static struct fdr_counter_info information[FDR_SOURCE_COUNTERS]; /* has the names and units of `chosen` */

/* state[0]: the set, and its provider; another one may be known when the set is closed. */
static int open_set(struct fdr_counter_handle *h)
{
    char why[FDRI_COUNTERS_WHY_BYTES];
    const struct fdr_counter_provider *p = fdri_counters_provider(why, sizeof why);
    struct fdri_fd_placeholders low;
    fdri_fd_fill_low(&low); /* the provider opens perf events */
    void *set = p ? p->open() : NULL;
    fdri_fd_clear_low(&low);
    h->state[0][0] = (uintptr_t)set;
    h->state[0][1] = (uintptr_t)p;
    return set ? 0 : -ENODEV;
}

static const struct fdr_counter_provider *provider_of(const struct fdr_counter_handle *h)
{
    return (const void *)(uintptr_t)h->state[0][1];
}

static int read_set(struct fdr_counter_handle *h, uint64_t *value)
{
    return provider_of(h)->read((void *)(uintptr_t)h->state[0][0], value);
}

static void close_set(struct fdr_counter_handle *h) { provider_of(h)->close((void *)(uintptr_t)h->state[0][0]); }

struct fdr_counter_source fdri_counters_source_provided = {
    .size = sizeof(struct fdr_counter_source),
    .name = "",
    .scope = FDR_COUNTER_OWN_THREAD,
    .counter = chosen,
    .open = open_set,
    .read = read_set,
    .close = close_set,
};

void fdri_counters_provided_choose(const char *list, size_t most, char *missing, size_t missing_bytes)
{
    char why[FDRI_COUNTERS_WHY_BYTES] = "";
    uint32_t *count = &fdri_counters_source_provided.count;
    const struct fdr_counter_provider *p = fdri_counters_provider(why, sizeof why);
    size_t n = p ? p->choose(list, information, most) : 0, used = 0;
    *count = 0;
    missing[0] = 0;
    if (!p) snprintf(missing, missing_bytes, "%s", why);
    for (size_t i = 0; i < n && i < most; i++) {
        const struct fdr_counter_info *info = &information[i];
        if (info->works) chosen[(*count)++] = (struct fdr_counter){info->name, info->unit, info->kind, FDR_U64};
        else if (used < missing_bytes)
            used += (size_t)snprintf(missing + used, missing_bytes - used, "%s%s: %s", used ? "; " : "", info->name,
                                     info->why);
    }
    if (n > most && used < missing_bytes)
        snprintf(missing + used, missing_bytes - used, "%severything beyond %d counters", used ? "; " : "",
                 FDR_SOURCE_COUNTERS);
}
