/* SPDX-License-Identifier: MIT */
/* A program that reads and writes by itself, for test_io.py and test_io_strace.py. It knows nothing of fdr. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char block[4096];

static int must(int result, const char *what)
{
    if (result >= 0) return result;
    perror(what);
    exit(1);
}

/* ---- calls: a known number of each function, between two calls of getppid ---- */

static void *beside(void *argument)
{
    int fd = must(open("beside.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600), "beside");
    for (int i = 0; i < 500; i++) must((int)write(fd, block, 10), "write");
    close(fd);
    return argument;
}

static void calls(void)
{
    struct iovec two[2] = {{block, 100}, {block, 23}};
    pthread_t thread;
    int ends[2];
    getppid();
    int out = must(open("out.dat", O_RDWR | O_CREAT | O_TRUNC, 0600), "out");
    for (int i = 0; i < 1000; i++) must((int)write(out, block, (size_t)(i % 7) * 10), "write");
    must((int)pwrite(out, block, 512, 4096), "pwrite");
    must((int)writev(out, two, 2), "writev");
    must((int)pwritev(out, two, 2, 9000), "pwritev");
    must(fsync(out), "fsync");
    must(fdatasync(out), "fdatasync");
    int in = must(openat(AT_FDCWD, "out.dat", O_RDONLY), "in");
    while (read(in, block, 333) > 0) continue;
    must((int)pread(in, block, 100, 7), "pread");
    must((int)preadv(in, two, 2, 7), "preadv");
    must((int)lseek(in, 0, SEEK_SET), "lseek");
    must((int)readv(in, two, 2), "readv");
    must((int)sendfile(out, in, NULL, 50), "sendfile");
    must((int)copy_file_range(in, NULL, out, NULL, 60, 0), "copy_file_range");
    must(dup2(out, 100), "dup2");
    must((int)write(100, block, 5), "write");
    close(100);
    close(in);
    close(out);
    must(pipe(ends), "pipe");
    for (int i = 0; i < 20; i++) {
        must((int)write(ends[1], block, 64), "write");
        must((int)read(ends[0], block, 64), "read");
    }
    close(ends[0]);
    close(ends[1]);
    close(must(creat("made.txt", 0600), "creat"));
    pthread_create(&thread, NULL, beside, NULL);
    pthread_join(thread, NULL);
    getppid();
}

/* ---- errno: of what fails, and left alone by what works ---- */

static void told(const char *what, long result)
{
    int error = errno;
    printf("%s %ld %s\n", what, result, strerror(error));
    errno = EDOM;
}

static void *volatile nowhere = (void *)8;

static void errors(void)
{
    int ends[2], fd = must(open("e.txt", O_RDWR | O_CREAT | O_TRUNC, 0600), "e.txt");
    signal(SIGPIPE, SIG_IGN);
    must(pipe(ends), "pipe");
    close(ends[0]);
    errno = EDOM;
    told("open", open("no/such/file", O_RDONLY));
    told("openat", openat(fd, "x", O_RDONLY));
    told("read -1", read(-1, block, 1));
    told("write 9999", write(9999, block, 1));
    told("close 77777", close(77777));
    told("write pipe", write(ends[1], block, 1));
    told("write bad", write(fd, nowhere, 1));
    told("writev bad", writev(fd, nowhere, 1));
    told("pread", pread(ends[1], block, 1, 0));
    told("fsync", fsync(ends[1]));
    told("write", write(fd, block, 3));
    told("pread", pread(fd, block, 3, 0));
    told("fsync", fsync(fd));
    told("fopen", fopen("no/such/file", "r") != NULL);
    FILE *f = fopen("e.txt", "r");
    told("fopen", f != NULL);
    told("fread", (long)fread(block, 1, 100, f));
    told("fputs", fputs("x", f));
    told("fclose", fclose(f));
    f = fmemopen(block, sizeof block, "w");
    told("fprintf", fprintf(f, "%d", 12345));
    told("fflush", fflush(f));
    told("fclose", fclose(f));
    told("close", close(fd));
}

/* ---- cancel: a thread that waits in read is cancelled, and cleans up ---- */

static void cleanup(void *argument) { printf("cleans up after %s\n", (const char *)argument); }

static void *waits(void *argument)
{
    pthread_cleanup_push(cleanup, "read");
    const int *fd = argument;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    must((int)write(fd[3], "r", 1), "write");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    must((int)read(fd[0], block, 1), "read");
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel(void)
{
    int fd[4];
    char ready;
    pthread_t thread;
    void *result;
    must(pipe(&fd[0]), "pipe");
    must(pipe(&fd[2]), "pipe");
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, waits, fd);
        must((int)read(fd[2], &ready, 1), "read");
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("cancelled: %d\n", result == PTHREAD_CANCELED);
    }
}

/* ---- children: by fork, and by vfork, which shares the parent's memory ---- */

static void children(void)
{
    int status, fd = must(open("parent.txt", O_RDWR | O_CREAT | O_TRUNC, 0600), "parent");
    must((int)write(fd, "parent\n", 7), "write");
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        int own = must(open("child.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600), "child");
        for (int i = 0; i < 1000; i++) must((int)write(own, "child\n", 6), "write");
        _exit(7);
    }
    waitpid(child, &status, 0);
    printf("fork: %d\n", WEXITSTATUS(status));
    child = vfork();
    if (!child) {
        close(fd);
        int again = open("/dev/null", O_WRONLY);
        dup2(again, 200);
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("vfork: %d\n", WEXITSTATUS(status));
    must((int)write(fd, "again\n", 6), "write");
    close(fd);
}

/* ---- handlers: they may interrupt a call anywhere, and make calls themselves ---- */

static int from_handler;
static volatile sig_atomic_t rounds;

static void handler(int signal_number)
{
    (void)signal_number;
    int fd = open("handler.txt", O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(fd, "h", 1) != 1 || write(from_handler, "h", 1) != 1) _exit(3);
    close(fd);
    rounds++;
}

static void handlers(void)
{
    int fd = must(open("main.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600), "main");
    from_handler = must(open("/dev/null", O_WRONLY), "null");
    signal(SIGUSR2, handler);
    for (int i = 0; i < 2000; i++) {
        if (i % 2) raise(SIGUSR2);
        must((int)write(fd, "m", 1), "write");
    }
    printf("rounds %d\n", (int)rounds);
}

/* ---- many: more than a small buffer keeps ---- */

static void many(void)
{
    int fd = must(open("many.txt", O_RDWR | O_CREAT | O_TRUNC, 0600), "many");
    for (int i = 0; i < 60000; i++) must((int)pwrite(fd, block, (size_t)(i % 10), i % 999), "pwrite");
    for (int i = 0; i < 60000; i++) must((int)pread(fd, block, 8, i % 899), "pread");
}

/* ---- stdio ---- */

static void stdio(void)
{
    char text[100], *line = NULL;
    size_t room = 0;
    FILE *f = fopen("s.txt", "w+");
    fwrite(block, 10, 20, f);
    fputs("a line\n", f);
    fprintf(f, "%s %d\n", "printed", 17);
    fflush(f);
    rewind(f);
    if (fread(text, 1, 100, f) != 100 || fread(text, 1, 100, f) != 100) exit(1);
    if (!fgets(text, sizeof text, f) || getline(&line, &room, f) != 11) exit(1);
    printf("%s%s", text, line);
    fclose(f);
    free(line);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"calls", calls},       {"errors", errors}, {"cancel", cancel}, {"children", children},
                 {"handlers", handlers}, {"many", many},     {"stdio", stdio}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && !strcmp(argv[1], modes[i].name)) return modes[i].run(), 0;
    return 64;
}
