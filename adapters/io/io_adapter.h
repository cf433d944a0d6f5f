/* SPDX-License-Identifier: MIT */
/* libfdr-io: the input and output of a program through the C library, as calls of regions with operations of class io.
 *
 *   posix_calls.c      open, read, write, close, fsync and their kin
 *   stdio_calls.c      fopen, fread, fprintf, fflush and their kin
 *   io_call.c          one call: its region, begin and end of its operation; the start of the recording
 *   file_names.c       which file a descriptor is
 *   libc_function.c    the C library's functions behind ours
 *   own_code.c         calls by fdr itself, which are not recorded
 *
 * Every function passes its arguments on unchanged and leaves errno as the C library set it. What POSIX calls
 * async-signal-safe stays so: no function here allocates or takes a lock that a handler's thread may hold. Points of
 * cancellation stay so, too: the call of the C library is where it was, and unwinding closes the region. */
#ifndef FDRI_ADAPTERS_IO_IO_ADAPTER_H
#define FDRI_ADAPTERS_IO_IO_ADAPTER_H

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The functions that fdr stands before. The first ones must work before the C library's are known. */
/* clang-format off */
#define FDRI_IO_POSIX(X) \
    X(open) X(openat) X(creat) X(close) X(read) X(write) X(pread) X(pwrite) X(readv) X(writev) X(preadv) X(pwritev) \
    X(fsync) X(fdatasync) X(sync_file_range) X(copy_file_range) X(sendfile) X(dup2) X(dup3) X(close_range) \
    X(closefrom) X(closedir) X(__open_2) X(__openat_2) X(__read_chk) X(__pread_chk)
#define FDRI_IO_STDIO(X) \
    X(fopen) X(freopen) X(fclose) X(fread) X(fread_unlocked) X(fwrite) X(fwrite_unlocked) X(fgets) X(fgets_unlocked) \
    X(fputs) X(fputs_unlocked) X(puts) X(getline) X(getdelim) X(__getdelim) X(fflush) X(fflush_unlocked) X(fprintf) \
    X(printf) X(vfprintf) X(vprintf) X(pclose) X(__fread_chk) X(__fread_unlocked_chk) X(__fgets_chk) \
    X(__fgets_unlocked_chk) X(__fprintf_chk) X(__printf_chk) X(__vfprintf_chk) X(__vprintf_chk)
/* clang-format on */

enum fdri_io_function {
#define FDRI_IO_NUMBER(name) FDRI_IO_##name,
    FDRI_IO_POSIX(FDRI_IO_NUMBER) FDRI_IO_STDIO(FDRI_IO_NUMBER)
#undef FDRI_IO_NUMBER
        FDRI_IO_FUNCTIONS
};

/* ---- libc_function.c ---- */

typedef void fdri_io_any(void);
extern fdri_io_any *fdri_io_known[FDRI_IO_FUNCTIONS];
fdri_io_any *fdri_io_search(enum fdri_io_function which);
void fdri_io_search_all(void); /* from now on no function is searched for */
static inline fdri_io_any *fdri_io_find(enum fdri_io_function which)
{
    fdri_io_any *known = __atomic_load_n(&fdri_io_known[which], __ATOMIC_RELAXED);
    return __builtin_expect(known != NULL, 1) ? known : fdri_io_search(which);
}
/* The C library's function of this name. */
#define FDRI_IO_REAL(name) ((__typeof__(&name))fdri_io_find(FDRI_IO_##name))

/* ---- own_code.c ---- */

void fdri_io_own_look(void);          /* at the libraries that are loaded */
bool fdri_io_own(const void *caller); /* is this an address of fdr's own code? */

/* ---- file_names.c ---- */

/* The file of a name: the same for equal names; one file stands for all beyond a limit. Keeps errno. */
fdr_io_file fdri_io_file_named(const char *name);
fdr_io_file fdri_io_file_at(int directory, const char *path); /* as openat takes them */
fdr_io_file fdri_io_file_of(int fd);
void fdri_io_file_is(int fd, fdr_io_file file);  /* fd was opened as this file; fd -1: does nothing */
void fdri_io_forget(unsigned from, unsigned to); /* these descriptors are closed, or will be other files */

/* ---- io_call.c ---- */

/* Does fdr record a call from there now? */
static inline bool fdri_io_on(const void *caller)
{
    return __atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED) && !fdri_io_own(caller);
}
#define FDRI_IO_OFF __builtin_expect(!fdri_io_on(__builtin_return_address(0)), 0)

struct fdri_io_call {
    fdr_region region;
    fdr_io_file file;
    uint32_t operation;
    int error;
    uint64_t began, bytes;
};
struct fdri_io_call fdri_io_enter(enum fdri_io_function which, fdr_io_file file, uint32_t operation, uint64_t bytes,
                                  uint64_t offset);
void fdri_io_leave(struct fdri_io_call *c); /* the operation ends here, also by cancellation */
/* The result of the C library's function: a negative one failed, with errno. Returns it. */
ssize_t fdri_io_moved(struct fdri_io_call *c, ssize_t bytes);
int fdri_io_status(struct fdri_io_call *c, int status); /* a result that is no number of bytes */

/* The call of this function, to the end of the block. */
#define FDRI_IO_CALL(name, file, operation, bytes, offset)                                                             \
    struct fdri_io_call call                                                                                           \
        __attribute__((cleanup(fdri_io_leave))) = fdri_io_enter(FDRI_IO_##name, file, operation, bytes, offset)

#endif
