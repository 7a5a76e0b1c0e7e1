#include "kill.h"

#include "clock.h"
#include "descendants.h"

#define LONGEST_PAUSE (20 * NS_PER_MS)

void kill_tree(const struct cgroups *cgroups, reap_children *reap, void *context)
{
    struct timespec pause = {.tv_nsec = NS_PER_MS / 2};
    while (!reap(context)) {
        cgroups_kill(cgroups);
        descendants_kill();
        if (reap(context))
            return;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < LONGEST_PAUSE)
            pause.tv_nsec *= 2;
    }
}
