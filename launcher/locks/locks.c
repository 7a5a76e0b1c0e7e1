/* perftrail-locks.so: count a program's operations on mutexes, read-write locks and spin locks (pthread's and C11's).
 *
 * It is preloaded into a target (LD_PRELOAD). waits.c counts waits for other threads without a lock; slots.h describes
 * where the counts are stored.
 *
 * Each call first tries the lock. Only a contended lock costs two clock readings. Not counted are locks inside the C
 * library (malloc, stdio), a program's own futexes (Go, Rust's std::sync, OpenMP), and programs that are static or do
 * not use glibc. */
#include "slots.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static bool is_taken(int result)
{
    return result == 0 || result == EOWNERDEAD;
}

/* The lock was locked by another thread. */
static void note_contended(void)
{
    struct slot *slot = own_slot();
    if (slot)
        slot->contended++;
}

static int note_lock(int result)
{
    struct slot *slot = own_slot();
    if (slot && is_taken(result))
        slot->locks++;
    return result;
}

static void note_wait(uint64_t since_ns)
{
    struct slot *slot = own_slot();
    if (slot)
        slot->waited_ns += now_ns() - since_ns;
}

/* Try the lock; if it is locked, wait with the program's own call. */
#define LOCK(try, held, wait)            \
    int result = (try);                  \
    if (result == (held)) {              \
        uint64_t since_ns = now_ns();    \
        note_contended();                \
        result = (wait);                 \
        note_wait(since_ns);             \
    }                                    \
    return note_lock(result)

#define TRY(try, held)                   \
    int result = (try);                  \
    if (result == (held))                \
        note_contended();                \
    return note_lock(result)

EXPORTED int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    LOCK(ORIGINAL(pthread_mutex_trylock)(mutex), EBUSY, ORIGINAL(pthread_mutex_lock)(mutex));
}

EXPORTED int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    TRY(ORIGINAL(pthread_mutex_trylock)(mutex), EBUSY);
}

EXPORTED int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    LOCK(ORIGINAL(pthread_mutex_trylock)(mutex), EBUSY, ORIGINAL(pthread_mutex_timedlock)(mutex, until));
}

EXPORTED int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    LOCK(ORIGINAL(pthread_rwlock_tryrdlock)(lock), EBUSY, ORIGINAL(pthread_rwlock_rdlock)(lock));
}

EXPORTED int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    LOCK(ORIGINAL(pthread_rwlock_trywrlock)(lock), EBUSY, ORIGINAL(pthread_rwlock_wrlock)(lock));
}

EXPORTED int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    TRY(ORIGINAL(pthread_rwlock_tryrdlock)(lock), EBUSY);
}

EXPORTED int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    TRY(ORIGINAL(pthread_rwlock_trywrlock)(lock), EBUSY);
}

EXPORTED int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    LOCK(ORIGINAL(pthread_rwlock_tryrdlock)(lock), EBUSY, ORIGINAL(pthread_rwlock_timedrdlock)(lock, until));
}

EXPORTED int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    LOCK(ORIGINAL(pthread_rwlock_trywrlock)(lock), EBUSY, ORIGINAL(pthread_rwlock_timedwrlock)(lock, until));
}

/* A spinning thread uses its processor: this is not a wait, and is counted separately. */
EXPORTED int pthread_spin_lock(pthread_spinlock_t *lock)
{
    int result = ORIGINAL(pthread_spin_trylock)(lock);
    if (result == EBUSY) {
        uint64_t since_ns = now_ns();
        struct slot *slot = own_slot();
        result = ORIGINAL(pthread_spin_lock)(lock);
        if (slot) {
            slot->waits[SPIN].number++;
            slot->waits[SPIN].ns += now_ns() - since_ns;
        }
    }
    return result;
}

#if __GLIBC_PREREQ(2, 28)
#include <threads.h> /* in which thrd_success is 0 */

EXPORTED int mtx_lock(mtx_t *mutex)
{
    LOCK(ORIGINAL(mtx_trylock)(mutex), thrd_busy, ORIGINAL(mtx_lock)(mutex));
}

EXPORTED int mtx_trylock(mtx_t *mutex)
{
    TRY(ORIGINAL(mtx_trylock)(mutex), thrd_busy);
}

EXPORTED int mtx_timedlock(mtx_t *mutex, const struct timespec *until)
{
    LOCK(ORIGINAL(mtx_trylock)(mutex), thrd_busy, ORIGINAL(mtx_timedlock)(mutex, until));
}
#endif

#if __GLIBC_PREREQ(2, 30)
EXPORTED int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    LOCK(ORIGINAL(pthread_mutex_trylock)(mutex), EBUSY, ORIGINAL(pthread_mutex_clocklock)(mutex, clock, until));
}

EXPORTED int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
    LOCK(ORIGINAL(pthread_rwlock_tryrdlock)(lock), EBUSY,
         ORIGINAL(pthread_rwlock_clockrdlock)(lock, clock, until));
}

EXPORTED int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
    LOCK(ORIGINAL(pthread_rwlock_trywrlock)(lock), EBUSY,
         ORIGINAL(pthread_rwlock_clockwrlock)(lock, clock, until));
}
#endif
