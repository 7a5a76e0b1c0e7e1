/* Kill a whole tree. */
#ifndef PERFTRAIL_KILL_H
#define PERFTRAIL_KILL_H

#include "cgroup.h"

#include <stdbool.h>

/* Reap ended children; return true if this process has no child. As it is a subreaper, it then has no
 * descendant either. */
typedef bool reap_children(void *context);

/* Kill every descendant and every member of the cgroups until `reap` returns true. Return false if processes remain
 * after half a minute: the kernel does not end a process that waits for a device, or is frozen. */
bool kill_tree(const struct cgroups *cgroups, reap_children *reap, void *context);

#endif
