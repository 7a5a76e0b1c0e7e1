/* Kill a process whose pid another process gets after it was found: kill_reused_pid tree|leaf|real-tree DIRECTORY
 *
 * `tree`: at every reading of its /proc files but the first, the process has another parent. `leaf`: a process is
 * listed in cgroup.procs, but is a member of another cgroup. `real-tree`: nothing is simulated.
 * Print whether the process was killed. */
#include "cgroup.h"
#include "descendants.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t __real_file_read(const char *path, char *buffer, size_t size);

static pid_t process;
static bool reused;

ssize_t __wrap_file_read(const char *path, char *buffer, size_t size)
{
    static int readings;
    char stat[64];
    snprintf(stat, sizeof stat, "/proc/%d/stat", process);
    if (!reused || strcmp(path, stat) != 0 || readings++ == 0)
        return __real_file_read(path, buffer, size);
    return snprintf(buffer, size, "%d (another) S 1 1 1", process);
}

static void kill_member(const char *directory)
{
    static struct cgroups cgroups = {.count = 1, .leaves = {{.version = 1, .memory = true, .procs = -1}}};
    char path[1024];
    strcpy(cgroups.leaves[0].path, directory);
    snprintf(path, sizeof path, "%s/cgroup.procs", directory);
    FILE *list = fopen(path, "w");
    fprintf(list, "%d\n", process);
    fclose(list);
    cgroups_kill(&cgroups);
}

int main(int count, char **arguments)
{
    (void)count;
    process = fork();
    if (process == 0)
        for (;;)
            pause();
    reused = strcmp(arguments[1], "tree") == 0;
    if (strcmp(arguments[1], "leaf") == 0)
        kill_member(arguments[2]);
    else
        descendants_signal(SIGKILL);
    usleep(50000);
    printf(waitpid(process, NULL, WNOHANG) == process ? "killed\n" : "spared\n");
    kill(process, SIGKILL);
    return 0;
}
