/* Map the file of counts.h, and give processes and threads their slots. */
#include "counts.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct slot) == 128, "process/allocation_counts.py reads it");
_Static_assert(sizeof(struct head) == sizeof(struct slot), "process/allocation_counts.py reads it");
_Static_assert(sizeof(struct stack) == 256, "process/allocation_counts.py reads it");
_Static_assert(sizeof(struct module) == 512, "process/allocation_counts.py reads it");

#define BATCH_BYTES 65536

/* Before the constructor there is one thread, the dynamic linker's or another constructor's. */
static struct slot early_thread = {.kind = THREAD}, early_process = {.kind = PROCESS};
struct counts counts = {.process = &early_process};
__thread struct slot *own __attribute__((tls_model("initial-exec")));
#if !__GLIBC_PREREQ(2, 32)
char single_threaded = true;
#endif
static pthread_key_t end_of_thread;
static bool sees_ends;

static struct slot *slots(void)
{
    return (struct slot *)(void *)counts.head;
}

/* If there are more threads than slots, some share the last one; the client then reports no count. */
static struct slot *take(enum kind kind)
{
    uint64_t number = __atomic_add_fetch(&counts.head->taken, 1, __ATOMIC_RELAXED);
    uint64_t last = counts.head->slots - 1;
    struct slot *slot = slots() + (number < last ? number : last);
    slot->kind = kind;
    return slot;
}

static void begin_thread(struct slot *slot)
{
    slot->as.thread.batch = BATCH_BYTES;
    slot->as.thread.until_stack = 1;
    slot->as.thread.random = counts.head->seed + (uint64_t)(slot - slots());
}

struct slot *take_thread(void)
{
    if (!counts.head)
        return &early_thread;
    struct slot *slot = take(THREAD);
    begin_thread(slot);
    own = slot;
#if !__GLIBC_PREREQ(2, 32)
    single_threaded = false;
#endif
    if (sees_ends)
        pthread_setspecific(end_of_thread, slot); /* may allocate */
    return slot;
}

/* Let the process know a thread's bytes in use. */
void publish(struct slot *slot)
{
    struct slot *process = counts.process;
    int64_t live = __atomic_add_fetch(&process->as.process.live, slot->as.thread.pending, __ATOMIC_RELAXED);
    slot->as.thread.pending = 0;
    int64_t peak = __atomic_load_n(&process->as.process.peak, __ATOMIC_RELAXED);
    while (live > peak && !__atomic_compare_exchange_n(&process->as.process.peak, &peak, live, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

/* Publish what an ending thread has in use. Other destructors and the C library may free more later. */
static void end_thread(void *ended)
{
    struct slot *slot = ended;
    slot->as.thread.batch = 0;
    publish(slot);
}

/* A forked child has one thread and its parent's memory; it counts for itself. */
static void begin_child(void)
{
    int64_t live = counts.process->as.process.live + (own ? own->as.thread.pending : 0);
    struct slot *parent = counts.process;
    counts.process = take(PROCESS);
    counts.process->as.process.live = counts.process->as.process.peak = live;
    counts.process->as.process.other_allocator = parent->as.process.other_allocator;
    own = NULL;
    take_thread();
#if !__GLIBC_PREREQ(2, 32)
    single_threaded = true;
#endif
}

static void *base_of(void *address)
{
    Dl_info found;
    return dladdr(address, &found) ? found.dli_fbase : NULL;
}

void *next_definition(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

bool is_of_other_allocator(void *function)
{
    return base_of(function) != base_of(__extension__(void *)gnu_get_libc_version);
}

/* Return whether another object's malloc comes first, or follows this object's instead of the C library's. The
 * address of a function may be that of a program's linkage table, which is not a definition. */
static bool has_other_allocator(void)
{
    Dl_info object;
    const ElfW(Sym) *symbol = NULL;
    void *first = dlsym(RTLD_DEFAULT, "malloc");
    if (!first || !dladdr1(first, &object, (void **)(void *)&symbol, RTLD_DL_SYMENT))
        return true;
    if (object.dli_fbase != base_of(&counts) && symbol && symbol->st_shndx != SHN_UNDEF)
        return true;
    return is_of_other_allocator(next_definition("malloc"));
}

/* Return whether a file has the size of its tables. */
static bool fits(const struct head *head, uint64_t size)
{
    uint64_t most = (uint64_t)1 << 32;
    return head->slots >= 3 && head->slots < most && head->stacks < most && head->modules < most &&
           head->slots * sizeof(struct slot) + head->stacks * sizeof(struct stack) +
                   head->modules * sizeof(struct module) <=
               size;
}

__attribute__((constructor(101))) static void begin(void)
{
    const char *path = getenv("PERFTRAIL_ALLOCATIONS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    off_t size = lseek(file, 0, SEEK_END); /* -1 if it is not a file */
    void *mapped = size < (off_t)(3 * sizeof(struct slot))
                       ? MAP_FAILED
                       : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return;
    if (!fits(mapped, (uint64_t)size)) {
        munmap(mapped, (size_t)size);
        return;
    }
    bool other = has_other_allocator();
    sees_ends = pthread_key_create(&end_of_thread, end_thread) == 0;
    counts.head = mapped;
    __atomic_add_fetch(&counts.head->images, 1, __ATOMIC_RELAXED);
    struct slot *process = take(PROCESS);
    process->as.process = early_process.as.process;
    process->as.process.other_allocator = other;
    counts.process = process;
    struct slot *thread = take(THREAD);
    thread->as.thread = early_thread.as.thread;
    begin_thread(thread);
    own = thread;
    char *stacks = (char *)(slots() + counts.head->slots);
    if (counts.head->stacks)
        begin_stacks((struct stack *)(void *)stacks,
                     (struct module *)(void *)(stacks + counts.head->stacks * sizeof(struct stack)));
    pthread_atfork(NULL, NULL, begin_child);
}
