/* Make a leaf, kill and read it, and remove it, with files instead of a cgroup: fake_leaf DIRECTORY VERSION [FILE[=CONTENT]…]
 *
 * Print what was read, and then each file with what was written to it. */
#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);

static int file_count;
static char **files;

static FILE *file_in(const char *directory, const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%.*s", directory, (int)strcspn(name, "="), name);
    return fopen(path, mode);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    if (__real_mkdir(path, mode) != 0)
        return -1;
    for (int i = 0; i < file_count; i++) {
        FILE *file = file_in(path, files[i], "w");
        if (!file)
            return -1;
        const char *content = strchr(files[i], '=');
        if (content)
            fputs(content + 1, file);
        fclose(file);
    }
    return 0;
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    static struct cgroups cgroups = {.count = 1};
    struct leaf *leaf = &cgroups.leaves[0];
    snprintf(leaf->path, sizeof leaf->path, "%s", arguments[1]);
    leaf->version = atoi(arguments[2]);
    leaf->memory = leaf->cpu = leaf->processes = true;
    leaf->kill = leaf->version == 2;
    leaf->procs = -1;
    files = arguments + 3;
    file_count = count - 3;
    if (!cgroups_make(&cgroups, 1 << 20, 9)) {
        puts("not made");
        return 0;
    }
    printf("made, peak %lld, file %lld, cpu %lld, oom %lld, refused %lld\n",
           (long long)cgroups_peak_memory_bytes(&cgroups), (long long)cgroups_file_memory_bytes(&cgroups),
           (long long)cgroups_cpu_ns(&cgroups), (long long)cgroups_oom_kills(&cgroups),
           (long long)cgroups_refused_processes(&cgroups));
    cgroups_kill(&cgroups);
    for (int i = 0; i < file_count; i++) {
        char content[256] = "";
        FILE *file = file_in(leaf->path, files[i], "r");
        if (file && fgets(content, sizeof content, file))
            printf("%.*s %s\n", (int)strcspn(files[i], "="), files[i], content);
        if (file)
            fclose(file);
    }
    return 0;
}
