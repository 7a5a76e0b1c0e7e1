#include "kill.h"

#include "clock.h"
#include "descendants.h"

#include <signal.h>

#define LONGEST_PAUSE (20 * NS_PER_MS)
#ifndef KILL_SECONDS
#define KILL_SECONDS 30 /* an exit that releases hundreds of gigabytes takes several */
#endif

bool kill_tree(const struct cgroups *cgroups, reap_children *reap, void *context)
{
    struct timespec pause = {.tv_nsec = NS_PER_MS / 2};
    int64_t until_ns = clock_now_ns() + KILL_SECONDS * NS_PER_SECOND;
    while (!reap(context)) {
        if (clock_now_ns() >= until_ns)
            return false;
        cgroups_kill(cgroups);
        descendants_signal(SIGKILL);
        if (reap(context))
            return true;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < LONGEST_PAUSE)
            pause.tv_nsec *= 2;
    }
    return true;
}
