/* Make a leaf, enter and kill it, read it, and remove it, with files instead of a cgroup:
 * fake_leaf DIRECTORY VERSION MEMORY_LIMIT PROCESS_LIMIT
 *
 * Print what was read. */
#include "cgroup.h"

#include "simulated_cgroups.h"

int main(int count, char **arguments)
{
    if (count != 5)
        return 2;
    static struct cgroups cgroups = {.count = 1};
    struct leaf *leaf = &cgroups.leaves[0];
    snprintf(leaf->path, sizeof leaf->path, "%s", arguments[1]);
    leaf->version = atoi(arguments[2]);
    leaf->memory = leaf->cpu = leaf->processes = true;
    leaf->kill = leaf->version == 2;
    leaf->procs = -1;
    if (!cgroups_make(&cgroups, atoll(arguments[3]), atoll(arguments[4]))) {
        puts("not made");
        return 0;
    }
    int error = cgroups_enter(&cgroups);
    cgroups_kill(&cgroups);
    printf("made, %s, peak %lld, file %lld, cpu %lld, oom %lld, refused %lld\n", error ? strerror(error) : "entered",
           (long long)cgroups_peak_memory_bytes(&cgroups), (long long)cgroups_file_memory_bytes(&cgroups),
           (long long)cgroups_cpu_ns(&cgroups), (long long)cgroups_oom_kills(&cgroups),
           (long long)cgroups_refused_processes(&cgroups));
    cgroups_remove(&cgroups);
    return 0;
}
