/* The mapped slots of slots.h, and how the C library's own functions are found. */
#include "slots.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct head { /* in the place of the first slot */
    uint64_t taken;     /* slots given out */
    uint64_t processes; /* that this object was loaded into */
    uint64_t unused[14];
};

_Static_assert(sizeof(struct slot) == 128, "launcher/locks.py reads it");
_Static_assert(sizeof(struct head) == sizeof(struct slot), "launcher/locks.py reads it");

struct slot *slots;
static uint64_t slot_count;
__thread struct slot *own __attribute__((tls_model("initial-exec")));

/* More threads than slots: they share the last one, and may then lose a count to each other. */
struct slot *take_slot(void)
{
    struct head *head = (struct head *)(void *)slots;
    uint64_t number = __atomic_add_fetch(&head->taken, 1, __ATOMIC_RELAXED);
    return slots + (number < slot_count ? number : slot_count - 1);
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

/* At the first call, not in the constructor: a program that never waits pays nothing. None of what is counted may be
 * called by a signal handler, so that looking a name up in one is no question. */
void *original(void **kept, const char *name, const char *version)
{
    void *found = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    if (!found) {
        found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
        if (!found)
            found = dlsym(RTLD_NEXT, name);
        if (!found)
            abort();
        __atomic_store_n(kept, found, __ATOMIC_RELEASE);
    }
    return found;
}
