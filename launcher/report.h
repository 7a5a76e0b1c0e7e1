/* Lines to the client: one JSON line for each event. */
#ifndef PERFTRAIL_REPORT_H
#define PERFTRAIL_REPORT_H

#include "run.h"

/* Each writes one line to standard output, and returns false if its reading end is closed. */
bool report_hello(const struct cgroups *cgroups, pid_t guard);
bool report_error(const char *id, const char *message);
void report_fatal(const char *id, const char *message); /* the launcher ends after it */
bool report_run(const struct run *run);

#endif
