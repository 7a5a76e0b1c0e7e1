/* What the client is told: one JSON line for each event. */
#ifndef PERFTRAIL_REPORT_H
#define PERFTRAIL_REPORT_H

#include "run.h"

/* Each writes one line to standard output; false when nobody reads any more. */
bool report_hello(const struct cgroups *cgroups, pid_t guard);
bool report_error(const char *id, const char *message);
bool report_run(const struct run *run);

#endif
