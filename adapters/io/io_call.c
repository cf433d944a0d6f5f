/* SPDX-License-Identifier: MIT */
/* One call of the program: a region named for the function, and in it the begin and the end of an operation on a file.
 * The place of the region's source says its group, "io:posix" or "io:stdio". */
#include <errno.h>
#include <string.h>
#include "adapters/io/io_adapter.h"

static const struct {
    const char *name, *group;
} function[FDRI_IO_FUNCTIONS] = {
#define OF_POSIX(name) [FDRI_IO_##name] = {#name, "io:posix"},
#define OF_STDIO(name) [FDRI_IO_##name] = {#name, "io:stdio"},
    FDRI_IO_POSIX(OF_POSIX) FDRI_IO_STDIO(OF_STDIO)};

static uint32_t region[FDRI_IO_FUNCTIONS];

/* The name in the program's source: read and getdelim for __read_chk and __getdelim, which headers put there. */
static const char *plain(const char *name, char text[32])
{
    size_t from = name[0] == '_' ? 2 : 0, n = strlen(name + from);
    if (from && !strcmp(name + strlen(name) - 4, "_chk")) n -= 4;
    if (from && !strcmp(name + strlen(name) - 2, "_2")) n -= 2;
    memcpy(text, name + from, n);
    text[n] = 0;
    return text;
}

static fdr_region enter_region(enum fdri_io_function which)
{
    char text[32] = "";
    bool known = __atomic_load_n(&region[which], __ATOMIC_RELAXED) - 1u < FDR_REFUSED_ - 1u;
    return fdr_scope_enter_(&region[which], known ? text : plain(function[which].name, text), function[which].group, 0);
}

struct fdri_io_call fdri_io_enter(enum fdri_io_function which, fdr_io_file file, uint32_t operation, uint64_t bytes,
                                  uint64_t offset)
{
    struct fdri_io_call c = {.file = file, .operation = operation, .error = ECANCELED};
    c.region = enter_region(which);
    c.began = fdr_io_begin(file, operation, bytes, offset);
    return c;
}

void fdri_io_leave(struct fdri_io_call *c)
{
    fdr_io_end(c->file, c->operation, c->bytes, c->error, c->began);
    if (c->region != FDR_NOT_ENTERED_) fdr_leave(c->region);
}

ssize_t fdri_io_moved(struct fdri_io_call *c, ssize_t bytes)
{
    c->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    c->error = bytes < 0 ? errno : 0;
    return bytes;
}

int fdri_io_status(struct fdri_io_call *c, int status)
{
    c->error = status < 0 ? errno : 0;
    return status;
}

/* As libfdr-instrument does: 101 is the first priority that is not reserved. */
__attribute__((constructor(101))) static void start(void)
{
    int error = errno;
    fdri_io_search_all();
    fdri_io_own_look();
    (void)fdr_init(NULL);
    fdri_io_own_look(); /* it may have loaded others of its own */
    errno = error;
}
