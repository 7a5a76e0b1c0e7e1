/* The precision setting: one for the process, behind a lock. */
#include "precision.h"
#include "numtext.h"

#include <stdio.h>

#ifdef NUMTEXT_THREADS
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() ((void)0)
#define UNLOCK() ((void)0)
#endif

static struct setting setting = { .digits = 12, .format = "%.12g" };

int numtext_set_precision(int digits)
{
    if (digits < 1 || digits > 17) {
        return -1;
    }
    LOCK();
    setting.digits = digits;
    snprintf(setting.format, sizeof setting.format, "%%.%dg", digits);
    UNLOCK();
    return 0;
}

int numtext_precision(void)
{
    LOCK();
    int digits = setting.digits;
    UNLOCK();
    return digits;
}

const struct setting *numtext_lock_setting(void)
{
    LOCK();
    return &setting;
}

void numtext_unlock_setting(void)
{
    UNLOCK();
}
