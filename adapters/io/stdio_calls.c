/* SPDX-License-Identifier: MIT */
/* fopen, fread, fprintf, fflush and their kin: calls of their own, with the bytes that the program moves. The C library
 * moves them on in blocks, by reads and writes of its own that no other library sees; so nothing counts twice. */
#define _GNU_SOURCE
#ifndef __NO_INLINE__ /* stdio.h would define some of these functions itself */
#define __NO_INLINE__ 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "adapters/io/io_adapter.h"

FDR_API ssize_t __getdelim(char **line, size_t *room, int end, FILE *f);
FDR_API size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *f);
FDR_API size_t __fread_unlocked_chk(void *buffer, size_t room, size_t size, size_t count, FILE *f);
FDR_API char *__fgets_chk(char *text, size_t room, int bytes, FILE *f);
FDR_API char *__fgets_unlocked_chk(char *text, size_t room, int bytes, FILE *f);
FDR_API int __fprintf_chk(FILE *f, int flag, const char *format, ...);
FDR_API int __printf_chk(int flag, const char *format, ...);
FDR_API int __vfprintf_chk(FILE *f, int flag, const char *format, va_list rest);
FDR_API int __vprintf_chk(int flag, const char *format, va_list rest);

/* A stream in memory has no descriptor. */
static int descriptor(FILE *f)
{
    int error = errno, fd = fileno(f);
    errno = error;
    return fd;
}

static fdr_io_file file_of(FILE *f)
{
    int fd = f ? descriptor(f) : -1;
    return fd >= 0 ? fdri_io_file_of(fd) : fdri_io_file_named(f ? "[stream in memory]" : "[all streams]");
}

static void forget(FILE *f)
{
    int fd = descriptor(f);
    if (fd >= 0) fdri_io_forget((unsigned)fd, (unsigned)fd);
}

static FILE *opened(struct fdri_io_call *c, FILE *f)
{
    if (f) fdri_io_file_is(descriptor(f), c->file);
    fdri_io_status(c, f ? 0 : -1);
    return f;
}

#define MOVES(name, f, operation, bytes) FDRI_IO_CALL(name, file_of(f), operation, bytes, FDR_IO_NO_OFFSET)

/* ---- streams begin and end ---- */

FDR_API FILE *fopen(const char *path, const char *mode)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(fopen)(path, mode);
    FDRI_IO_CALL(fopen, fdri_io_file_at(AT_FDCWD, path), FDR_IO_OPEN, 0, FDR_IO_NO_OFFSET);
    return opened(&call, FDRI_IO_REAL(fopen)(path, mode));
}
FDR_API FILE *freopen(const char *path, const char *mode, FILE *f)
{
    forget(f);
    if (FDRI_IO_OFF) return FDRI_IO_REAL(freopen)(path, mode, f);
    FDRI_IO_CALL(freopen, path ? fdri_io_file_at(AT_FDCWD, path) : file_of(f), FDR_IO_OPEN, 0, FDR_IO_NO_OFFSET);
    return opened(&call, FDRI_IO_REAL(freopen)(path, mode, f));
}
FDR_API int fclose(FILE *f)
{
    if (FDRI_IO_OFF) {
        forget(f);
        return FDRI_IO_REAL(fclose)(f);
    }
    MOVES(fclose, f, FDR_IO_CLOSE, 0);
    forget(f);
    return fdri_io_status(&call, FDRI_IO_REAL(fclose)(f));
}
FDR_API int pclose(FILE *f)
{
    forget(f);
    return FDRI_IO_REAL(pclose)(f);
}
FDR_API int fflush(FILE *f)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(fflush)(f);
    MOVES(fflush, f, FDR_IO_OTHER, 0);
    return fdri_io_status(&call, FDRI_IO_REAL(fflush)(f));
}
FDR_API int fflush_unlocked(FILE *f)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(fflush_unlocked)(f);
    MOVES(fflush_unlocked, f, FDR_IO_OTHER, 0);
    return fdri_io_status(&call, FDRI_IO_REAL(fflush_unlocked)(f));
}

/* ---- blocks ---- */

