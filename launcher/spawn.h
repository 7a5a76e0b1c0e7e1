/* Starting a target: everything between "it has a job" and "the new program runs". */
#ifndef PERFTRAIL_SPAWN_H
#define PERFTRAIL_SPAWN_H

#include "cgroup.h"
#include "job.h"

#include <stdint.h>
#include <sys/types.h>

struct spawned {
    pid_t pid;           /* 0 when the program was not started */
    int64_t pre_ns;      /* before the clone: timeouts count from here */
    int64_t exec_ns;     /* in the child, just before execve: wall time counts from here */
    const char *stage;   /* what failed when it was not started: "stdin", "chdir", "exec"… */
    int error;           /* and the errno of it */
    int stdout_fd, stderr_fd; /* regular files to be watched for their size, or -1 */
};

/* Start the job's program. `cgroups` are entered when not NULL. */
struct spawned spawn(const struct job *job, const struct cgroups *cgroups, bool limit_address_space);

/* To be called once, before the first spawn. False when there is no memory. */
bool spawn_prepare(void);

#endif
