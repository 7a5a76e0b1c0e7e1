/* every_lock FUNCTION CASE: call one function of pthread's or C11's locks, and check its result.
 *
 * CASE: free; held, by a thread that releases the lock once the caller sleeps, or after a function that does not wait;
 * late, held beyond the caller's time limit; dead, a mutex whose owner ended. */
#define _GNU_SOURCE
#include "sleeping.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t c11;
static struct timespec realtime, monotonic; /* time limits */
static atomic_int caller, is_held, is_done;
static bool is_late, is_dead;

static int mutex_lock(void) { return pthread_mutex_lock(&mutex); }
static int mutex_trylock(void) { return pthread_mutex_trylock(&mutex); }
static int mutex_timedlock(void) { return pthread_mutex_timedlock(&mutex, &realtime); }
static int mutex_clocklock(void) { return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &monotonic); }
static int mutex_unlock(void) { return pthread_mutex_unlock(&mutex); }
static int rdlock(void) { return pthread_rwlock_rdlock(&rwlock); }
static int wrlock(void) { return pthread_rwlock_wrlock(&rwlock); }
static int tryrdlock(void) { return pthread_rwlock_tryrdlock(&rwlock); }
static int trywrlock(void) { return pthread_rwlock_trywrlock(&rwlock); }
static int timedrdlock(void) { return pthread_rwlock_timedrdlock(&rwlock, &realtime); }
static int timedwrlock(void) { return pthread_rwlock_timedwrlock(&rwlock, &realtime); }
static int clockrdlock(void) { return pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &monotonic); }
static int clockwrlock(void) { return pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &monotonic); }
static int rwlock_unlock(void) { return pthread_rwlock_unlock(&rwlock); }
static int c11_lock(void) { return mtx_lock(&c11); }
static int c11_trylock(void) { return mtx_trylock(&c11); }
static int c11_timedlock(void) { return mtx_timedlock(&c11, &realtime); }
static int c11_unlock(void) { return mtx_unlock(&c11); }

static const struct call {
    const char *name;
    int (*call)(void), (*hold)(void), (*unlock)(void);
    int busy, late; /* results for a held lock: of a function that does not wait, else 0; after the time limit */
} calls[] = {
    {"pthread_mutex_lock", mutex_lock, mutex_lock, mutex_unlock, 0, 0},
    {"pthread_mutex_trylock", mutex_trylock, mutex_lock, mutex_unlock, EBUSY, 0},
    {"pthread_mutex_timedlock", mutex_timedlock, mutex_lock, mutex_unlock, 0, ETIMEDOUT},
    {"pthread_mutex_clocklock", mutex_clocklock, mutex_lock, mutex_unlock, 0, ETIMEDOUT},
    {"pthread_rwlock_rdlock", rdlock, wrlock, rwlock_unlock, 0, 0},
    {"pthread_rwlock_wrlock", wrlock, wrlock, rwlock_unlock, 0, 0},
    {"pthread_rwlock_tryrdlock", tryrdlock, wrlock, rwlock_unlock, EBUSY, 0},
    {"pthread_rwlock_trywrlock", trywrlock, wrlock, rwlock_unlock, EBUSY, 0},
    {"pthread_rwlock_timedrdlock", timedrdlock, wrlock, rwlock_unlock, 0, ETIMEDOUT},
    {"pthread_rwlock_timedwrlock", timedwrlock, wrlock, rwlock_unlock, 0, ETIMEDOUT},
    {"pthread_rwlock_clockrdlock", clockrdlock, wrlock, rwlock_unlock, 0, ETIMEDOUT},
    {"pthread_rwlock_clockwrlock", clockwrlock, wrlock, rwlock_unlock, 0, ETIMEDOUT},
    {"mtx_lock", c11_lock, c11_lock, c11_unlock, 0, 0},
    {"mtx_trylock", c11_trylock, c11_lock, c11_unlock, thrd_busy, 0},
    {"mtx_timedlock", c11_timedlock, c11_lock, c11_unlock, 0, thrd_timedout},
};

static void *hold(void *context)
{
    const struct call *call = context;
    const struct timespec pause = {.tv_nsec = 1000000};
    if (call->hold() != 0 || is_dead)
        return NULL;
    atomic_store(&is_held, 1);
    bool waits = !call->busy && !is_late;
    while (waits ? !sleeps(atomic_load(&caller)) : !atomic_load(&is_done))
        nanosleep(&pause, NULL);
    call->unlock();
    return NULL;
}

static int check(const struct call *call, const char *how)
{
    pthread_t holder;
    if (strcmp(how, "free") == 0)
        return call->call() == 0 && call->unlock() == 0 ? 0 : 3;
    pthread_create(&holder, NULL, hold, (void *)call);
    if (is_dead) {
        pthread_join(holder, NULL);
        return call->call() == EOWNERDEAD && pthread_mutex_consistent(&mutex) == 0 && call->unlock() == 0 ? 0 : 4;
    }
    while (!atomic_load(&is_held)) /* spins: only a wait for the lock is a sleep */
        continue;
    atomic_store(&caller, (int)gettid());
    int result = call->call(), wanted = is_late ? call->late : call->busy;
    atomic_store(&is_done, 1);
    if (result == 0)
        call->unlock();
    pthread_join(holder, NULL);
    return result == wanted ? 0 : 5;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    is_late = strcmp(arguments[2], "late") == 0;
    is_dead = strcmp(arguments[2], "dead") == 0;
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, is_dead ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
    pthread_mutex_init(&mutex, &robust);
    mtx_init(&c11, mtx_timed);
    clock_gettime(CLOCK_REALTIME, &realtime);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    if (!is_late) {
        realtime.tv_sec += 60;
        monotonic.tv_sec += 60;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, arguments[1]) == 0)
            return check(&calls[i], arguments[2]);
    return 2;
}
