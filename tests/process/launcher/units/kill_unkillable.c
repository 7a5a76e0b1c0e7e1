/* Kill a tree of processes that never end. Time is simulated: a pause only advances the clock.
 *
 * Print the simulated seconds until kill_tree gave up. */
#include "kill.h"

#include "clock.h"
#include "descendants.h"

#include <stdio.h>
#include <stdlib.h>

#define TOO_LONG (3600 * NS_PER_SECOND)

static int64_t simulated_ns = NS_PER_SECOND;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){.tv_sec = simulated_ns / NS_PER_SECOND, .tv_nsec = simulated_ns % NS_PER_SECOND};
    return 0;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    simulated_ns += wanted->tv_sec * NS_PER_SECOND + wanted->tv_nsec;
    if (simulated_ns > TOO_LONG) {
        printf("did not give up within an hour\n");
        exit(1);
    }
    return 0;
}

void cgroups_kill(const struct cgroups *cgroups) { (void)cgroups; }
void descendants_signal(int signal)
{
    (void)signal;
}

static bool never_childless(void *context)
{
    (void)context;
    return false;
}

int main(void)
{
    static const struct cgroups none;
    kill_tree(&none, never_childless, NULL);
    printf("%ld\n", (long)(simulated_ns / NS_PER_SECOND) - 1);
    return 0;
}
