/* The whole launcher, whose calls fail on request: FAIL=NAME:FIRST:COUNT:ERRNO,… in its environment.
 *
 * Calls FIRST to FIRST + COUNT - 1 of a function fail, counted from 1 in each process; a child continues the count. The
 * first failure of each name is written to standard error. With UNNAMED=1, its arguments are empty, without its name, as a
 * kernel before Linux 5.18 can start it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#define MOST 4

static struct failure {
    char name[32];
    long first, count, error, calls;
} failures[MOST];

__attribute__((constructor)) static void begin(void)
{
    const char *asked = getenv("FAIL");
    for (int i = 0; i < MOST && asked && *asked; i++) {
        struct failure *found = &failures[i];
        if (sscanf(asked, "%31[^:]:%ld:%ld:%ld", found->name, &found->first, &found->count, &found->error) != 4)
            abort();
        asked += strcspn(asked, ",");
        asked += *asked == ',';
    }
}

static bool fails(const char *name)
{
    for (int i = 0; i < MOST; i++) {
        struct failure *found = &failures[i];
        if (strcmp(name, found->name) != 0)
            continue;
        found->calls++;
        if (found->calls >= found->first && found->calls - found->first < found->count) {
            if (found->calls == found->first)
                dprintf(2, "%s failed\n", name);
            errno = (int)found->error;
            return true;
        }
    }
    return false;
}

#define FAILING(type, name, parameters, arguments)                         \
    type __real_##name parameters;                                         \
    type __wrap_##name parameters;                                         \
    type __wrap_##name parameters                                          \
    {                                                                      \
        return fails(#name) ? (type)-1 : __real_##name arguments;          \
    }

FAILING(int, chdir, (const char *path), (path))
FAILING(int, dup2, (int old, int new), (old, new))
FAILING(int, fcntl, (int file, int command, long value), (file, command, value))
FAILING(pid_t, fork, (void), ())
FAILING(pid_t, getppid, (void), ())
FAILING(int, fstat, (int file, struct stat *status), (file, status))
FAILING(int, ftruncate, (int file, off_t length), (file, length))
FAILING(void *, mmap, (void *at, size_t size, int protection, int flags, int file, off_t offset),
        (at, size, protection, flags, file, offset))
FAILING(void *, mremap, (void *at, size_t size, size_t wanted, int flags), (at, size, wanted, flags))
FAILING(int, open, (const char *path, int flags, mode_t mode), (path, flags, mode))
FAILING(int, openat, (int directory, const char *path, int flags), (directory, path, flags))
FAILING(int, personality, (unsigned long persona), (persona))
FAILING(int, pipe2, (int *ends, int flags), (ends, flags))
FAILING(int, poll, (struct pollfd *files, nfds_t count, int timeout), (files, count, timeout))
FAILING(int, ppoll, (struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
        (files, count, timeout, mask))
FAILING(int, prlimit, (pid_t process, int resource, const struct rlimit *new, struct rlimit *old),
        (process, resource, new, old))
FAILING(ssize_t, read, (int file, void *buffer, size_t size), (file, buffer, size))
FAILING(int, sched_setaffinity, (pid_t process, size_t size, const void *cpus), (process, size, cpus))
FAILING(int, sigprocmask, (int how, const sigset_t *signals, sigset_t *old), (how, signals, old))
FAILING(int, signalfd, (int file, const sigset_t *signals, int flags), (file, signals, flags))
FAILING(pid_t, wait4, (pid_t process, int *status, int options, struct rusage *usage),
        (process, status, options, usage))
FAILING(pid_t, waitpid, (pid_t process, int *status, int options), (process, status, options))
FAILING(ssize_t, write, (int file, const void *buffer, size_t size), (file, buffer, size))
FAILING(int, clone, (int (*start)(void *), void *stack, int flags, void *argument),
        (start, stack, flags, argument))

#define FAILS(name) fails(name)
#include "simulated_cgroups.h"

static const char *name_of(long number)
{
    switch (number) {
    case SYS_getdents64: return "getdents64";
    case SYS_perf_event_open: return "perf_event_open";
    case SYS_close_range: return "close_range";
    case SYS_pidfd_open: return "pidfd_open";
    case SYS_pidfd_send_signal: return "pidfd_send_signal";
    default: return "another";
    }
}

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    return fails(name_of(number)) ? -1 : __real_syscall(number, a, b, c, d, e, f);
}

int __real_main(int count, char **arguments);
int __wrap_main(int count, char **arguments);

int __wrap_main(int count, char **arguments)
{
    bool is_unnamed = getenv("UNNAMED") != NULL;
    return __real_main(is_unnamed ? 0 : count, is_unnamed ? arguments + count : arguments);
}
