/* SPDX-License-Identifier: MIT */
/* open, read, write, close, fsync and their kin. The buffers, and the vectors of readv, are left to the kernel: it
 * answers EFAULT where they are wrong. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>
#include "adapters/io/io_adapter.h"

/* Headers put these in the place of functions where buffers are checked (_FORTIFY_SOURCE). */
FDR_API int __open_2(const char *path, int flags);
FDR_API int __openat_2(int directory, const char *path, int flags);
FDR_API ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room);
FDR_API ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t offset, size_t room);

static bool has_mode(int flags) { return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE; }

static int opened(struct fdri_io_call *c, int fd)
{
    if (fd >= 0) fdri_io_file_is(fd, c->file);
    return fdri_io_status(c, fd);
}

#define OPENS(name, directory, path)                                                                                   \
    FDRI_IO_CALL(name, fdri_io_file_at(directory, path), FDR_IO_OPEN, 0, FDR_IO_NO_OFFSET)

FDR_API int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (FDRI_IO_OFF) return FDRI_IO_REAL(open)(path, flags, mode);
    OPENS(open, AT_FDCWD, path);
    return opened(&call, FDRI_IO_REAL(open)(path, flags, mode));
}
FDR_API int openat(int directory, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (FDRI_IO_OFF) return FDRI_IO_REAL(openat)(directory, path, flags, mode);
    OPENS(openat, directory, path);
    return opened(&call, FDRI_IO_REAL(openat)(directory, path, flags, mode));
}
int __open_2(const char *path, int flags)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(__open_2)(path, flags);
    OPENS(__open_2, AT_FDCWD, path);
    return opened(&call, FDRI_IO_REAL(__open_2)(path, flags));
}
int __openat_2(int directory, const char *path, int flags)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(__openat_2)(directory, path, flags);
    OPENS(__openat_2, directory, path);
    return opened(&call, FDRI_IO_REAL(__openat_2)(directory, path, flags));
}
FDR_API int creat(const char *path, mode_t mode)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(creat)(path, mode);
    OPENS(creat, AT_FDCWD, path);
    return opened(&call, FDRI_IO_REAL(creat)(path, mode));
}

/* ---- close, and descriptors that become other files ---- */

/* Forgotten before: another thread may get the number at once. */
FDR_API int close(int fd)
{
    if (FDRI_IO_OFF) {
        if (fd >= 0) fdri_io_forget((unsigned)fd, (unsigned)fd);
        return FDRI_IO_REAL(close)(fd);
    }
    FDRI_IO_CALL(close, fdri_io_file_of(fd), FDR_IO_CLOSE, 0, FDR_IO_NO_OFFSET);
    if (fd >= 0) fdri_io_forget((unsigned)fd, (unsigned)fd);
    return fdri_io_status(&call, FDRI_IO_REAL(close)(fd));
}
FDR_API int dup2(int fd, int to)
{
    int result = FDRI_IO_REAL(dup2)(fd, to);
    if (result >= 0 && fd != to) fdri_io_forget((unsigned)to, (unsigned)to);
    return result;
}
FDR_API int dup3(int fd, int to, int flags)
{
    int result = FDRI_IO_REAL(dup3)(fd, to, flags);
    if (result >= 0) fdri_io_forget((unsigned)to, (unsigned)to);
    return result;
}
FDR_API int close_range(unsigned from, unsigned to, int flags)
{
    if (!(flags & CLOSE_RANGE_CLOEXEC)) fdri_io_forget(from, to);
    return FDRI_IO_REAL(close_range)(from, to, flags);
}
FDR_API void closefrom(int from)
{
    fdri_io_forget(from < 0 ? 0 : (unsigned)from, UINT32_MAX);
    FDRI_IO_REAL(closefrom)(from);
}
/* It closes its descriptor inside of the C library. */
FDR_API int closedir(DIR *directory)
{
    int fd = dirfd(directory);
    if (fd >= 0) fdri_io_forget((unsigned)fd, (unsigned)fd);
    return FDRI_IO_REAL(closedir)(directory);
}

/* ---- read and write ---- */

#define MOVES(name, fd, operation, bytes, offset) FDRI_IO_CALL(name, fdri_io_file_of(fd), operation, bytes, offset)

