/* Processes by descriptor: after a process has ended, another one may get its pid. */
#ifndef PERFTRAIL_PROCESS_H
#define PERFTRAIL_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* A descriptor that is readable once the process has ended; -1 if there is no such process, or the kernel has no pidfd. */
int process_descriptor(pid_t process);

typedef bool check_process(pid_t process, const void *context);

/* Send a signal to the process that now has this pid, if `check` accepts it. Where the kernel has pidfd, the signal
 * cannot reach a process that gets the pid later. */
void process_signal(pid_t process, int signal, check_process *check, const void *context);

#endif
