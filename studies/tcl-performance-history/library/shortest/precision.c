/* The precision setting: one for the process, behind a lock. */
#include "precision.h"
#include "numtext.h"

#ifdef NUMTEXT_THREADS
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() ((void)0)
#define UNLOCK() ((void)0)
#endif

static int precision = SHORTEST;

int numtext_set_precision(int digits)
{
    if (digits < SHORTEST || digits > MOST_PRECISION) {
        return -1;
    }
    LOCK();
    precision = digits;
    UNLOCK();
    return 0;
}

int numtext_precision(void)
{
    LOCK();
    int digits = precision;
    UNLOCK();
    return digits;
}