FDR_API ssize_t read(int fd, void *buffer, size_t bytes)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(read)(fd, buffer, bytes);
    MOVES(read, fd, FDR_IO_READ, bytes, FDR_IO_NO_OFFSET);
    return fdri_io_moved(&call, FDRI_IO_REAL(read)(fd, buffer, bytes));
}
ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(__read_chk)(fd, buffer, bytes, room);
    MOVES(__read_chk, fd, FDR_IO_READ, bytes, FDR_IO_NO_OFFSET);
    return fdri_io_moved(&call, FDRI_IO_REAL(__read_chk)(fd, buffer, bytes, room));
}
FDR_API ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(pread)(fd, buffer, bytes, offset);
    MOVES(pread, fd, FDR_IO_READ, bytes, (uint64_t)offset);
    return fdri_io_moved(&call, FDRI_IO_REAL(pread)(fd, buffer, bytes, offset));
}
ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t offset, size_t room)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(__pread_chk)(fd, buffer, bytes, offset, room);
    MOVES(__pread_chk, fd, FDR_IO_READ, bytes, (uint64_t)offset);
    return fdri_io_moved(&call, FDRI_IO_REAL(__pread_chk)(fd, buffer, bytes, offset, room));
}
FDR_API ssize_t readv(int fd, const struct iovec *vector, int count)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(readv)(fd, vector, count);
    MOVES(readv, fd, FDR_IO_READ, 0, FDR_IO_NO_OFFSET);
    return fdri_io_moved(&call, FDRI_IO_REAL(readv)(fd, vector, count));
}
FDR_API ssize_t preadv(int fd, const struct iovec *vector, int count, off_t offset)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(preadv)(fd, vector, count, offset);
    MOVES(preadv, fd, FDR_IO_READ, 0, (uint64_t)offset);
    return fdri_io_moved(&call, FDRI_IO_REAL(preadv)(fd, vector, count, offset));
}
FDR_API ssize_t write(int fd, const void *buffer, size_t bytes)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(write)(fd, buffer, bytes);
    MOVES(write, fd, FDR_IO_WRITE, bytes, FDR_IO_NO_OFFSET);
    return fdri_io_moved(&call, FDRI_IO_REAL(write)(fd, buffer, bytes));
}
FDR_API ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(pwrite)(fd, buffer, bytes, offset);
    MOVES(pwrite, fd, FDR_IO_WRITE, bytes, (uint64_t)offset);
    return fdri_io_moved(&call, FDRI_IO_REAL(pwrite)(fd, buffer, bytes, offset));
}
FDR_API ssize_t writev(int fd, const struct iovec *vector, int count)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(writev)(fd, vector, count);
    MOVES(writev, fd, FDR_IO_WRITE, 0, FDR_IO_NO_OFFSET);
    return fdri_io_moved(&call, FDRI_IO_REAL(writev)(fd, vector, count));
}
FDR_API ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t offset)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(pwritev)(fd, vector, count, offset);
    MOVES(pwritev, fd, FDR_IO_WRITE, 0, (uint64_t)offset);
    return fdri_io_moved(&call, FDRI_IO_REAL(pwritev)(fd, vector, count, offset));
}

/* ---- from file to file: a write of the one and a read of the other ---- */

FDR_API ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t bytes, unsigned flags)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(copy_file_range)(from, at, to, to_at, bytes, flags);
    MOVES(copy_file_range, to, FDR_IO_WRITE, bytes, FDR_IO_NO_OFFSET);
    fdr_io_file source = fdri_io_file_of(from);
    uint64_t began = fdr_io_begin(source, FDR_IO_READ, bytes, FDR_IO_NO_OFFSET);
    ssize_t result = fdri_io_moved(&call, FDRI_IO_REAL(copy_file_range)(from, at, to, to_at, bytes, flags));
    fdr_io_end(source, FDR_IO_READ, call.bytes, call.error, began);
    return result;
}
FDR_API ssize_t sendfile(int to, int from, off_t *at, size_t bytes)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(sendfile)(to, from, at, bytes);
    MOVES(sendfile, to, FDR_IO_WRITE, bytes, FDR_IO_NO_OFFSET);
    fdr_io_file source = fdri_io_file_of(from);
    uint64_t began = fdr_io_begin(source, FDR_IO_READ, bytes, FDR_IO_NO_OFFSET);
    ssize_t result = fdri_io_moved(&call, FDRI_IO_REAL(sendfile)(to, from, at, bytes));
    fdr_io_end(source, FDR_IO_READ, call.bytes, call.error, began);
    return result;
}

/* ---- sync ---- */

FDR_API int fsync(int fd)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(fsync)(fd);
    MOVES(fsync, fd, FDR_IO_SYNC, 0, FDR_IO_NO_OFFSET);
    return fdri_io_status(&call, FDRI_IO_REAL(fsync)(fd));
}
FDR_API int fdatasync(int fd)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(fdatasync)(fd);
    MOVES(fdatasync, fd, FDR_IO_SYNC, 0, FDR_IO_NO_OFFSET);
    return fdri_io_status(&call, FDRI_IO_REAL(fdatasync)(fd));
}
FDR_API int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(sync_file_range)(fd, offset, bytes, flags);
    MOVES(sync_file_range, fd, FDR_IO_SYNC, (uint64_t)bytes, (uint64_t)offset);
    return fdri_io_status(&call, FDRI_IO_REAL(sync_file_range)(fd, offset, bytes, flags));
}

/* ---- names with 64: off_t has 64 bits everywhere here ---- */

#define SAME(name) __attribute__((alias(#name)))
FDR_API int open64(const char *path, int flags, ...) SAME(open);
FDR_API int openat64(int directory, const char *path, int flags, ...) SAME(openat);
FDR_API int creat64(const char *path, mode_t mode) SAME(creat);
FDR_API int __open64_2(const char *path, int flags) SAME(__open_2);
FDR_API int __openat64_2(int directory, const char *path, int flags) SAME(__openat_2);
FDR_API ssize_t pread64(int fd, void *buffer, size_t bytes, off64_t offset) SAME(pread);
FDR_API ssize_t __pread64_chk(int fd, void *buffer, size_t bytes, off64_t offset, size_t room) SAME(__pread_chk);
FDR_API ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off64_t offset) SAME(pwrite);
FDR_API ssize_t preadv64(int fd, const struct iovec *vector, int count, off64_t offset) SAME(preadv);
FDR_API ssize_t pwritev64(int fd, const struct iovec *vector, int count, off64_t offset) SAME(pwritev);
FDR_API ssize_t sendfile64(int to, int from, off64_t *at, size_t bytes) SAME(sendfile);
