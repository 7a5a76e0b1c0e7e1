/* The keys of a job line that stand alone; `arg` and `env` make vectors and are read in job.c. */
#ifndef PERFTRAIL_JOB_KEYS_H
#define PERFTRAIL_JOB_KEYS_H

#include "job.h"

struct job_key {
    const char *name;
    const char *(*read)(struct job *job, char *value); /* NULL, or what is wrong with the value */
    bool repeats;
};

const struct job_key *job_key_named(const char *name);

/* A small number of its own for each key. */
int job_key_number(const struct job_key *key);

#endif
