#include "files.h"

#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* For cgroup directories and /proc only. Each additional page of stack would count in every peak. */
#define LONGEST_PATH 640

static int open_in(const char *directory, const char *name, int flags)
{
    char path[LONGEST_PATH];
    struct text text = text_in(path, sizeof path);
    text_add(&text, directory);
    text_add(&text, "/");
    text_add(&text, name);
    return text.cut ? -1 : open(path, flags | O_CLOEXEC);
}

static ssize_t read_and_close(int descriptor, char *buffer, size_t size)
{
    if (descriptor < 0)
        return -1;
    size_t length = 0;
    ssize_t got = 0;
    while (length < size - 1) {
        got = read(descriptor, buffer + length, size - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(descriptor);
    buffer[length] = '\0';
    return got < 0 ? -1 : (ssize_t)length;
}

ssize_t file_read(const char *path, char *buffer, size_t size)
{
    return read_and_close(open(path, O_RDONLY | O_CLOEXEC), buffer, size);
}

ssize_t file_read_in(const char *directory, const char *name, char *buffer, size_t size)
{
    return read_and_close(open_in(directory, name, O_RDONLY), buffer, size);
}

bool file_write_in(const char *directory, const char *name, const char *content)
{
    int descriptor = open_in(directory, name, O_WRONLY);
    if (descriptor < 0)
        return false;
    ssize_t written = write(descriptor, content, strlen(content));
    close(descriptor);
    return written == (ssize_t)strlen(content);
}

bool write_all(int descriptor, const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(descriptor, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}
