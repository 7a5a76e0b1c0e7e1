/* The keys of a job line, and the parsers of their values. */
#include "job_keys.h"

#include "text.h"

#include <string.h>

static const char *read_id(struct job *job, char *value)
{
    size_t length = strlen(value);
    if (length == 0 || length > LONGEST_ID)
        return "id: must have 1 to 64 characters";
    for (const char *byte = value; *byte; byte++)
        if (*byte <= ' ' || *byte > '~')
            return "id: must be printable ASCII without spaces";
    memcpy(job->id, value, length + 1);
    return NULL;
}

static const char *read_program(struct job *job, char *value) { job->program = value; return NULL; }
static const char *read_directory(struct job *job, char *value) { job->directory = value; return NULL; }
static const char *read_stdin(struct job *job, char *value) { job->stdin_path = value; return NULL; }
static const char *read_stdout(struct job *job, char *value) { job->stdout_path = value; return NULL; }
static const char *read_stderr(struct job *job, char *value) { job->stderr_path = value; return NULL; }

/* A whole value that is one decimal number, or -1. With at most 18 digits, a few of them can be added. */
static int64_t whole_number(const char *value)
{
    size_t digits = strspn(value, "0123456789");
    return digits > 0 && digits < 19 && value[digits] == '\0' ? number_in(value) : -1;
}

static const char *read_number(const char *value, int64_t *into, const char *complaint)
{
    *into = whole_number(value);
    return *into >= 0 ? NULL : complaint;
}

static const char *read_output_cap(struct job *job, char *value)
{
    return read_number(value, &job->output_cap_bytes, "output_cap: must be a number of bytes");
}

static const char *read_timeout(struct job *job, char *value)
{
    return read_number(value, &job->timeout_ns, "timeout_ns: must be a number of nanoseconds");
}

static const char *read_process_limit(struct job *job, char *value)
{
    return read_number(value, &job->process_limit, "process_limit: must be a number of processes");
}

/* The limit applies to the child before it executes the program: the new program's first pages (arguments,
 * environment) must fit in any case. */
static const char *read_memory_limit(struct job *job, char *value)
{
    const char *wrong =
        read_number(value, &job->memory_limit_bytes, "memory_limit: must be a number of bytes");
    if (!wrong && job->memory_limit_bytes > 0 && job->memory_limit_bytes < (1 << 20))
        wrong = "memory_limit: must be at least 1048576 bytes";
    return wrong;
}

#define MOST_CPUS ((int64_t)sizeof(cpu_set_t) * 8) /* older musl has a wrong CPU_SETSIZE */

typedef void add_number(struct job *job, int64_t number);

/* `0,2,4-7`. Return false for another text, or for a number that is too large. */
static bool read_list(struct job *job, const char *value, int64_t most, add_number *add)
{
    for (const char *at = value;; at++) {
        size_t digits = strspn(at, "0123456789");
        int64_t first = digits < 6 ? number_in(at) : -1, last = first;
        at += digits;
        if (first >= 0 && *at == '-') {
            digits = strspn(++at, "0123456789");
            last = digits < 6 ? number_in(at) : -1;
            at += digits;
        }
        if (first < 0 || last < first || last >= most || (*at != ',' && *at != '\0'))
            return false;
        for (; first <= last; first++)
            add(job, first);
        if (*at == '\0')
            return true;
    }
}

static void add_cpu(struct job *job, int64_t number) { CPU_SET((size_t)number, &job->cpus); }

static const char *read_cpus(struct job *job, char *value)
{
    if (strcmp(value, "none") == 0)
        return NULL;
    CPU_ZERO(&job->cpus);
    job->cpus_chosen = true;
    return read_list(job, value, MOST_CPUS, add_cpu) ? NULL : "cpus: must be none or a list such as 0,2,4-7";
}

#define BITS_OF_WORD (8 * sizeof(unsigned long))

static void add_node(struct job *job, int64_t number)
{
    job->numa_nodes[(size_t)number / BITS_OF_WORD] |= 1ul << (size_t)number % BITS_OF_WORD;
}

static const char *read_numa(struct job *job, char *value)
{
    job->numa_chosen = true;
    return read_list(job, value, MOST_NUMA_NODES, add_node) ? NULL : "numa: must be a list such as 0,2-3";
}

