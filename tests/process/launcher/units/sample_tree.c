/* Sample the memory of two children: sample_tree ROLLUP ROLLUP. Each is the content of the child's smaps_rollup; a child
 * whose content is "unreadable" ended before it was read.
 *
 * Print the peak in bytes and the number of samples. */
#include "tree_sampling.h"

#include "files.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t __real_file_read(const char *path, char *buffer, size_t size);
ssize_t __wrap_file_read(const char *path, char *buffer, size_t size);

static pid_t children[2];
static char **rollups;

ssize_t __wrap_file_read(const char *path, char *buffer, size_t size)
{
    for (int i = 0; i < 2; i++) {
        char rollup[64];
        snprintf(rollup, sizeof rollup, "/proc/%d/smaps_rollup", children[i]);
        if (strcmp(path, rollup) == 0)
            return strcmp(rollups[i], "unreadable") == 0 ? -1 : snprintf(buffer, size, "%s", rollups[i]);
    }
    return __real_file_read(path, buffer, size);
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    rollups = arguments + 1;
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0)
            for (;;)
                pause();
    }
    struct sampling sampling = sampling_from(0);
    sampling_take(&sampling);
    printf("%lld bytes, %lld sample\n", (long long)sampling.peak_bytes, (long long)sampling.samples);
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    return 0;
}
