/* Fuzz job.c and job_keys.c: any line either gives a job, whose vectors end with NULL, or an error message. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct region slots;
    struct job job;
    char *line = malloc(size + 1);
    if (!line)
        return 0;
    if (size)
        memcpy(line, data, size);
    line[size] = '\0';
    if (!job_parse(&job, line, size, &slots)) {
        size_t used = 0;
        if (!job.id[0] || !job.arguments[0] || !job.program)
            abort();
        for (char **at = job.arguments; *at; at++)
            used += strlen(*at) + 1;
        for (char **at = job.environment; *at; at++) {
            if (!strchr(*at, '='))
                abort();
            used += strlen(*at) + 1;
        }
        if (used > size + 1 || job.limit_count > MOST_LIMITS)
            abort();
    }
    free(line);
    return 0;
}
