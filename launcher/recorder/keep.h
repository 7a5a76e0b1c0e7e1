/* Keep files of a build that it may change or remove later. */
#ifndef PERFTRAIL_RECORDER_KEEP_H
#define PERFTRAIL_RECORDER_KEEP_H

#include <stdbool.h>
#include <stdint.h>

struct kept {
    int64_t size, date_ns;
    char name[160]; /* below the record's directory; empty for a file of the system, which is not copied */
};

/* Keep a regular file with its date, once for each state of it. Compilers replace objects, so these may be hard links;
 * with `copied`, nothing that the build does to the file changes what is kept. */
bool keep(const char *record, const char *path, bool copied, struct kept *kept);

#endif
