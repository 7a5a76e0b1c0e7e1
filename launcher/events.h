/* What can happen to a server: a child ends, the client speaks, the client or the guard is gone. */
#ifndef PERFTRAIL_EVENTS_H
#define PERFTRAIL_EVENTS_H

#include "input.h"

#include <stdint.h>

enum {
    EVENT_CHILD = 1,  /* some child may have ended */
    EVENT_CANCEL = 2, /* the client wants the running job killed */
    EVENT_GONE = 4,   /* nobody is left to work for: kill and leave */
};

#define NEVER INT64_MAX

struct events {
    struct input input; /* from the client, on standard input */
    int children;       /* signalfd of SIGCHLD */
    int guard;          /* a pipe whose other end only the guard holds */
    int client;         /* pidfd of the process that started us, or -1 */
    int64_t woken_ns;   /* when the last wait ended */
};

/* Wait for an event of a running job, or until a time of the monotonic clock. */
int events_wait(struct events *events, int64_t until_ns);

/* Wait for the client's next bytes between two jobs; false when it is gone. */
bool events_wait_for_input(struct events *events);

/* A descriptor that is readable once the process has ended, or -1. */
int process_descriptor(int pid);

#endif
