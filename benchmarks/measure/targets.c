/* The programs that every tool measures. Each appends its true values to the file that TRUTH names:
 * CLOCK_MONOTONIC at the start and the end of main, and the CPU time of the process, in nanoseconds. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Busy for a time of a clock. */
static void spend(clockid_t clock, int64_t milliseconds)
{
    int64_t until = now(clock) + milliseconds * 1000000;
    while (now(clock) < until)
        continue;
}

static void touch(size_t mebibytes)
{
    size_t size = mebibytes << 20;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(3);
    madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096)
        memory[at] = 1;
}

static void in_child(size_t mebibytes)
{
    if (fork() == 0) {
        touch(mebibytes);
        _exit(0);
    }
    wait(NULL);
}

static void in_two_children(size_t mebibytes)
{
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            touch(mebibytes);
            usleep(200000);
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
}

/* A grandchild in a new session, for which no process waits. */
static void daemonised(int64_t milliseconds)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            close(1);
            close(2);
            spend(CLOCK_PROCESS_CPUTIME_ID, milliseconds);
        }
        _exit(0);
    }
    wait(NULL);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t shared;

static void *contend(void *unused)
{
    (void)unused;
    for (int round = 0; round < 100000; round++) {
        pthread_mutex_lock(&mutex);
        for (int step = 0; step < 50; step++)
            shared += (uint64_t)step;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void four_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, contend, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(int count, char **arguments)
{
    int64_t start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    if (count != 3)
        return 2;
    const char *kind = arguments[1], *truth = getenv("TRUTH");
    long amount = atol(arguments[2]);
    if (strcmp(kind, "wall") == 0)
        spend(CLOCK_MONOTONIC, amount);
    else if (strcmp(kind, "touch") == 0)
        touch((size_t)amount);
    else if (strcmp(kind, "fork") == 0)
        in_child((size_t)amount);
    else if (strcmp(kind, "two") == 0)
        in_two_children((size_t)amount);
    else if (strcmp(kind, "daemon") == 0)
        daemonised(amount);
    else if (strcmp(kind, "threads") == 0)
        four_threads();
    else
        return 2;
    if (truth) {
        char line[128];
        int file = open(truth, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        int64_t used = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        int length = snprintf(line, sizeof line, "%lld %lld %lld\n", (long long)start,
                              (long long)now(CLOCK_MONOTONIC), (long long)used);
        if (file < 0 || write(file, line, (size_t)length) != length)
            return 4;
        close(file);
    }
    return 0;
}
