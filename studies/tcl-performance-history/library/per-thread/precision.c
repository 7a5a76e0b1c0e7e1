/* The precision setting: each thread has its own. */
#include "precision.h"
#include "numtext.h"

static _Thread_local int precision = SHORTEST;

int numtext_set_precision(int digits)
{
    if (digits < SHORTEST || digits > MOST_PRECISION) {
        return -1;
    }
    precision = digits;
    return 0;
}

int numtext_precision(void)
{
    return precision;
}
