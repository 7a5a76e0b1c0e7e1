/* Map the slots of slots.h, and look up the C library's own functions. */
#include "slots.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct head { /* at the position of the first slot */
    uint64_t taken;     /* slots in use */
    uint64_t processes; /* processes that loaded this object */
    uint64_t unused[14];
};

_Static_assert(sizeof(struct slot) == 128, "process/lock_counts.py reads it");
_Static_assert(sizeof(struct head) == sizeof(struct slot), "process/lock_counts.py reads it");

struct slot *slots;
static uint64_t slot_count;
__thread struct slot *own __attribute__((tls_model("initial-exec")));

/* If there are more threads than slots, some share the last one, and may lose counts. */
struct slot *take_slot(void)
{
    struct head *head = (struct head *)(void *)slots;
    uint64_t number = __atomic_add_fetch(&head->taken, 1, __ATOMIC_RELAXED);
    return slots + (number < slot_count ? number : slot_count - 1);
}

/* Count this process, a new one or a forked child, and give its threads new slots. */
static void count_process(void)
{
    own = NULL; /* the parent continues to use the old slot */
    __atomic_add_fetch(&((struct head *)(void *)slots)->processes, 1, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("PERFTRAIL_LOCKS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    off_t size = lseek(file, 0, SEEK_END); /* -1 if it is not a file */
    if (size >= (off_t)(2 * sizeof(struct slot))) {
        void *mapped = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) {
            slot_count = (uint64_t)size / sizeof(struct slot);
            slots = mapped;
            pthread_atfork(NULL, NULL, count_process);
            count_process();
        }
    }
    close(file);
}

/* Look functions up at their first call, not in the constructor: so a program that never waits has no cost. Signal
 * handlers may not call any counted function, so that no look-up happens in one. */
void *original(void **cached, const char *name, const char *version)
{
    void *found = __atomic_load_n(cached, __ATOMIC_ACQUIRE);
    if (!found) {
        found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
        if (!found)
            found = dlsym(RTLD_NEXT, name);
        if (!found)
            abort();
        __atomic_store_n(cached, found, __ATOMIC_RELEASE);
    }
    return found;
}
