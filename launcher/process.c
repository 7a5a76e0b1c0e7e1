#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers are the same on all architectures; older C libraries have no names for them. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

int process_descriptor(pid_t process)
{
    return (int)syscall(SYS_pidfd_open, process, 0);
}

void process_signal(pid_t process, int signal, check_process *check, const void *context)
{
    int descriptor = process_descriptor(process);
    if (descriptor < 0 && errno == ESRCH)
        return;
    if (check(process, context)) {
        bool sent = descriptor >= 0 && syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 0) == 0;
        if (!sent && errno != ESRCH)
            kill(process, signal);
    }
    if (descriptor >= 0)
        close(descriptor);
}
