/* Fixed work for any number of threads, with one known fault: its limit is known, so reports can be checked.
 *
 * faults FAULT THREADS: see the table at the end. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { UNITS = 960, TURNS = 60000, LARGEST = 16, LINE = 8, MEGABYTES = 64, BLOCKS = 400, PAGES = 64, PAGE = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own[LARGEST * LINE];
static pthread_rwlock_t readers_writer = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t given[LARGEST];
static _Atomic uint64_t lines[LARGEST * LINE];
static _Atomic uint64_t one_for_all;
static uint64_t *memory;
static int whose_turn;
static int threads;

static uint64_t turns(uint64_t x, int count) {
    for (int i = 0; i < count; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static void in_mutex(int me, int unit, uint64_t *result) {
    (void)me, (void)unit;
    pthread_mutex_lock(&mutex);
    *result = turns(*result, TURNS);
    pthread_mutex_unlock(&mutex);
}

static void half_in_mutex(int me, int unit, uint64_t *result) { /* the rest runs in parallel */
    (void)me, (void)unit;
    for (int i = 0; i < 10; i++) {
        *result = turns(*result, TURNS / 40);
        pthread_mutex_lock(&mutex);
        *result = turns(*result, 3 * TURNS / 40);
        pthread_mutex_unlock(&mutex);
    }
}

static void as_writer(int me, int unit, uint64_t *result) {
    (void)me, (void)unit;
    pthread_rwlock_wrlock(&readers_writer);
    *result = turns(*result, TURNS);
    pthread_rwlock_unlock(&readers_writer);
}

static void in_spinlock(int me, int unit, uint64_t *result) {
    (void)me, (void)unit;
    pthread_spin_lock(&spin);
    *result = turns(*result, TURNS);
    pthread_spin_unlock(&spin);
}

static void neighbours(int me, int unit, uint64_t *result) { /* separate counters in one cache line */
    (void)unit, (void)result;
    for (int i = 0; i < TURNS / 4; i++)
        atomic_fetch_add(&lines[me], 1);
}

static void one_counter(int me, int unit, uint64_t *result) {
    (void)me, (void)unit, (void)result;
    for (int i = 0; i < TURNS / 4; i++)
        atomic_fetch_add(&one_for_all, 1);
}

static void through_memory(int me, int unit, uint64_t *result) {
    size_t each = ((size_t)MEGABYTES << 17) / UNITS;
    (void)me;
    for (size_t i = unit * each; i < (unit + 1) * each; i++)
        *result += memory[i]++;
}

static void first_thread_only(int me, int unit, uint64_t *result) { /* imbalance: the first thread does all the work */
    (void)unit;
    if (me == 0)
        for (int i = 0; i < threads; i++)
            *result = turns(*result, TURNS);
}

static void in_order(int me, int unit, uint64_t *result) { /* each thread waits for its turn */
    (void)unit;
    pthread_mutex_lock(&mutex);
    while (whose_turn != me)
        pthread_cond_wait(&moved, &mutex);
    pthread_mutex_unlock(&mutex);
    *result = turns(*result, TURNS);
    pthread_mutex_lock(&mutex);
    whose_turn = (me + 1) % threads;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&mutex);
}

static void in_step(int me, int unit, uint64_t *result) { /* a barrier after each unit, and unequal units */
    *result = turns(*result, (unit / threads + me) % 2 ? TURNS / 4 : 7 * TURNS / 4);
    pthread_barrier_wait(&barrier);
}

static void in_even_steps(int me, int unit, uint64_t *result) { /* a barrier after every ten units, all of them equal */
    *result = turns(*result, TURNS);
    if (unit / threads % 10 == 9)
        pthread_barrier_wait(&barrier);
    (void)me;
}

static void by_semaphore(int me, int unit, uint64_t *result) { /* each thread waits for the one before */
    (void)unit;
    sem_wait(&given[me]);
    *result = turns(*result, TURNS);
    sem_post(&given[(me + 1) % threads]);
}

static void blocks(int me, int unit, uint64_t *result) {
    void *allocated[BLOCKS];
    (void)me, (void)unit;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < BLOCKS; i++)
            allocated[i] = malloc(2048 + 16 * i); /* larger than the blocks in each thread's cache */
        for (int i = 0; i < BLOCKS; i++)
            *result += (uintptr_t)allocated[i], free(allocated[i]);
    }
}

static void pages(int me, int unit, uint64_t *result) { /* the kernel changes one address space for all threads */
    (void)me, (void)unit;
    for (int round = 0; round < 3; round++) {
        char *fresh = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < PAGES; i++)
            fresh[i * PAGE] = 1;
        *result += (uintptr_t)fresh;
        munmap(fresh, PAGES * PAGE);
    }
}

static void alone(int me, int unit, uint64_t *result) {
    (void)me, (void)unit;
    *result = turns(*result, TURNS);
}

static void in_own_mutex(int me, int unit, uint64_t *result) { /* a lock that no other thread uses */
    (void)unit;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&own[me * LINE]);
        *result = turns(*result, TURNS / 100);
        pthread_mutex_unlock(&own[me * LINE]);
    }
}

static void reading(int me, int unit, uint64_t *result) { /* one table that all threads read, small enough for each cache */
    (void)me, (void)unit;
    for (int i = 0; i < TURNS; i++)
        *result = memory[*result % 512] + *result * 3;
}

static void rarely_in_mutex(int me, int unit, uint64_t *result) { /* one lock in a hundred units of work */
    (void)me, (void)unit;
    *result = turns(*result, TURNS);
    pthread_mutex_lock(&mutex);
    *result += 1;
    pthread_mutex_unlock(&mutex);
}

static const struct fault {
    const char *name;
    void (*unit)(int me, int unit, uint64_t *result);
} faults[] = {
    {"mutex", in_mutex},         {"half-mutex", half_in_mutex},
    {"writers", as_writer},      {"arena", blocks},
    {"spin", in_spinlock},       {"sharing", neighbours},
    {"counter", one_counter},    {"memory", through_memory},
    {"imbalance", first_thread_only}, {"handover", in_order},
    {"barrier", in_step},        {"pages", pages},
    {"none", alone},             {"own-mutex", in_own_mutex},
    {"reading", reading},        {"rare-mutex", rarely_in_mutex},
    {"semaphore", by_semaphore}, {"even-barrier", in_even_steps},
};

static const struct fault *fault;

static void *work(void *argument) {
    int me = (int)(intptr_t)argument;
    uint64_t result = (uint64_t)me;
    for (int unit = me; unit < UNITS; unit += threads)
        fault->unit(me, unit, &result);
    return (void *)(intptr_t)(result == 42);
}

int main(int count, char **arguments) {
    pthread_t started[LARGEST];
    if (count != 3 || (threads = atoi(arguments[2])) < 1 || threads > LARGEST)
        return 2;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (!strcmp(faults[i].name, arguments[1]))
            fault = &faults[i];
    if (!fault)
        return 2;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(&barrier, NULL, threads);
    for (int i = 0; i < LARGEST; i++)
        pthread_mutex_init(&own[i * LINE], NULL), sem_init(&given[i], 0, i == 0);
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, 1 << 28); /* otherwise malloc returns the memory to the kernel and requests it again */
    memory = calloc((size_t)MEGABYTES << 17, sizeof *memory);
    for (int i = 0; i < threads; i++)
        pthread_create(&started[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    return 0;
}
