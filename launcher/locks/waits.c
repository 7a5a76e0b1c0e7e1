/* Count waits of a program's threads for each other without a lock: at condition variables, barriers and
 * semaphores, and for the end of threads. See slots.h.
 *
 * Each such wait costs two clock readings; a free semaphore costs none. A wait at a condition variable includes
 * the time to lock the mutex again, because the C library does that inside. A wait that the program's end
 * interrupts is counted up to that end; a cancelled wait is counted, too. */
#include "slots.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

/* Without a version, dlsym may return the function of 2.2.5, whose condition variables have another layout. Programs
 * linked before 2.3.2 get the new ones here. Architectures that glibc supported later have only one kind. */
#define CONDITIONS "GLIBC_2.3.2"

struct wait {
    enum kind kind;
    uint64_t since_ns;
};

static struct wait begin_wait(enum kind kind)
{
    struct wait wait = {.kind = kind, .since_ns = now_ns()};
    struct slot *slot = own_slot();
    if (slot) {
        slot->waits[kind].number++;
        slot->open_kind = kind;
        slot->open_since_ns = wait.since_ns;
    }
    return wait;
}

static void end_wait(void *begun)
{
    const struct wait *wait = begun;
    struct slot *slot = own_slot();
    if (slot) {
        slot->waits[wait->kind].ns += now_ns() - wait->since_ns;
        slot->open_since_ns = 0;
    }
}

#define WAIT(kind, call)                     \
    int result;                              \
    struct wait wait = begin_wait(kind);     \
    pthread_cleanup_push(end_wait, &wait);   \
    result = (call);                         \
    pthread_cleanup_pop(1);                  \
    return result

EXPORTED int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    WAIT(CONDITION, ORIGINAL_OF(pthread_cond_wait, CONDITIONS)(condition, mutex));
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    WAIT(CONDITION, ORIGINAL_OF(pthread_cond_timedwait, CONDITIONS)(condition, mutex, until));
}

EXPORTED int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    struct wait wait = begin_wait(BARRIER); /* not a cancellation point */
    int result = ORIGINAL(pthread_barrier_wait)(barrier);
    end_wait(&wait);
    return result;
}

/* Return whether a semaphore was free. Like sem_wait, this is a cancellation point, and does not change errno. */
static int is_free(sem_t *semaphore)
{
    int before = errno;
    pthread_testcancel();
    int result = ORIGINAL(sem_trywait)(semaphore);
    if (result != 0)
        errno = before;
    return result == 0;
}

EXPORTED int sem_wait(sem_t *semaphore)
{
    if (is_free(semaphore))
        return 0;
    WAIT(SEMAPHORE, ORIGINAL(sem_wait)(semaphore));
}

EXPORTED int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    if (is_free(semaphore))
        return 0;
    WAIT(SEMAPHORE, ORIGINAL(sem_timedwait)(semaphore, until));
}

EXPORTED int pthread_join(pthread_t thread, void **value)
{
    WAIT(JOIN, ORIGINAL(pthread_join)(thread, value));
}

EXPORTED int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
    WAIT(JOIN, ORIGINAL(pthread_timedjoin_np)(thread, value, until));
}

#if __GLIBC_PREREQ(2, 28)
#include <threads.h>

EXPORTED int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    WAIT(CONDITION, ORIGINAL(cnd_wait)(condition, mutex));
}

EXPORTED int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
    WAIT(CONDITION, ORIGINAL(cnd_timedwait)(condition, mutex, until));
}

EXPORTED int thrd_join(thrd_t thread, int *value)
{
    WAIT(JOIN, ORIGINAL(thrd_join)(thread, value));
}
#endif

#if __GLIBC_PREREQ(2, 30)
EXPORTED int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                   const struct timespec *until)
{
    WAIT(CONDITION, ORIGINAL(pthread_cond_clockwait)(condition, mutex, clock, until));
}

EXPORTED int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    if (is_free(semaphore))
        return 0;
    WAIT(SEMAPHORE, ORIGINAL(sem_clockwait)(semaphore, clock, until));
}
#endif

#if __GLIBC_PREREQ(2, 31)
EXPORTED int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock, const struct timespec *until)
{
    WAIT(JOIN, ORIGINAL(pthread_clockjoin_np)(thread, value, clock, until));
}
#endif
