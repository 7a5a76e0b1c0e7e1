/* Whole numbers of any size that a double's digits need. */
#ifndef BIG_H
#define BIG_H

#include <stdint.h>

enum { BIG_PARTS = 36 };   /* 1152 bits: 2^1074 and a little */

struct big { uint32_t part[BIG_PARTS]; };

void big_set(struct big *number, uint64_t value);
void big_multiply(struct big *number, uint32_t factor);
void big_shift(struct big *number, int bits);
void big_add(struct big *sum, const struct big *a, const struct big *b);
void big_subtract(struct big *number, const struct big *less);
int big_compare(const struct big *a, const struct big *b);

#endif
