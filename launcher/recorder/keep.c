#include "keep.h"

#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLONE_FILE 0x40049409 /* FICLONE of linux/fs.h, which musl-gcc does not find */
#define PIECE (1 << 20)

/* Files of installed compilers and libraries; builds do not replace these. */
static bool is_of_system(const char *record, const char *path)
{
    static const char *const prefixes[] = {"/usr/", "/lib/", "/lib64/", "/lib32/", "/opt/", "/nix/", "/gnu/"};
    const char *below = strrchr(record, '/');
    if (below && strncmp(path, record, (size_t)(below - record) + 1) == 0)
        return false; /* the build itself is there */
    if (strstr(path, "/lib/rustlib/"))
        return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool write_all(int descriptor, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(descriptor, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

static bool copy_bytes(int from, int to)
{
    static char piece[PIECE];
    if (ioctl(to, CLONE_FILE, from) == 0)
        return true;
    for (;;) {
        ssize_t size = read(from, piece, sizeof piece);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size == 0;
        if (!write_all(to, piece, (size_t)size))
            return false;
    }
}

static bool copy(int from, const struct stat *status, const char *target)
{
    int to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return errno == EEXIST;
    struct timespec dates[] = {status->st_mtim, status->st_mtim};
    bool copied = copy_bytes(from, to) && futimens(to, dates) == 0;
    close(to);
    if (!copied)
        unlink(target);
    return copied;
}

bool keep(const char *record, const char *path, bool copied, struct kept *kept)
{
    char resolved[PATH_MAX];
    struct stat status;
    if (!realpath(path, resolved))
        return false;
    int from = open(resolved, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (from < 0)
        return false;
    bool done = fstat(from, &status) == 0 && S_ISREG(status.st_mode);
    *kept = (struct kept){.size = status.st_size,
                          .date_ns = status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec};
    if (done && !is_of_system(record, resolved)) {
        snprintf(kept->name, sizeof kept->name, "files/%llx-%llx-%llx-%llx%s", (unsigned long long)status.st_dev,
                 (unsigned long long)status.st_ino, (unsigned long long)kept->date_ns,
                 (unsigned long long)kept->size, copied ? "-copy" : "");
        char *target = path_in(record, kept->name);
        bool replaced = ends_with(path, ".o") || ends_with(path, ".rlib") || ends_with(path, "-d");
        done = (!copied && replaced && link(resolved, target) == 0) || copy(from, &status, target);
        free(target);
    }
    close(from);
    return done;
}
