/* perftrail-allocations.so: count a program's heap allocations, their bytes, and the bytes in use.
 *
 * It is preloaded into a target (LD_PRELOAD) and passes every call on to the C library, so that blocks and addresses
 * are those of the C library. C++'s new and Rust's allocator call these functions. Counts are those of Valgrind's
 * memcheck: a realloc of a block is an allocation of its new size. */
#include "counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
} originals; /* the next definitions of the functions below: the C library's */

/* While dlsym looks the functions up, it may itself allocate: from here, and never freed. */
static _Alignas(16) char start_memory[8192];
static size_t start_used;

static bool is_start_memory(const void *block)
{
    return (const char *)block >= start_memory && (const char *)block < start_memory + sizeof start_memory;
}

static void *take_start_memory(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > sizeof start_memory - start_used)
        return NULL;
    start_used += bytes;
    return start_memory + start_used - bytes;
}

#define LOOK_UP(name) originals.name = (__typeof__(originals.name))next_definition(#name)

static enum { UNKNOWN, CALL, HEADER } sizes; /* how to read the size of a block; another allocator's are unknown */

/* glibc stores the size of a block before it, with three flags. */
#define FLAGS ((size_t)7)
#define HAS_OWN_MAPPING ((size_t)2)

static inline int64_t size_of(void *block)
{
    if (LIKELY(sizes == HEADER)) {
        size_t header = ((size_t *)block)[-1];
        if (LIKELY(!(header & HAS_OWN_MAPPING)))
            return (int64_t)((header & ~FLAGS) - sizeof(size_t));
    }
    return UNLIKELY(sizes == UNKNOWN) ? 0 : (int64_t)originals.malloc_usable_size(block);
}

/* Reading the header instead of calling a function halves the cost of counting, where it has the expected content. */
static void choose_sizes(void)
{
    if (is_of_other_allocator(__extension__(void *)originals.malloc))
        return;
    sizes = CALL;
    void *block = originals.malloc(24);
    if (!block)
        return;
    size_t header = ((size_t *)block)[-1];
    if (!(header & HAS_OWN_MAPPING) && (header & ~FLAGS) - sizeof(size_t) == originals.malloc_usable_size(block))
        sizes = HEADER;
    originals.free(block);
}

/* The first allocation of a program happens before it has a second thread. */
static bool look_up(void)
{
    static bool begun;
    if (begun)
        return false;
    begun = true;
    __extension__({
        LOOK_UP(calloc);
        LOOK_UP(realloc);
        LOOK_UP(free);
        LOOK_UP(memalign);
        LOOK_UP(aligned_alloc);
        LOOK_UP(posix_memalign);
        LOOK_UP(valloc);
        LOOK_UP(pvalloc);
        LOOK_UP(malloc_usable_size);
        LOOK_UP(malloc);
    });
    choose_sizes();
    return true;
}

/* Return whether the functions cannot be called yet. */
static inline bool is_starting(void)
{
    return UNLIKELY(!originals.malloc) && !look_up();
}

static inline void *note(void *block, size_t bytes)
{
    if (UNLIKELY(!block))
        return block;
    struct slot *slot = own_slot();
    if (UNLIKELY(counts.stacks)) {
        if (slot->as.thread.busy)
            return block;
        add_stack(slot, bytes);
    }
    slot->as.thread.allocations++;
    slot->as.thread.bytes += bytes;
    change_live(slot, size_of(block));
    return block;
}

static inline void *allocate(size_t bytes)
{
    if (is_starting())
        return take_start_memory(bytes);
    return note(originals.malloc(bytes), bytes);
}

static inline void release(void *block)
{
    if (!block || UNLIKELY(is_start_memory(block)) || is_starting())
        return;
    change_live(own_slot(), -size_of(block));
    originals.free(block);
}

static void *reallocate(void *block, size_t bytes)
{
    if (!block)
        return allocate(bytes);
    if (is_starting())
        return NULL;
    if (UNLIKELY(is_start_memory(block))) {
        void *moved = allocate(bytes);
        size_t available = (size_t)(start_memory + sizeof start_memory - (char *)block);
        return moved ? memcpy(moved, block, bytes < available ? bytes : available) : NULL;
    }
    int64_t before = size_of(block);
    void *moved = originals.realloc(block, bytes);
    if (!moved && bytes)
        return NULL; /* the block stays as it was */
    change_live(own_slot(), -before);
    return note(moved, bytes);
}

EXPORTED void *malloc(size_t bytes)
{
    return allocate(bytes);
}

EXPORTED void *calloc(size_t number, size_t size)
{
    if (is_starting())
        return size && number > SIZE_MAX / size ? NULL : take_start_memory(number * size);
    return note(originals.calloc(number, size), number * size);
}

EXPORTED void free(void *block)
{
    release(block);
}

EXPORTED void *realloc(void *block, size_t bytes)
{
    return reallocate(block, bytes);
}

EXPORTED void *reallocarray(void *block, size_t number, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(number, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return reallocate(block, bytes);
}

/* C23's: the C library may check the size, this object does not need it. */
EXPORTED void free_sized(void *block, size_t bytes);
EXPORTED void free_sized(void *block, size_t bytes)
{
    (void)bytes;
    release(block);
}

EXPORTED void free_aligned_sized(void *block, size_t alignment, size_t bytes);
EXPORTED void free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    (void)alignment;
    (void)bytes;
    release(block);
}

EXPORTED void *memalign(size_t alignment, size_t bytes);
EXPORTED void *memalign(size_t alignment, size_t bytes)
{
    return is_starting() ? NULL : note(originals.memalign(alignment, bytes), bytes);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t bytes)
{
    return is_starting() ? NULL : note(originals.aligned_alloc(alignment, bytes), bytes);
}

EXPORTED int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (is_starting())
        return ENOMEM;
    int failed = originals.posix_memalign(block, alignment, bytes);
    if (!failed)
        note(*block, bytes);
    return failed;
}

EXPORTED void *valloc(size_t bytes)
{
    return is_starting() ? NULL : note(originals.valloc(bytes), bytes);
}

EXPORTED void *pvalloc(size_t bytes);
EXPORTED void *pvalloc(size_t bytes)
{
    return is_starting() ? NULL : note(originals.pvalloc(bytes), bytes);
}

/* Count mappings of memory. The C library's own mappings, for large blocks and stacks, do not come here; mappings
 * without access reserve addresses, not memory. */
static void *map(const char *name, void *address, size_t bytes, int access, int flags, int file, off_t offset)
{
    static void *(*original)(void *, size_t, int, int, int, off_t);
    if (!original)
        original = __extension__(__typeof__(original))next_definition(name);
    void *mapped = original(address, bytes, access, flags, file, offset);
    if (mapped != MAP_FAILED && (flags & MAP_ANONYMOUS) && access != PROT_NONE) {
        struct slot *slot = own_slot();
        slot->as.thread.mappings++;
        slot->as.thread.mapped_bytes += bytes;
    }
    return mapped;
}

EXPORTED void *mmap(void *address, size_t bytes, int access, int flags, int file, off_t offset)
{
    return map("mmap", address, bytes, access, flags, file, offset);
}

#if __SIZEOF_POINTER__ == 8
EXPORTED void *mmap64(void *address, size_t bytes, int access, int flags, int file, off64_t offset)
{
    return map("mmap", address, bytes, access, flags, file, offset);
}
#endif