/* done: of `asked` items. Fewer may be the end of the file; then errno says nothing. */
static size_t items(struct fdri_io_call *c, size_t size, size_t asked, size_t done, FILE *f)
{
    int error = errno;
    fdri_io_moved(c, (ssize_t)(size * done));
    if (size && done < asked && (c->operation == FDR_IO_WRITE || ferror_unlocked(f))) c->error = error;
    return done;
}

#define READS_BLOCKS(name)                                                                                             \
    FDR_API size_t name(void *buffer, size_t size, size_t count, FILE *f)                                              \
    {                                                                                                                  \
        if (FDRI_IO_OFF) return FDRI_IO_REAL(name)(buffer, size, count, f);                                            \
        MOVES(name, f, FDR_IO_READ, size *count);                                                                      \
        return items(&call, size, count, FDRI_IO_REAL(name)(buffer, size, count, f), f);                               \
    }
#define READS_BLOCKS_CHECKED(name)                                                                                     \
    size_t name(void *buffer, size_t room, size_t size, size_t count, FILE *f)                                         \
    {                                                                                                                  \
        if (FDRI_IO_OFF) return FDRI_IO_REAL(name)(buffer, room, size, count, f);                                      \
        MOVES(name, f, FDR_IO_READ, size *count);                                                                      \
        return items(&call, size, count, FDRI_IO_REAL(name)(buffer, room, size, count, f), f);                         \
    }
#define WRITES_BLOCKS(name)                                                                                            \
    FDR_API size_t name(const void *buffer, size_t size, size_t count, FILE *f)                                        \
    {                                                                                                                  \
        if (FDRI_IO_OFF) return FDRI_IO_REAL(name)(buffer, size, count, f);                                            \
        MOVES(name, f, FDR_IO_WRITE, size *count);                                                                     \
        return items(&call, size, count, FDRI_IO_REAL(name)(buffer, size, count, f), f);                               \
    }
READS_BLOCKS(fread)
READS_BLOCKS(fread_unlocked)
READS_BLOCKS_CHECKED(__fread_chk)
READS_BLOCKS_CHECKED(__fread_unlocked_chk)
WRITES_BLOCKS(fwrite)
WRITES_BLOCKS(fwrite_unlocked)

/* ---- lines and texts ---- */

static char *line(struct fdri_io_call *c, char *text, FILE *f)
{
    int error = errno;
    fdri_io_moved(c, text ? (ssize_t)strlen(text) : 0);
    if (!text && ferror_unlocked(f)) c->error = error;
    return text;
}
static int text_written(struct fdri_io_call *c, int status, size_t bytes)
{
    if (status >= 0) fdri_io_moved(c, (ssize_t)bytes);
    return status < 0 ? fdri_io_status(c, status) : status;
}

#define READS_LINES(name)                                                                                              \
    FDR_API char *name(char *text, int bytes, FILE *f)                                                                 \
    {                                                                                                                  \
        if (FDRI_IO_OFF) return FDRI_IO_REAL(name)(text, bytes, f);                                                    \
        MOVES(name, f, FDR_IO_READ, 0);                                                                                \
        return line(&call, FDRI_IO_REAL(name)(text, bytes, f), f);                                                     \
    }
#define READS_LINES_CHECKED(name)                                                                                      \
    char *name(char *text, size_t room, int bytes, FILE *f)                                                            \
    {                                                                                                                  \
        if (FDRI_IO_OFF) return FDRI_IO_REAL(name)(text, room, bytes, f);                                              \
        MOVES(name, f, FDR_IO_READ, 0);                                                                                \
        return line(&call, FDRI_IO_REAL(name)(text, room, bytes, f), f);                                               \
    }
#define WRITES_TEXTS(name)                                                                                             \
    FDR_API int name(const char *text, FILE *f)                                                                        \
    {                                                                                                                  \
        if (FDRI_IO_OFF) return FDRI_IO_REAL(name)(text, f);                                                           \
        MOVES(name, f, FDR_IO_WRITE, strlen(text));                                                                    \
        return text_written(&call, FDRI_IO_REAL(name)(text, f), strlen(text));                                         \
    }
