/* fork_bomb PROCESSES KIND: that many processes, each a child of the one before (chain), each in a session of its own
 * (sessions), or all of them replaced by a new one as soon as it is killed (respawn). Ignores what can be ignored. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void stay(void)
{
    for (;;)
        pause();
}

static void chain(int left)
{
    while (left-- > 0)
        if (fork() > 0)
            stay();
    stay();
}

static void sessions(int left)
{
    while (left-- > 0)
        if (fork() == 0) {
            setsid();
            stay();
        }
    stay();
}

static void respawn(int left)
{
    int running = 0;
    for (;;) {
        for (; running < left; running++)
            if (fork() == 0) {
                setsid();
                stay();
            }
        running -= wait(NULL) > 0;
    }
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    for (int number = 1; number < NSIG; number++)
        if (number != SIGCHLD)
            signal(number, SIG_IGN);
    int processes = atoi(arguments[1]);
    if (strcmp(arguments[2], "chain") == 0)
        chain(processes);
    else if (strcmp(arguments[2], "sessions") == 0)
        sessions(processes);
    else
        respawn(processes);
    return 0;
}
