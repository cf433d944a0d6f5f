/* SPDX-License-Identifier: MIT */
/* Opens regular files only, with descriptors above 2. */
#include "base/text/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd/open_high.h"

FILE *fdri_text_open_lines(const char *path)
{
    struct stat s;
    int fd = fdri_fd_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    FILE *f = NULL;
    if (fstat(fd, &s) == 0 && !S_ISREG(s.st_mode)) errno = EINVAL;
    else f = fdopen(fd, "r");
    if (f) return f;
    int why = errno;
    close(fd);
    errno = why;
    return NULL;
}
