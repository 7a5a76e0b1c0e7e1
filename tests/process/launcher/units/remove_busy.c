/* Remove a leaf that stays busy, and print the number of calls of rmdir and unlinkat: remove_busy DIRECTORY [FILE PAUSES [FUNCTION]]
 *
 * With FILE, it is removed after so many pauses, and the leaf is then no longer busy. The first call of FUNCTION, open or
 * openat, fails. */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TOO_MANY 100000

int __real_rmdir(const char *path);
int __real_unlinkat(int directory, const char *path, int flags);

int __real_open(const char *path, int flags, mode_t mode);
int __real_openat(int directory, const char *path, int flags, mode_t mode);

static long calls, pauses, pauses_until_free;
static const char *file, *failing;

static void count(void)
{
    if (++calls > TOO_MANY) {
        printf("more than %d\n", TOO_MANY);
        exit(1);
    }
}

int __wrap_rmdir(const char *path)
{
    count();
    return __real_rmdir(path);
}

int __wrap_unlinkat(int directory, const char *path, int flags)
{
    count();
    return __real_unlinkat(directory, path, flags);
}

static bool fails(const char *function, int flags)
{
    if (!(flags & O_DIRECTORY) || !failing || strcmp(failing, function) != 0)
        return false;
    failing = NULL;
    errno = EMFILE;
    return true;
}

int __wrap_open(const char *path, int flags, mode_t mode)
{
    return fails("open", flags) ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int directory, const char *path, int flags, mode_t mode)
{
    return fails("openat", flags) ? -1 : __real_openat(directory, path, flags, mode);
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)wanted, (void)left;
    if (file && ++pauses == pauses_until_free)
        unlink(file);
    return 0;
}

int main(int count, char **arguments)
{
    static struct cgroups cgroups = {.count = 1};
    strcpy(cgroups.leaves[0].path, arguments[1]);
    cgroups.leaves[0].procs = -1;
    file = count > 2 ? arguments[2] : NULL;
    pauses_until_free = count > 3 ? atol(arguments[3]) : 0;
    failing = count > 4 ? arguments[4] : NULL;
    cgroups_remove(&cgroups);
    printf("%ld\n", calls);
    return 0;
}
