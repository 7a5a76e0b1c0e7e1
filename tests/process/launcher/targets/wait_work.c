/* wait_work KIND: two threads wait for each other in one way, for 20 ms in sum and more where nothing else is said.
 *
 * condition, timed, clock, c11: twenty times at a condition variable, whose waker sleeps 1 ms each time. barrier, semaphore:
 * the same at those. join: main waits for a thread of 20 ms. spin: one holds a spin lock for 20 ms that the other wants.
 * free: semaphores that are free, and barriers of one. cancel: a thread that waits for 20 ms is cancelled. left: the
 * program ends while a thread has waited for 20 ms. rwlock, mtx: locks that are held for 20 ms. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, MILLISECOND = 1000000 };

static const char *kind;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t readers_writer = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t c11_mutex;
static cnd_t c11_moved;
static pthread_barrier_t both, alone;
static pthread_spinlock_t spin;
static sem_t given;
static int turn;
static atomic_int is_held, is_asked_for;

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static void pause_ms(int milliseconds)
{
    const struct timespec pause = {.tv_nsec = milliseconds * (long)MILLISECOND};
    nanosleep(&pause, NULL);
}

static void hold(void) /* until main has asked for what is held, and 20 ms more */
{
    atomic_store(&is_held, 1);
    while (!atomic_load(&is_asked_for))
        sched_yield();
    pause_ms(ROUNDS);
}

static void wait_for_turn(int round)
{
    struct timespec until;
    if (is("c11")) {
        mtx_lock(&c11_mutex);
        while (turn <= round)
            cnd_wait(&c11_moved, &c11_mutex);
        mtx_unlock(&c11_mutex);
        return;
    }
    clock_gettime(is("clock") ? CLOCK_MONOTONIC : CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&mutex);
    while (turn <= round) {
        if (is("timed"))
            pthread_cond_timedwait(&moved, &mutex, &until);
        else if (is("clock"))
            pthread_cond_clockwait(&moved, &mutex, CLOCK_MONOTONIC, &until);
        else
            pthread_cond_wait(&moved, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static void give_turn(void)
{
    if (is("c11")) {
        mtx_lock(&c11_mutex);
        turn++;
        cnd_signal(&c11_moved);
        mtx_unlock(&c11_mutex);
        return;
    }
    pthread_mutex_lock(&mutex);
    turn++;
    pthread_cond_signal(&moved);
    pthread_mutex_unlock(&mutex);
}

static void *other(void *unused)
{
    (void)unused;
    if (is("spin")) {
        pthread_spin_lock(&spin);
        hold();
        pthread_spin_unlock(&spin);
    } else if (is("rwlock")) {
        pthread_rwlock_wrlock(&readers_writer);
        hold();
        pthread_rwlock_unlock(&readers_writer);
    } else if (is("mtx")) {
        mtx_lock(&c11_mutex);
        hold();
        mtx_unlock(&c11_mutex);
    } else if (is("join")) {
        pause_ms(ROUNDS);
    } else if (is("cancel") || is("left")) {
        atomic_store(&is_held, 1);
        sem_wait(&given);
    } else if (!is("free")) {
        for (int round = 0; round < ROUNDS; round++) {
            pause_ms(1);
            if (is("barrier"))
                pthread_barrier_wait(&both);
            else if (is("semaphore"))
                sem_post(&given);
            else
                give_turn();
        }
    }
    return NULL;
}

static void wait_in_turns(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (is("barrier")) {
            pthread_barrier_wait(&both);
        } else if (is("semaphore")) {
            sem_wait(&given);
        } else if (is("free")) {
            sem_post(&given);
            errno = 42;
            sem_wait(&given);
            if (errno != 42)
                exit(3);
            pthread_barrier_wait(&alone);
        } else {
            wait_for_turn(round);
        }
    }
}

int main(int count, char **arguments)
{
    pthread_t thread;
    struct timespec until;
    if (count != 2)
        return 2;
    kind = arguments[1];
    pthread_barrier_init(&both, NULL, 2);
    pthread_barrier_init(&alone, NULL, 1);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&given, 0, 0);
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_moved);
    pthread_create(&thread, NULL, other, NULL);
    if (is("spin") || is("rwlock") || is("mtx") || is("cancel") || is("left")) {
        while (!atomic_load(&is_held))
            sched_yield();
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 60;
        atomic_store(&is_asked_for, 1);
        if (is("spin"))
            pthread_spin_lock(&spin);
        else if (is("rwlock"))
            pthread_rwlock_timedrdlock(&readers_writer, &until);
        else if (is("mtx"))
            mtx_lock(&c11_mutex);
        else
            pause_ms(ROUNDS);
        if (is("left"))
            _exit(0);
        if (is("cancel"))
            pthread_cancel(thread);
    } else if (!is("join")) {
        wait_in_turns();
    }
    pthread_join(thread, NULL);
    return 0;
}
