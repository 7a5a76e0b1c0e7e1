/* lock_work THREADS ROUNDS KIND END: each thread takes one mutex so often. KIND: own, shared (held over a sleep of
 * 1 ms), fork (the first half in a child). END: return, _exit, kill (by SIGKILL). */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static int rounds, is_shared;

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(is_shared ? &common : &own);
        if (is_shared)
            nanosleep(&pause, NULL);
        pthread_mutex_unlock(is_shared ? &common : &own);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[64];
    if (count != 5)
        return 2;
    int thread_count = atoi(arguments[1]);
    rounds = atoi(arguments[2]);
    is_shared = strcmp(arguments[3], "shared") == 0;
    if (strcmp(arguments[3], "fork") == 0) {
        work(NULL);
        if (fork() == 0) {
            work(NULL);
            _exit(0);
        }
        wait(NULL);
    }
    for (int i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    if (strcmp(arguments[4], "_exit") == 0)
        _exit(0);
    if (strcmp(arguments[4], "kill") == 0)
        raise(SIGKILL);
    return 0;
}
