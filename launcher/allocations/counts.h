/* The file in which a program's threads count their allocations.
 *
 * The client creates a file with a head and slots, all zero, and names it in PERFTRAIL_ALLOCATIONS. Each process and
 * each of its threads counts into its own slot, mapped from that file. So nothing has to be written at the end:
 * _exit, exec and SIGKILL lose no count. */
#ifndef PERFTRAIL_COUNTS_H
#define PERFTRAIL_COUNTS_H

#include <features.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

struct head {           /* at the position of the first slot; process/allocation_counts.py reads it */
    uint64_t taken;     /* slots in use */
    uint64_t images;    /* programs that loaded this object */
    uint64_t started;   /* programs that these started by exec and posix_spawn */
    /* Set by the client: numbers of entries of the tables, in this order, and a seed, not 0, for samples. */
    uint64_t slots, stacks, modules, seed;
    uint64_t lost_stacks; /* allocations whose stack has no entry, because the table is full */
    uint64_t module_count;
    uint64_t unused[7];
};

enum kind { THREAD = 1, PROCESS = 2 };

struct slot { /* two cache lines; process/allocation_counts.py reads it */
    uint64_t kind;
    union {
        struct {
            uint64_t allocations, bytes;        /* bytes as the program requested them */
            uint64_t mappings, mapped_bytes;    /* anonymous mappings that the program requested itself */
            int64_t pending;                    /* bytes in use that are not yet part of the process's */
            int64_t batch;                      /* limit of pending bytes, if the process has several threads */
            uint64_t until_stack;               /* allocations until the next one whose stack is stored */
            uint64_t stacks, random;            /* stored stacks, and the state of their random numbers */
            uint64_t busy;                      /* 1: a stack is being stored; allocations are not the program's */
        } thread;
        struct {
            int64_t live, peak;       /* bytes in use, as the allocator rounded them */
            uint64_t other_allocator; /* 1: the program has its own functions of these names */
        } process;
        uint64_t words[15];
    } as;
};

struct counts { /* what this process counts into */
    struct head *head;    /* NULL while nothing is counted */
    struct slot *process;
    bool stacks;
};

#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#else
extern char single_threaded; /* false from the first allocation of a second thread */
#define SINGLE_THREADED single_threaded
#endif

extern struct counts counts;
extern __thread struct slot *own __attribute__((tls_model("initial-exec")));

struct slot *take_thread(void);
void publish(struct slot *slot);

static inline struct slot *own_slot(void)
{
    struct slot *slot = own;
    return UNLIKELY(!slot) ? take_thread() : slot;
}

/* Add bytes in use, or subtract them. A single thread knows the peak exactly; several publish batches, so that they do
 * not contend for the process's slot: then the peak is exact to one batch for each running thread. */
static inline void change_live(struct slot *slot, int64_t bytes)
{
    int64_t pending = slot->as.thread.pending + bytes;
    if (SINGLE_THREADED) {
        struct slot *process = counts.process;
        slot->as.thread.pending = 0;
        int64_t live = process->as.process.live += pending;
        if (live > process->as.process.peak)
            process->as.process.peak = live;
        return;
    }
    slot->as.thread.pending = pending;
    if (UNLIKELY(pending > slot->as.thread.batch || pending < -slot->as.thread.batch))
        publish(slot);
}

/* Stacks are stored if the client asked for them: of every allocation of a thread's first ones, then of a random sample. */
struct stack { /* process/allocation_counts.py reads it */
    uint64_t hash;               /* 0: unused; equal for equal stacks of one process */
    uint64_t process;            /* number of the process's slot */
    uint64_t allocations, bytes; /* each sample counts for the allocations that it represents */
    uint64_t depth;
    uint64_t frames[27]; /* addresses of calls, the innermost first */
};

struct module { /* a program or library in which a stored address lies */
    uint64_t process;
    uint64_t base; /* what to subtract from an address for the position in the file */
    uint64_t first, last;
    char path[480];
};

void begin_stacks(struct stack *stacks, struct module *modules);
void add_stack(struct slot *slot, size_t bytes);

/* Return the definition of a function that follows that of this object: the C library's. */
void *next_definition(const char *name);

/* Return whether a function belongs to another object than the C library. */
bool is_of_other_allocator(void *function);

#endif
