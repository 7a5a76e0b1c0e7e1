#include "guard.h"

#include "clock.h"
#include "kill.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

#define GRACE_MS 500 /* after the client's end the server kills its tree itself, unless it hangs */

static bool reap(void *context)
{
    (void)context;
    pid_t process;
    while ((process = waitpid(-1, NULL, WNOHANG)) > 0 || (process < 0 && errno == EINTR))
        continue;
    return process < 0;
}

/* Return whether the server ended within the time; -1 is no limit. */
static bool wait_for_end(pid_t server, int server_fd, int client, int timeout_ms, int *status)
{
    struct pollfd waiting[] = {{.fd = server_fd, .events = POLLIN}, {.fd = client, .events = POLLIN}};
    while (poll(waiting, 2, timeout_ms) < 0 && errno == EINTR)
        continue;
    return waiting[0].revents && waitpid(server, status, WNOHANG) == server;
}

int guard_server(pid_t server, int client, struct cgroups *cgroups)
{
    int status = 0;
    int server_fd = process_descriptor(server);
    if (server_fd < 0) { /* a kernel without pidfd_open: only the server watches the client */
        while (waitpid(server, &status, 0) < 0 && errno == EINTR)
            continue;
    } else if (!wait_for_end(server, server_fd, client, -1, &status)
               && !wait_for_end(server, server_fd, -1, GRACE_MS, &status)) {
        kill(server, SIGKILL);
        waitpid(server, &status, 0);
    }
    kill_tree(cgroups, reap, NULL);
    cgroups_remove(cgroups);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
