// Below SQLite: the call numbered FAULT_AT of those that read and write a journal fails once, as FAULT_AS says.
// FAULT_COUNT names a file that gets the number of calls at the end of the process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int calls;

static int fails(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (!strstr(path, "journal.db")) return 0;
    const char *at = getenv("FAULT_AT"), *as = getenv("FAULT_AS");
    if (__sync_add_and_fetch(&calls, 1) != (at ? atoi(at) : 0)) return 0;
    if (as && !strcmp(as, "kill")) raise(SIGKILL);
    errno = as && !strcmp(as, "ENOSPC") ? ENOSPC : EIO;
    return 1;
}

#define FAULTY(type, name, parameters, arguments)                        \
    type name parameters {                                               \
        static type (*real) parameters;                                  \
        if (!real) real = (type (*) parameters) dlsym(RTLD_NEXT, #name); \
        return fails(fd) ? -1 : real arguments;                          \
    }

FAULTY(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
FAULTY(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at))
FAULTY(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
FAULTY(ssize_t, pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
FAULTY(int, fsync, (int fd), (fd))
FAULTY(int, fdatasync, (int fd), (fd))
FAULTY(int, ftruncate, (int fd, off_t size), (fd, size))
FAULTY(int, ftruncate64, (int fd, off64_t size), (fd, size))

__attribute__((destructor)) static void count(void) {
    const char *name = getenv("FAULT_COUNT");
    FILE *file = name ? fopen(name, "w") : NULL;
    if (file) fprintf(file, "%d", calls), fclose(file);
}
