/* The decimal digits of a double, after Steele and White, "How to print floating-point numbers accurately"
   (1990): numerator / denominator is the value, and half the way to its neighbours says when to stop. */
#include "digits.h"
#include "big.h"

#include <math.h>

/* The value as numerator / denominator, with half the distances to both neighbours over the same denominator. */
struct fraction { struct big numerator, denominator, below, above; int even; };

enum { LEAST_EXPONENT = -1074 };

static void begin(struct fraction *value, double real)
{
    int exponent;
    frexp(real, &exponent);
    exponent = exponent - 53 < LEAST_EXPONENT ? LEAST_EXPONENT : exponent - 53;
    uint64_t mantissa = (uint64_t)ldexp(real, -exponent);
    int uneven = mantissa == 1ULL << 52;   /* the neighbour below is twice as near */
    value->even = mantissa % 2 == 0;       /* half the way to a neighbour reads back as this value */
    big_set(&value->numerator, mantissa << (1 + uneven));
    big_set(&value->denominator, 2u << uneven);
    big_set(&value->below, 1);
    big_set(&value->above, 1u << uneven);
    if (exponent > 0) {
        big_shift(&value->numerator, exponent);
        big_shift(&value->below, exponent);
        big_shift(&value->above, exponent);
    } else {
        big_shift(&value->denominator, -exponent);
    }
}

static void times_ten(struct fraction *value)
{
    big_multiply(&value->numerator, 10);
    big_multiply(&value->below, 10);
    big_multiply(&value->above, 10);
}

/* Scales so that the first digit is the one before the point; gives the power of ten that this took. */
static int scale(struct fraction *value)
{
    struct big ten_times;
    int power = 0;
    while (big_compare(&value->numerator, &value->denominator) < 0) {
        times_ten(value);
        power--;
    }
    for (;;) {
        ten_times = value->denominator;
        big_multiply(&ten_times, 10);
        if (big_compare(&value->numerator, &ten_times) < 0) {
            return power;
        }
        value->denominator = ten_times;
        power++;
    }
}

static int next_digit(struct fraction *value)
{
    int digit = 0;
    while (big_compare(&value->numerator, &value->denominator) >= 0) {
        big_subtract(&value->numerator, &value->denominator);
        digit++;
    }
    return digit;
}

static int round_up(char *digits, int count, int *point)
{
    while (count > 0 && digits[count - 1] == '9') {
        count--;
    }
    if (count == 0) {
        digits[0] = '1';
        (*point)++;
        return 1;
    }
    digits[count - 1]++;
    return count;
}

int numtext_digits(double real, int most, char *digits, int *point)
{
    struct fraction value;
    struct big sum;
    int count = 0;
    begin(&value, real);
    *point = scale(&value);
    for (;;) {
        digits[count++] = (char)('0' + next_digit(&value));
        big_add(&sum, &value.numerator, &value.above);
        int low = big_compare(&value.numerator, &value.below) < value.even;
        int high = big_compare(&sum, &value.denominator) > -value.even;
        if (low || high || count == MOST_DIGITS || count == most) {
            big_add(&sum, &value.numerator, &value.numerator);
            int nearer = big_compare(&sum, &value.denominator) > 0;
            return (low == high ? nearer : high) ? round_up(digits, count, point) : count;
        }
        times_ten(&value);
    }
}
