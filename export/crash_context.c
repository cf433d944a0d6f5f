/* SPDX-License-Identifier: MIT */
/* What a bundle says of the process and is known at its start: command line and environment without secrets, the
 * machine; and where the C and C++ runtimes keep what they have to say about an abort. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "export/crash.h"

enum { CMDLINE_BYTES = 4096, ENVIRONMENT_BYTES = 8192 };

static bool secret(const char *name, size_t bytes)
{
    static const char *const words[] = {"TOKEN", "SECRET", "PASS", "KEY", "JWT", "AUTH"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        for (size_t n = strlen(words[w]), i = 0; i + n <= bytes; i++)
            if (!strncasecmp(name + i, words[w], n)) return true;
    return false;
}

static void add(const char *name, const char *text, size_t bytes)
{
    struct fdr_crash_entry e = {FDR_CRASH_TEXT, (uint32_t)(strlen(name) + 1 + bytes)};
    uint32_t used = fdri_crash.context_bytes, whole = (uint32_t)(sizeof e + e.bytes + 7) & ~7u;
    if (used + whole > FDRI_CONTEXT_BYTES) return;
    uint8_t *to = fdri_crash.context + used;
    memset(to, 0, whole);
    memcpy(to, &e, sizeof e);
    memcpy(to + sizeof e, name, strlen(name));
    memcpy(to + sizeof e + strlen(name) + 1, text, bytes);
    fdri_crash.context_bytes += whole;
    fdri_crash.context_count++;
}

struct text {
    char *at, *end;
};
static void put(struct text *t, const char *from, size_t bytes)
{
    size_t room = (size_t)(t->end - t->at);
    if (bytes > room) bytes = room;
    memcpy(t->at, from, bytes);
    t->at += bytes;
}

/* NAME=value, --name=value and "--name value" of a secret show no value. */
static void put_argument(struct text *t, const char *argument, bool *hide)
{
    const char *is = strchr(argument, '=');
    size_t name = is ? (size_t)(is - argument) : strlen(argument);
    bool option = *argument == '-', hidden = *hide && !option;
    *hide = !is && option && secret(argument, name);
    if (hidden) put(t, "***", 3);
    else if (is && secret(argument, name)) put(t, argument, name + 1), put(t, "***", 3);
    else put(t, argument, strlen(argument));
    put(t, "", 1);
}

static void command_line(void)
{
    static char raw[CMDLINE_BYTES], shown[CMDLINE_BYTES];
    struct text t = {shown, shown + sizeof shown};
    bool hide = false;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, raw, sizeof raw - 1) : 0;
    if (fd >= 0) close(fd);
    if (n <= 0) return;
    raw[n] = 0;
    for (const char *p = raw; p < raw + n; p += strlen(p) + 1) put_argument(&t, p, &hide);
    add("cmdline", shown, (size_t)(t.at - shown));
}

static void environment(void)
{
    static const char *const prefixes[] = {"FDR_", "OMP_", "SLURM_", "OMPI_", "PMI_", "PMIX_"};
    static char shown[ENVIRONMENT_BYTES];
    struct text t = {shown, shown + sizeof shown};
    for (char **e = environ; e && *e; e++) {
        const char *is = strchr(*e, '=');
        bool listed = false;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            listed |= !strncmp(*e, prefixes[i], strlen(prefixes[i]));
        if (!listed || !is) continue;
        size_t name = (size_t)(is - *e) + 1;
        if (secret(*e, name)) put(&t, *e, name), put(&t, "***", 3);
        else put(&t, *e, strlen(*e));
        put(&t, "\n", 1);
    }
    add("environment", shown, (size_t)(t.at - shown));
}

void fdri_crash_context(void)
{
    struct utsname u;
    char text[sizeof u + 8];
    fdri_crash.context_bytes = fdri_crash.context_count = 0;
    command_line();
    environment();
    if (uname(&u) == 0) {
        snprintf(text, sizeof text, "%s %s %s %s %s", u.sysname, u.nodename, u.release, u.version, u.machine);
        add("uname", text, strlen(text));
    }
    fdri_crash.abort_message = dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
    *(void **)(void *)&fdri_crash.exception_type = dlsym(RTLD_DEFAULT, "__cxa_current_exception_type");
}