READS_LINES(fgets)
READS_LINES(fgets_unlocked)
READS_LINES_CHECKED(__fgets_chk)
READS_LINES_CHECKED(__fgets_unlocked_chk)
WRITES_TEXTS(fputs)
WRITES_TEXTS(fputs_unlocked)

FDR_API int puts(const char *text)
{
    if (FDRI_IO_OFF) return FDRI_IO_REAL(puts)(text);
    MOVES(puts, stdout, FDR_IO_WRITE, strlen(text) + 1);
    return text_written(&call, FDRI_IO_REAL(puts)(text), strlen(text) + 1);
}

/* At the end of the file the result is -1, and errno says nothing. */
static ssize_t characters(struct fdri_io_call *c, ssize_t bytes, FILE *f)
{
    int error = errno;
    fdri_io_moved(c, bytes > 0 ? bytes : 0);
    if (bytes < 0 && ferror_unlocked(f)) c->error = error;
    return bytes;
}
#define READS_TEXT(name, parameters, arguments)                                                                        \
    FDR_API ssize_t name parameters                                                                                    \
    {                                                                                                                  \
        if (FDRI_IO_OFF) return FDRI_IO_REAL(name) arguments;                                                          \
        MOVES(name, f, FDR_IO_READ, 0);                                                                                \
        return characters(&call, FDRI_IO_REAL(name) arguments, f);                                                     \
    }
READS_TEXT(getline, (char **text, size_t *room, FILE *f), (text, room, f))
READS_TEXT(getdelim, (char **text, size_t *room, int end, FILE *f), (text, room, end, f))
READS_TEXT(__getdelim, (char **text, size_t *room, int end, FILE *f), (text, room, end, f))

/* ---- formatted output: those with `...` are passed on to those with a list ---- */

#define PRINTS(name, to, ...)                                                                                          \
    if (FDRI_IO_OFF) return FDRI_IO_REAL(name)(__VA_ARGS__);                                                           \
    MOVES(name, to, FDR_IO_WRITE, 0);                                                                                  \
    return (int)fdri_io_moved(&call, FDRI_IO_REAL(name)(__VA_ARGS__))
#define PRINTS_REST(name, by, to, ...)                                                                                 \
    va_list rest __attribute__((cleanup(end_rest)));                                                                   \
    va_start(rest, format);                                                                                            \
    if (FDRI_IO_OFF) return FDRI_IO_REAL(by)(__VA_ARGS__, rest);                                                       \
    MOVES(name, to, FDR_IO_WRITE, 0);                                                                                  \
    return (int)fdri_io_moved(&call, FDRI_IO_REAL(by)(__VA_ARGS__, rest))

static void end_rest(va_list *rest) { va_end(*rest); }

FDR_API int vfprintf(FILE *f, const char *format, va_list rest) { PRINTS(vfprintf, f, f, format, rest); }
FDR_API int vprintf(const char *format, va_list rest) { PRINTS(vprintf, stdout, format, rest); }
int __vfprintf_chk(FILE *f, int flag, const char *format, va_list rest)
{
    PRINTS(__vfprintf_chk, f, f, flag, format, rest);
}
int __vprintf_chk(int flag, const char *format, va_list rest) { PRINTS(__vprintf_chk, stdout, flag, format, rest); }
FDR_API int fprintf(FILE *f, const char *format, ...) { PRINTS_REST(fprintf, vfprintf, f, f, format); }
FDR_API int printf(const char *format, ...) { PRINTS_REST(printf, vfprintf, stdout, stdout, format); }
int __fprintf_chk(FILE *f, int flag, const char *format, ...)
{
    PRINTS_REST(__fprintf_chk, __vfprintf_chk, f, f, flag, format);
}
int __printf_chk(int flag, const char *format, ...)
{
    PRINTS_REST(__printf_chk, __vfprintf_chk, stdout, stdout, flag, format);
}

FDR_API FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));
FDR_API FILE *freopen64(const char *path, const char *mode, FILE *f) __attribute__((alias("freopen")));
