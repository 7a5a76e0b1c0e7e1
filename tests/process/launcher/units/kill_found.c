/* Kill descendants that /proc shows in an unusual way: kill_found STAT [NAME]
 *
 * A child's stat has this content after its pid: "child" is that of a living child, "ended" that of one whose end is
 * noticed when it is killed. With NAME, the only directory of /proc is NAME. Print how the child is after it. */
#include "descendants.h"

#include "directory.h"
#include "files.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t __real_file_read(const char *path, char *buffer, size_t size);
ssize_t __wrap_file_read(const char *path, char *buffer, size_t size);
void __real_directory_visit(int descriptor, bool directories_only, visit_name *visit, void *context);
void __wrap_directory_visit(int descriptor, bool directories_only, visit_name *visit, void *context);

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

static pid_t child;
static const char *content, *only;

ssize_t __wrap_file_read(const char *path, char *buffer, size_t size)
{
    char stat[64];
    snprintf(stat, sizeof stat, "/proc/%d/stat", child);
    if (strcmp(path, stat) != 0)
        return __real_file_read(path, buffer, size);
    return strcmp(content, "child") == 0 || strcmp(content, "ended") == 0
        ? snprintf(buffer, size, "%d (name) S %d 1 1", child, getpid())
        : snprintf(buffer, size, "%d %s", child, content);
}

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == 424 && strcmp(content, "ended") == 0) { /* pidfd_send_signal */
        errno = ESRCH;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

void __wrap_directory_visit(int descriptor, bool directories_only, visit_name *visit, void *context)
{
    if (only)
        visit(only, context);
    else
        __real_directory_visit(descriptor, directories_only, visit, context);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    content = arguments[1];
    only = count > 2 ? arguments[2] : NULL;
    child = fork();
    if (child == 0)
        for (;;)
            pause();
    descendants_signal(SIGKILL);
    /* A signal that was sent has ended the child or ends it now; without one it stays. */
    kill(child, SIGTERM);
    int status;
    waitpid(child, &status, 0);
    puts(WTERMSIG(status) == SIGKILL ? "killed" : "spared");
    return 0;
}
