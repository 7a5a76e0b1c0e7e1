/* Kill the member that a leaf lists, whose own cgroups are longer than the launcher reads: kill_unreadable LEAF BYTES
 *
 * Print how the member ended. The lines of other hierarchies come first, with so many bytes. */
#include "cgroup.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t __real_file_read(const char *path, char *buffer, size_t size);

static size_t bytes;

ssize_t __wrap_file_read(const char *path, char *buffer, size_t size)
{
    if (!strstr(path, "/cgroup"))
        return __real_file_read(path, buffer, size);
    size_t length = bytes < size - 1 ? bytes : size - 1;
    memset(buffer, 'x', length);
    buffer[length] = '\0';
    return (ssize_t)length;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    static struct cgroups cgroups = {.count = 1};
    cgroups.leaves[0].memory = true;
    snprintf(cgroups.leaves[0].path, sizeof cgroups.leaves[0].path, "%s", arguments[1]);
    bytes = strtoul(arguments[2], NULL, 10);
    pid_t member = fork();
    if (member == 0) {
        pause();
        _exit(0);
    }
    char name[4096];
    snprintf(name, sizeof name, "%s/cgroup.procs", arguments[1]);
    FILE *listed = fopen(name, "w");
    if (!listed)
        return 2;
    fprintf(listed, "%d\n", (int)member);
    fclose(listed);
    cgroups_kill(&cgroups);
    int status = 0;
    bool killed = waitpid(member, &status, WNOHANG) == member;
    for (int tries = 0; !killed && tries < 200; tries++) {
        usleep(10000);
        killed = waitpid(member, &status, WNOHANG) == member;
    }
    puts(killed && WIFSIGNALED(status) ? "killed" : "alive");
    kill(member, SIGKILL);
    return 0;
}
