/* Memory that grows and is given back to the kernel.
 *
 * There is no malloc here: a child's peak memory is never below its parent's at exec, so what the
 * launcher once held for a long job line must not stay resident and show up in later figures. What
 * every job needs stays: the kernel counts pages by CPU and sums them in steps of 32, so that pages
 * given back on another CPU than they were taken on would add up to a floor of 128 KiB. */
#ifndef PERFTRAIL_REGION_H
#define PERFTRAIL_REGION_H

#include <stdbool.h>
#include <stddef.h>

struct region {
    char *start;
    size_t size;
};

/* Make the region at least `size` bytes; its contents stay, its address may change. */
bool region_reserve(struct region *region, size_t size);

/* Give everything back. */
void region_release(struct region *region);

/* Give everything back, and forget the peak, if it is more than an ordinary job needs. */
void region_trim(struct region *region);

/* Give back the pages of a page-aligned array; they are zero when next touched. */
void pages_release(void *start, size_t size);

/* Give back the stack that deeper calls have used and left. */
void stack_release(void);

/* Forget the high-water mark of our own resident size: after an exceptionally long line it would
 * be the floor of every later figure. */
void forget_peak(void);

#endif
