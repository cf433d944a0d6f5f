/* SPDX-License-Identifier: MIT */
/* Finds the C library's functions behind ours. All are found when this library starts, before main. Constructors of
 * other libraries run earlier; what they call is searched for then. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "adapters/io/io_adapter.h"

fdri_io_any *fdri_io_known[FDRI_IO_FUNCTIONS];

static const char *const names[FDRI_IO_FUNCTIONS] = {
#define NAME(name) [FDRI_IO_##name] = #name,
    FDRI_IO_POSIX(NAME) FDRI_IO_STDIO(NAME)};

/* The search may allocate, and allocators that stand for the C library's read files when they start. These calls of
 * theirs come while the search for the same function is under way. */
static __thread bool searching;

static int early_open(const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
static ssize_t early_read(int fd, void *buffer, size_t bytes) { return syscall(SYS_read, fd, buffer, bytes); }
static ssize_t early_write(int fd, const void *buffer, size_t bytes) { return syscall(SYS_write, fd, buffer, bytes); }
static int early_close(int fd) { return (int)syscall(SYS_close, fd); }

static fdri_io_any *early(enum fdri_io_function which)
{
    switch (which) {
    case FDRI_IO_open: return (fdri_io_any *)early_open;
    case FDRI_IO_read: return (fdri_io_any *)early_read;
    case FDRI_IO_write: return (fdri_io_any *)early_write;
    case FDRI_IO_close: return (fdri_io_any *)early_close;
    default: return NULL;
    }
}

fdri_io_any *fdri_io_search(enum fdri_io_function which)
{
    fdri_io_any *found = searching ? early(which) : NULL;
    if (found) return found;
    bool before = searching;
    searching = true;
    *(void **)&found = dlsym(RTLD_NEXT, names[which]);
    searching = before;
    if (found) __atomic_store_n(&fdri_io_known[which], found, __ATOMIC_RELAXED);
    return found;
}

void fdri_io_search_all(void)
{
    for (int i = 0; i < FDRI_IO_FUNCTIONS; i++) fdri_io_find((enum fdri_io_function)i);
}
