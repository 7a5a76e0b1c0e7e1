/* The slots in which a program's threads count their locks and waits.
 *
 * The client creates a file with a head and slots, all zero, and names it in PERFTRAIL_LOCKS. Each thread counts into
 * its own slot, mapped from that file. So nothing has to be written at the end: _exit, exec and SIGKILL lose no count,
 * and threads do not contend for a slot. */
#ifndef PERFTRAIL_SLOTS_H
#define PERFTRAIL_SLOTS_H

#include <stdint.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

enum kind { CONDITION, BARRIER, SEMAPHORE, JOIN, SPIN, KINDS };

struct slot { /* two cache lines, one thread; process/lock_counts.py reads it */
    uint64_t locks, contended, waited_ns;
    struct {
        uint64_t number, ns;
    } waits[KINDS];
    uint64_t open_since_ns, open_kind; /* the present wait; 0 ns without one */
    uint64_t unused;
};

extern struct slot *slots; /* NULL while nothing is counted */
extern __thread struct slot *own __attribute__((tls_model("initial-exec")));

struct slot *take_slot(void);

static inline struct slot *own_slot(void)
{
    if (!own && slots)
        own = take_slot();
    return own;
}

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Return the C library's own function of a name, in a version if it exists, and cache it in *cached. ISO C has no
 * conversion from an object pointer to a function pointer. */
void *original(void **cached, const char *name, const char *version);

#define ORIGINAL_OF(name, version)                         \
    __extension__({                                        \
        static void *cached;                                 \
        (__typeof__(&name))original(&cached, #name, version); \
    })
#define ORIGINAL(name) ORIGINAL_OF(name, NULL)

#endif
