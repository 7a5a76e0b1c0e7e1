/* burn CHILDREN MILLISECONDS WAIT: so many children use so much CPU time each. WAIT = 0 lets the kernel reap them
 * unaccounted (SIGCHLD ignored), which hides their CPU time from wait4. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    if (!atoi(arguments[3]))
        signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < atoi(arguments[1]); i++) {
        if (fork() == 0) {
            struct timespec used;
            do {
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
            } while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < atol(arguments[2]));
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
