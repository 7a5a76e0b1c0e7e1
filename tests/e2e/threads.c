/* Fixed work for any number of threads, with one known fault: what limits it is known, so findings can be judged. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 240, TURNS = 60000, LARGEST = 8, LINE = 8, MEGABYTES = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static _Atomic uint64_t lines[LARGEST * LINE];
static uint64_t *memory;
static size_t words;
static const char *fault;
static int threads;

static uint64_t turn(uint64_t x) {
    for (int i = 0; i < TURNS; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static void share(int me, uint64_t *result) {
    for (int unit = me; unit < UNITS; unit += threads) {
        if (!strcmp(fault, "mutex")) {
            pthread_mutex_lock(&mutex);
            *result = turn(*result);
            pthread_mutex_unlock(&mutex);
        } else if (!strcmp(fault, "spin")) {
            pthread_spin_lock(&spin);
            *result = turn(*result);
            pthread_spin_unlock(&spin);
        } else if (!strcmp(fault, "sharing")) { /* neighbours in one cache line */
            for (int i = 0; i < TURNS / 4; i++)
                atomic_fetch_add(&lines[me], 1);
        } else if (!strcmp(fault, "memory")) {
            size_t each = words / UNITS;
            for (size_t i = unit * each; i < (unit + 1) * each; i += 1)
                *result += memory[i]++;
        } else {
            *result = turn(*result);
        }
    }
}

static void *work(void *argument) {
    uint64_t result = (uint64_t)(intptr_t)argument;
    share((int)(intptr_t)argument, &result);
    return (void *)(intptr_t)(result == 42);
}

int main(int count, char **arguments) {
    pthread_t started[LARGEST];
    if (count != 3 || (threads = atoi(arguments[2])) < 1 || threads > LARGEST)
        return 2;
    fault = arguments[1];
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    if (!strcmp(fault, "memory")) {
        words = (size_t)MEGABYTES << 17;
        memory = calloc(words, sizeof *memory);
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&started[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    return 0;
}
