/* Ending a whole tree, certainly. */
#ifndef PERFTRAIL_KILL_H
#define PERFTRAIL_KILL_H

#include "cgroup.h"

#include <stdbool.h>

/* Reap what has ended; true once this process has no child at all, which (it being a subreaper)
 * proves that it has no descendant either. */
typedef bool reap_children(void *context);

/* Kill every descendant and every member of the cgroups until `reap` says that none is left. */
void kill_tree(const struct cgroups *cgroups, reap_children *reap, void *context);

#endif
