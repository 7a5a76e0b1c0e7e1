/* Whether a thread of this process sleeps in the kernel: a thread that only waits for one thing sleeps once it waits. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool sleeps(int thread)
{
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(stat, 1, sizeof stat - 1, file) : 0;
    if (file)
        fclose(file);
    stat[length] = '\0';
    const char *after_name = strrchr(stat, ')');
    return after_name && after_name[1] && after_name[2] == 'S';
}
