/* The outer of the two processes: it waits until the inner one, the server, ends; then it kills the
 * remaining processes, removes the cgroups and exits.
 *
 * So no process survives a kill -9 of the server (the guard is the next subreaper: orphans are reparented to
 * it) or of the guard (the server sees its pipe close). */
#ifndef PERFTRAIL_GUARD_H
#define PERFTRAIL_GUARD_H

#include "cgroup.h"

#include <sys/types.h>

/* Wait for the end of the server or of the client; after the client's, wait half a second for the server's. Return the
 * exit code. */
int guard_server(pid_t server, int client, struct cgroups *cgroups);

#endif
