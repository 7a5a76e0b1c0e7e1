/* Reals as text: the library's own digits, in the notation of C's %g. */
#include "digits.h"
#include "numtext.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char *repeat(char *text, char what, int times)
{
    for (; times > 0; times--) {
        *text++ = what;
    }
    return text;
}

static char *copy(char *text, const char *digits, int count)
{
    memcpy(text, digits, (size_t)count);
    return text + count;
}

static char *plainly(char *text, const char *digits, int count, int point)
{
    if (point < 0) {
        text = repeat(copy(text, "0.", 2), '0', -point - 1);
        return copy(text, digits, count);
    }
    if (count <= point + 1) {
        text = repeat(copy(text, digits, count), '0', point + 1 - count);
        return copy(text, ".0", 2);
    }
    text = copy(text, digits, point + 1);
    *text++ = '.';
    return copy(text, digits + point + 1, count - point - 1);
}

static char *with_exponent(char *text, const char *digits, int count, int point)
{
    *text++ = digits[0];
    if (count > 1) {
        *text++ = '.';
        text = copy(text, digits + 1, count - 1);
    }
    return text + sprintf(text, "e%+03d", point);
}

int numtext_real(double value, char *text)
{
    char digits[MOST_DIGITS], *end = text;
    int point, precision = numtext_precision();
    if (!isfinite(value) || value == 0.0) {
        return snprintf(text, NUMTEXT_ROOM, value == 0.0 ? "%.1f" : "%g", value);
    }
    if (signbit(value)) {
        *end++ = '-';
    }
    int count = numtext_digits(fabs(value), precision, digits, &point);
    int plain = point >= -5 && point < MOST_DIGITS;
    end = plain ? plainly(end, digits, count, point) : with_exponent(end, digits, count, point);
    *end = '\0';
    return (int)(end - text);
}
