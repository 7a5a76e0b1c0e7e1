/* Where a program's threads count what they do with locks, and where they wait for each other.
 *
 * The client made a file, a head and then slots, all zero, and names it in PERFTRAIL_LOCKS. Each thread counts into a slot
 * of its own, mapped from that file, so that nothing has to be written at the end: _exit, exec and SIGKILL lose no count,
 * and threads do not contend for it. */
#ifndef PERFTRAIL_SLOTS_H
#define PERFTRAIL_SLOTS_H

#include <stdint.h>
#include <time.h>

#define FOR_USE __attribute__((visibility("default")))

enum kind { CONDITION, BARRIER, SEMAPHORE, JOIN, SPIN, KINDS };

struct slot { /* two cache lines, one thread; launcher/locks.py reads it */
    uint64_t locks, contended, waited_ns;
    struct {
        uint64_t number, ns;
    } waits[KINDS];
    uint64_t open_since_ns, open_kind; /* the wait that goes on; no time where none does */
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

/* The C library's own function of that name, of that version where it has one. It is kept in *kept. ISO C has no way
 * from an object pointer to a function's. */
void *original(void **kept, const char *name, const char *version);

#define ORIGINAL_OF(name, version)                         \
    __extension__({                                        \
        static void *kept;                                 \
        (__typeof__(&name))original(&kept, #name, version); \
    })
#define ORIGINAL(name) ORIGINAL_OF(name, NULL)

#endif
