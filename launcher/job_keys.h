/* The keys of a job line except `arg` and `env`, which job.c reads into vectors. */
#ifndef PERFTRAIL_JOB_KEYS_H
#define PERFTRAIL_JOB_KEYS_H

#include "job.h"

struct job_key {
    const char *name;
    const char *(*read)(struct job *job, char *value); /* returns NULL, or an error message */
    bool repeats;
};

const struct job_key *job_key_named(const char *name);

/* A different small number for each key. */
int job_key_number(const struct job_key *key);

#endif
