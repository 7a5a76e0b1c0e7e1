/* Read counters whose contents are given: scaled_counters [VALUE,ENABLED,RUNNING | SHORT | NONE]…
 *
 * SHORT is a counter that gives fewer bytes, NONE one that the machine does not have. Print the values, and then whether
 * their descriptors are closed. */
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

long __wrap_syscall(long number, ...);

static char **given;
static int given_count, opened;

/* perf_event_open */
long __wrap_syscall(long number, ...)
{
    (void)number;
    const char *counter = opened < given_count ? given[opened] : "NONE";
    opened++;
    if (strcmp(counter, "NONE") == 0) {
        errno = ENOENT;
        return -1;
    }
    uint64_t content[3] = {0};
    int file = memfd_create("counter", 0);
    size_t size = sizeof content;
    if (sscanf(counter, "%lu,%lu,%lu", &content[0], &content[1], &content[2]) != 3)
        size = sizeof content[0];
    if (file < 0 || write(file, content, size) != (ssize_t)size || lseek(file, 0, SEEK_SET) != 0)
        abort();
    return file;
}

int main(int count, char **arguments)
{
    struct counters counters;
    int descriptors[COUNTER_COUNT];
    given = arguments + 1;
    given_count = count - 1;
    counters_open(&counters);
    memcpy(descriptors, counters.descriptors, sizeof descriptors);
    counters_read(&counters);
    bool closed = true;
    for (int i = 0; i < COUNTER_COUNT; i++) {
        printf("%lld ", (long long)counters.values[i]);
        closed = closed && counters.descriptors[i] == -1 && fcntl(descriptors[i], F_GETFD) == -1;
    }
    puts(closed ? "closed" : "open");
    return 0;
}
