/* Start a target: from its job until the new program runs. */
#ifndef PERFTRAIL_SPAWN_H
#define PERFTRAIL_SPAWN_H

#include "cgroup.h"
#include "job.h"

#include <stdint.h>
#include <sys/types.h>

struct spawned {
    pid_t pid;           /* 0 if the program was not started */
    int64_t pre_ns;      /* before the clone: timeouts count from here */
    int64_t exec_ns;     /* in the child, just before execve: wall time counts from here */
    const char *stage;   /* the failed stage if it was not started: "stdin", "chdir", "exec"… */
    int error;           /* and its errno */
    int stdout_fd, stderr_fd; /* regular files whose size is checked, or -1 */
};

/* Start the job's program, in `cgroups` unless they are NULL. */
struct spawned spawn(const struct job *job, const struct cgroups *cgroups, bool limit_address_space);

/* Call this once, before the first spawn. Returns false without memory. */
bool spawn_prepare(void);

#endif
