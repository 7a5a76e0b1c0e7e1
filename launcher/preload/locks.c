/* perftrail-locks.so: counts what a program's threads do with pthread mutexes and read-write locks.
 *
 * Preloaded into a target (LD_PRELOAD) with PERFTRAIL_LOCKS naming a file that the client made: a head and
 * then slots, all zero. Each thread counts into a slot of its own, mapped from that file, so that nothing
 * has to be written at the end: _exit, exec and SIGKILL lose no count, and threads do not contend for it.
 *
 * A lock is tried first. Only when it is held does it cost two looks at the clock. What is not seen: locks
 * inside the C library (malloc, stdio), taking a mutex again after a condition variable, futexes that a
 * program uses by itself (Go, Rust's std::sync), and programs that are static or not glibc's. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOR_USE __attribute__((visibility("default")))

struct slot { /* one cache line, one thread */
    uint64_t locks, contended, waited_ns, unused[5];
};

struct head { /* in the place of the first slot */
    uint64_t taken;     /* slots given out */
    uint64_t processes; /* that this object was loaded into */
    uint64_t unused[6];
};

static struct slot *slots; /* NULL while nothing is counted */
static uint64_t slot_count;
static __thread struct slot *own __attribute__((tls_model("initial-exec")));

/* More threads than slots: they share the last one, and may then lose a count to each other. */
static struct slot *take_slot(void)
{
    struct head *head = (struct head *)(void *)slots;
    uint64_t number = __atomic_add_fetch(&head->taken, 1, __ATOMIC_RELAXED);
    return slots + (number < slot_count ? number : slot_count - 1);
}

static struct slot *own_slot(void)
{
    if (!own && slots)
        own = take_slot();
    return own;
}

static void start_anew(void)
{
    own = NULL; /* the parent goes on counting into the slot that was ours */
    if (slots)
        __atomic_add_fetch(&((struct head *)(void *)slots)->processes, 1, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("PERFTRAIL_LOCKS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    struct stat status;
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && (size_t)status.st_size >= 2 * sizeof(struct slot)) {
        void *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) {
            slot_count = (uint64_t)status.st_size / sizeof(struct slot);
            slots = mapped;
            pthread_atfork(NULL, NULL, start_anew);
            start_anew();
        }
    }
    close(file);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The C library's own function of that name. ISO C has no way from an object pointer to a function's. */
static void *original(void **kept, const char *name)
{
    void *found = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    if (!found) {
        found = dlsym(RTLD_NEXT, name);
        if (!found)
            abort();
        __atomic_store_n(kept, found, __ATOMIC_RELEASE);
    }
    return found;
}

#define ORIGINAL(name)                                      \
    __extension__({                                         \
        static void *kept;                                  \
        (__typeof__(&name))original(&kept, #name);          \
    })

static bool is_taken(int result)
{
    return result == 0 || result == EOWNERDEAD;
}

/* A try found the lock held. */
static void note_contended(void)
{
    struct slot *slot = own_slot();
    if (slot)
        slot->contended++;
}

static int note_lock(int result)
{
    struct slot *slot = own_slot();
    if (slot && is_taken(result))
        slot->locks++;
    return result;
}

static void note_wait(uint64_t since_ns)
{
    struct slot *slot = own_slot();
    if (slot)
        slot->waited_ns += now_ns() - since_ns;
}

/* Try; where that finds the lock held, wait with the program's own call. */
#define LOCK(try, wait)                  \
    int result = (try);                  \
    if (result == EBUSY) {               \
        uint64_t since_ns = now_ns();    \
        note_contended();                \
        result = (wait);                 \
        note_wait(since_ns);             \
    }                                    \
    return note_lock(result)

#define TRY(try)                         \
    int result = (try);                  \
    if (result == EBUSY)                 \
        note_contended();                \
    return note_lock(result)

FOR_USE int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    LOCK(ORIGINAL(pthread_mutex_trylock)(mutex), ORIGINAL(pthread_mutex_lock)(mutex));
}

FOR_USE int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    TRY(ORIGINAL(pthread_mutex_trylock)(mutex));
}

FOR_USE int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    LOCK(ORIGINAL(pthread_mutex_trylock)(mutex), ORIGINAL(pthread_mutex_timedlock)(mutex, until));
}

FOR_USE int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    LOCK(ORIGINAL(pthread_rwlock_tryrdlock)(lock), ORIGINAL(pthread_rwlock_rdlock)(lock));
}

FOR_USE int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    LOCK(ORIGINAL(pthread_rwlock_trywrlock)(lock), ORIGINAL(pthread_rwlock_wrlock)(lock));
}

FOR_USE int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    TRY(ORIGINAL(pthread_rwlock_tryrdlock)(lock));
}

FOR_USE int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    TRY(ORIGINAL(pthread_rwlock_trywrlock)(lock));
}

#if __GLIBC_PREREQ(2, 30)
FOR_USE int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    LOCK(ORIGINAL(pthread_mutex_trylock)(mutex), ORIGINAL(pthread_mutex_clocklock)(mutex, clock, until));
}
#endif
