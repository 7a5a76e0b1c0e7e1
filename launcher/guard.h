/* The outer of the two processes: it does nothing until the inner one, the server, is dead; then it
 * kills what the server left behind, removes its cgroups and exits.
 *
 * So neither kill -9 of the server (the guard is the next subreaper: orphans are reparented to it)
 * nor of the guard (the server sees its pipe close) leaves anything running. */
#ifndef PERFTRAIL_GUARD_H
#define PERFTRAIL_GUARD_H

#include "cgroup.h"

#include <sys/types.h>

/* Wait for the server's end, or for the client's, after which the server has half a second. Returns our exit code. */
int guard_server(pid_t server, int client, struct cgroups *cgroups);

#endif
