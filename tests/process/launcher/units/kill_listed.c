/* Kill the members that a leaf lists: kill_listed LEAF LIST CGROUPS
 *
 * LIST is the content of cgroup.procs, in which @ is a child and . is this process. CGROUPS is the content of each
 * process's /proc/PID/cgroup; it cannot be read if it is "unreadable". Print how the child ended. */
#include "cgroup.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t __real_file_read(const char *path, char *buffer, size_t size);
ssize_t __wrap_file_read(const char *path, char *buffer, size_t size);

static const char *own;

ssize_t __wrap_file_read(const char *path, char *buffer, size_t size)
{
    if (!strstr(path, "/cgroup"))
        return __real_file_read(path, buffer, size);
    if (strcmp(own, "unreadable") == 0)
        return -1;
    size_t length = strlen(own) < size - 1 ? strlen(own) : size - 1;
    memcpy(buffer, own, length);
    buffer[length] = '\0';
    return (ssize_t)length;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    static struct cgroups cgroups = {.count = 1};
    cgroups.leaves[0].memory = true;
    snprintf(cgroups.leaves[0].path, sizeof cgroups.leaves[0].path, "%s", arguments[1]);
    own = arguments[3];
    setpgid(0, 0); /* what is killed with process 0 */
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    char name[4096];
    snprintf(name, sizeof name, "%s/cgroup.procs", arguments[1]);
    FILE *listed = fopen(name, "w");
    if (!listed)
        return 2;
    for (const char *at = arguments[2]; *at; at++)
        if (*at == '@' || *at == '.')
            fprintf(listed, "%d", *at == '@' ? child : getpid());
        else
            fputc(*at, listed);
    fclose(listed);
    cgroups_kill(&cgroups);
    /* A signal that was sent is the first that ends the child; without one it ends by this. */
    kill(child, SIGTERM);
    int status;
    waitpid(child, &status, 0);
    puts(WTERMSIG(status) == SIGKILL ? "killed" : "alive");
    return 0;
}
