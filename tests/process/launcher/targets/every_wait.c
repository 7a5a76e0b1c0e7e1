/* every_wait FUNCTION CASE: a thread waits with one function for another, and its end is checked.
 *
 * CASE: woken, or cancelled, 5 ms after it sleeps; free, a semaphore for which it does not wait. */
#define _GNU_SOURCE
#include "sleeping.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const struct timespec millisecond = {.tv_nsec = 1000000};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static mtx_t c11_mutex;
static cnd_t c11_moved;
static sem_t given;
static pthread_t joined;
static struct timespec realtime, monotonic; /* time limits */
static atomic_int waiter, is_released;

static int in_mutex(int (*wait)(void))
{
    pthread_mutex_lock(&mutex);
    int result = wait();
    pthread_mutex_unlock(&mutex);
    return result;
}

static int in_c11_mutex(int (*wait)(void))
{
    mtx_lock(&c11_mutex);
    int result = wait();
    mtx_unlock(&c11_mutex);
    return result;
}

static int alone(int (*wait)(void)) { return wait(); }

static int cond_wait(void) { return pthread_cond_wait(&moved, &mutex); }
static int cond_timedwait(void) { return pthread_cond_timedwait(&moved, &mutex, &realtime); }
static int cond_clockwait(void) { return pthread_cond_clockwait(&moved, &mutex, CLOCK_MONOTONIC, &monotonic); }
static int c11_wait(void) { return cnd_wait(&c11_moved, &c11_mutex); }
static int c11_timedwait(void) { return cnd_timedwait(&c11_moved, &c11_mutex, &realtime); }
static int semaphore_wait(void) { return sem_wait(&given); }
static int semaphore_timedwait(void) { return sem_timedwait(&given, &realtime); }
static int semaphore_clockwait(void) { return sem_clockwait(&given, CLOCK_MONOTONIC, &monotonic); }
static int join(void) { return pthread_join(joined, NULL); }
static int timedjoin(void) { return pthread_timedjoin_np(joined, NULL, &realtime); }
static int clockjoin(void) { return pthread_clockjoin_np(joined, NULL, CLOCK_MONOTONIC, &monotonic); }
static int c11_join(void) { return thrd_join((thrd_t)joined, NULL); }

static void wake(void)
{
    pthread_mutex_lock(&mutex); /* free once the waiter sleeps at the condition variable */
    pthread_cond_signal(&moved);
    pthread_mutex_unlock(&mutex);
}

static void wake_c11(void)
{
    mtx_lock(&c11_mutex);
    cnd_signal(&c11_moved);
    mtx_unlock(&c11_mutex);
}

static void post(void) { sem_post(&given); }
static void release(void) { atomic_store(&is_released, 1); }

static const struct call {
    const char *name;
    int (*call)(void), (*within)(int (*)(void));
    void (*wake)(void);
} calls[] = {
    {"pthread_cond_wait", cond_wait, in_mutex, wake},
    {"pthread_cond_timedwait", cond_timedwait, in_mutex, wake},
    {"pthread_cond_clockwait", cond_clockwait, in_mutex, wake},
    {"cnd_wait", c11_wait, in_c11_mutex, wake_c11},
    {"cnd_timedwait", c11_timedwait, in_c11_mutex, wake_c11},
    {"sem_wait", semaphore_wait, alone, post},
    {"sem_timedwait", semaphore_timedwait, alone, post},
    {"sem_clockwait", semaphore_clockwait, alone, post},
    {"pthread_join", join, alone, release},
    {"pthread_timedjoin_np", timedjoin, alone, release},
    {"pthread_clockjoin_np", clockjoin, alone, release},
    {"thrd_join", c11_join, alone, release},
};

static void *be_joined(void *unused)
{
    while (!atomic_load(&is_released))
        nanosleep(&millisecond, NULL);
    return unused;
}

static void *wait_once(void *context)
{
    const struct call *call = context;
    atomic_store(&waiter, (int)gettid());
    return call->within(call->call) == 0 ? NULL : context;
}

static int check(const struct call *call, const char *how)
{
    pthread_t thread;
    void *result;
    if (strcmp(how, "free") == 0)
        return sem_post(&given) == 0 && call->call() == 0 ? 0 : 3;
    bool joins = call->wake == release;
    if (joins)
        pthread_create(&joined, NULL, be_joined, NULL);
    pthread_create(&thread, NULL, wait_once, (void *)call);
    while (!atomic_load(&waiter) || !sleeps(atomic_load(&waiter)))
        nanosleep(&millisecond, NULL);
    for (int i = 0; i < 5; i++)
        nanosleep(&millisecond, NULL);
    bool cancelled = strcmp(how, "cancelled") == 0;
    if (cancelled)
        pthread_cancel(thread);
    else
        call->wake();
    pthread_join(thread, &result);
    if (joins && cancelled) {
        release();
        pthread_join(joined, NULL);
    }
    return result == (cancelled ? PTHREAD_CANCELED : NULL) ? 0 : 4;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    sem_init(&given, 0, 0);
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_moved);
    clock_gettime(CLOCK_REALTIME, &realtime);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    realtime.tv_sec += 60;
    monotonic.tv_sec += 60;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, arguments[1]) == 0)
            return check(&calls[i], arguments[2]);
    return 2;
}
