/* Events of a server: a child ends, the client sends a line, the client or the guard ends. */
#ifndef PERFTRAIL_EVENTS_H
#define PERFTRAIL_EVENTS_H

#include "input.h"

#include <stdint.h>

enum {
    EVENT_CHILD = 1,  /* some child may have ended */
    EVENT_CANCEL = 2, /* the client requests the end of the running job */
    EVENT_SIGNAL = 8, /* the client requests a signal to the program of the running job */
    EVENT_GONE = 4,   /* the client or the guard ended: kill the job and exit */
};

#define NEVER INT64_MAX

struct events {
    struct input input; /* from the client, on standard input */
    int children;       /* signalfd of SIGCHLD */
    int guard;          /* a pipe whose other end is open only in the guard */
    int client;         /* pidfd of the process that started the launcher, or -1 */
    int signal;         /* of the last EVENT_SIGNAL */
    int64_t woken_ns;   /* when the last wait ended */
};

/* Wait for an event of a running job, or until a time of the monotonic clock. */
int events_wait(struct events *events, int64_t until_ns);

/* Wait for the client's next bytes between two jobs; return false if the client ended. */
bool events_wait_for_input(struct events *events);

#endif
