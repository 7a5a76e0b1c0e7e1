/* daemon CPU_MILLISECONDS LINGER_SECONDS STAY: a grandchild, in a session of its own, uses so much CPU time and then
 * lingers. The program itself ends at once, or (STAY = 1) never. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void burn(long milliseconds)
{
    struct timespec used;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < milliseconds);
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            burn(atol(arguments[1]));
            sleep((unsigned)atoi(arguments[2]));
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
    while (atoi(arguments[3]))
        pause();
    return 0;
}
