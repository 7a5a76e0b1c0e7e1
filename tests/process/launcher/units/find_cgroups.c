/* Find where cgroups can be made, on a machine with other tables: find_cgroups OWN MOUNTS
 *
 * The files are read in place of /proc/self/cgroup and /proc/self/mountinfo. Print each leaf's path, version, and for what it
 * is used. */
#include "cgroup.h"

#include "files.h"

#define IS_SIMULATED_ONLY true
#include "simulated_cgroups.h"

ssize_t __real_file_read(const char *path, char *buffer, size_t size);
ssize_t __wrap_file_read(const char *path, char *buffer, size_t size);

static char **tables;

ssize_t __wrap_file_read(const char *path, char *buffer, size_t size)
{
    if (strcmp(path, "/proc/self/cgroup") == 0)
        path = tables[0];
    else if (strcmp(path, "/proc/self/mountinfo") == 0)
        path = tables[1];
    return __real_file_read(path, buffer, size);
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    static struct cgroups cgroups;
    tables = arguments + 1;
    cgroups_find(&cgroups, 7);
    for (int i = 0; i < cgroups.count; i++) {
        const struct leaf *leaf = &cgroups.leaves[i];
        printf("%s %d%s%s%s%s\n", leaf->path, leaf->version, leaf->memory ? " memory" : "", leaf->cpu ? " cpu" : "",
               leaf->kill ? " kill" : "", leaf->processes ? " processes" : "");
    }
    return 0;
}
