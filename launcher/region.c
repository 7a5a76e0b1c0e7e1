#include "region.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)
#define KEPT_BETWEEN_JOBS ((size_t)16384)
#define STACK_PAGES 16 /* more than the deepest call uses */

bool region_reserve(struct region *region, size_t size)
{
    if (size <= region->size)
        return true;
    size_t wanted = region->size ? region->size : 4096;
    while (wanted < size)
        wanted *= 2;
    void *start = region->size
        ? mremap(region->start, region->size, wanted, MREMAP_MAYMOVE)
        : mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return false;
    region->start = start;
    region->size = wanted;
    return true;
}

void region_release(struct region *region)
{
    munmap(region->start, region->size);
    region->start = NULL;
    region->size = 0;
}

void region_trim(struct region *region)
{
    if (region->size <= KEPT_BETWEEN_JOBS)
        return;
    region_release(region);
    forget_peak();
}

void pages_release(void *start, size_t size)
{
    madvise(start, size, MADV_DONTNEED);
}

/* The page below the current one stays: the call that releases the others may use it. */
void stack_release(void)
{
    char here;
    uintptr_t page = (uintptr_t)&here / PAGE * PAGE;
    pages_release((void *)(page - (STACK_PAGES + 1) * PAGE), STACK_PAGES * PAGE);
}

void forget_peak(void)
{
    int descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    ssize_t ignored = write(descriptor, "5", 1); /* proc(5): resets VmHWM */
    (void)ignored;
    close(descriptor);
}