static const char *read_nice(struct job *job, char *value)
{
    bool negative = *value == '-';
    int64_t number = whole_number(value + negative);
    if (number < 0 || number > 20 - !negative)
        return "nice: must be a number from -20 to 19";
    job->nice_chosen = true;
    job->nice = negative ? -(int)number : (int)number;
    return NULL;
}

struct choice {
    const char *name;
    int value;
};

static bool choose(const struct choice *choices, const char *value, int *into)
{
    for (; choices->name; choices++)
        if (strcmp(choices->name, value) == 0) {
            *into = choices->value;
            return true;
        }
    return false;
}

static const struct choice on_or_off[] = {{"on", 1}, {"off", 0}, {NULL, 0}};

static const char *read_aslr(struct job *job, char *value)
{
    int chosen;
    if (!choose(on_or_off, value, &chosen))
        return "aslr: must be on or off";
    job->aslr = chosen;
    return NULL;
}

static const char *read_counters(struct job *job, char *value)
{
    int chosen;
    if (!choose(on_or_off, value, &chosen))
        return "counters: must be on or off";
    job->counters = chosen;
    return NULL;
}

static const char *read_orphans(struct job *job, char *value)
{
    static const struct choice choices[] = {
        {"wait", ORPHANS_WAIT}, {"kill", ORPHANS_KILL}, {"terminate", ORPHANS_TERMINATE}, {NULL, 0}};
    int chosen;
    if (!choose(choices, value, &chosen))
        return "orphans: must be wait, kill or terminate";
    job->orphans = (enum orphans)chosen;
    return NULL;
}

static const char *read_tree_memory(struct job *job, char *value)
{
    static const struct choice choices[] = {
        {"auto", TREE_AUTO}, {"sampled", TREE_SAMPLED}, {"off", TREE_OFF}, {NULL, 0}};
    int chosen;
    if (!choose(choices, value, &chosen))
        return "tree_memory: must be auto, sampled or off";
    job->tree_memory = (enum tree_memory)chosen;
    return NULL;
}

/* `nofile:1024`, `core:unlimited` */
static const char *read_limit(struct job *job, char *value)
{
    static const struct choice names[] = {
        {"as", RLIMIT_AS}, {"core", RLIMIT_CORE}, {"cpu", RLIMIT_CPU}, {"data", RLIMIT_DATA},
        {"fsize", RLIMIT_FSIZE}, {"memlock", RLIMIT_MEMLOCK}, {"nofile", RLIMIT_NOFILE},
        {"nproc", RLIMIT_NPROC}, {"stack", RLIMIT_STACK}, {NULL, 0}};
    char *colon = strchr(value, ':');
    if (!colon)
        return "rlimit: must be NAME:NUMBER or NAME:unlimited";
    *colon = '\0';
    struct job_limit limit;
    if (!choose(names, value, &limit.resource))
        return "rlimit: the name must be as, core, cpu, data, fsize, memlock, nofile, nproc or stack";
    int64_t number = whole_number(colon + 1);
    if (number < 0 && strcmp(colon + 1, "unlimited") != 0)
        return "rlimit: the value must be a number or unlimited";
    limit.value = number < 0 ? RLIM_INFINITY : (rlim_t)number;
    if (job->limit_count == MOST_LIMITS)
        return "rlimit: too many limits";
    job->limits[job->limit_count++] = limit;
    return NULL;
}

static const struct job_key keys[] = {
    {"id", read_id, false},
    {"program", read_program, false},
    {"cwd", read_directory, false},
    {"stdin", read_stdin, false},
    {"stdout", read_stdout, false},
    {"stderr", read_stderr, false},
    {"output_cap", read_output_cap, false},
    {"timeout_ns", read_timeout, false},
    {"memory_limit", read_memory_limit, false},
    {"process_limit", read_process_limit, false},
    {"cpus", read_cpus, false},
    {"nice", read_nice, false},
    {"numa", read_numa, false},
    {"aslr", read_aslr, false},
    {"orphans", read_orphans, false},
    {"tree_memory", read_tree_memory, false},
    {"counters", read_counters, false},
    {"rlimit", read_limit, true},
};

const struct job_key *job_key_named(const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

int job_key_number(const struct job_key *key)
{
    return (int)(key - keys);
}
