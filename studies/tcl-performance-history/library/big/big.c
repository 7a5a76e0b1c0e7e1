/* Whole numbers of any size that a double's digits need. */
#include "big.h"

#include <string.h>

void big_set(struct big *number, uint64_t value)
{
    memset(number, 0, sizeof *number);
    number->part[0] = (uint32_t)value;
    number->part[1] = (uint32_t)(value >> 32);
}

void big_multiply(struct big *number, uint32_t factor)
{
    uint64_t carry = 0;
    for (int each = 0; each < BIG_PARTS; each++) {
        carry += (uint64_t)number->part[each] * factor;
        number->part[each] = (uint32_t)carry;
        carry >>= 32;
    }
}

void big_shift(struct big *number, int bits)
{
    for (; bits >= 31; bits -= 31) {
        big_multiply(number, 1u << 31);
    }
    big_multiply(number, 1u << bits);
}

void big_add(struct big *sum, const struct big *a, const struct big *b)
{
    uint64_t carry = 0;
    for (int each = 0; each < BIG_PARTS; each++) {
        carry += (uint64_t)a->part[each] + b->part[each];
        sum->part[each] = (uint32_t)carry;
        carry >>= 32;
    }
}

void big_subtract(struct big *number, const struct big *less)
{
    uint64_t borrow = 0;
    for (int each = 0; each < BIG_PARTS; each++) {
        uint64_t left = (uint64_t)number->part[each] - less->part[each] - borrow;
        number->part[each] = (uint32_t)left;
        borrow = left >> 63;
    }
}

int big_compare(const struct big *a, const struct big *b)
{
    for (int each = BIG_PARTS - 1; each >= 0; each--) {
        if (a->part[each] != b->part[each]) {
            return a->part[each] < b->part[each] ? -1 : 1;
        }
    }
    return 0;
}
