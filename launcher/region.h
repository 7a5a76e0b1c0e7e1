/* Memory that grows and is returned to the kernel.
 *
 * There is no malloc here: a child's peak memory is never below its parent's at exec. So memory that the
 * launcher needed for a long job line must not stay resident and raise later peaks. Memory that every job
 * needs stays: the kernel counts pages by CPU and sums them in steps of 32, so that pages released on another
 * CPU than they were allocated on would add up to 128 KiB in every peak. */
#ifndef PERFTRAIL_REGION_H
#define PERFTRAIL_REGION_H

#include <stdbool.h>
#include <stddef.h>

struct region {
    char *start;
    size_t size;
};

/* Enlarge the region to at least `size` bytes; its contents stay, its address may change. */
bool region_reserve(struct region *region, size_t size);

/* Return all memory to the kernel. */
void region_release(struct region *region);

/* If the region is larger than an ordinary job needs, return it all to the kernel, and reset the peak. */
void region_trim(struct region *region);

/* Return the pages of a page-aligned array to the kernel; they are zero at the next access. */
void pages_release(void *start, size_t size);

/* Return the stack pages of earlier, deeper calls to the kernel. */
void stack_release(void);

/* Reset the launcher's own peak resident size: after an exceptionally long line it would be the lower limit
 * of every later peak. */
void forget_peak(void);

#endif
