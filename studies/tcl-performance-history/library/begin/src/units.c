/* Quantities: a real, a space and the unit's sign. */
#include "numtext.h"

#include <string.h>

static const struct { const char *name, *sign; } units[] = {
@UNITS@
};

int numtext_quantity(double value, const char *unit, char *text)
{
    for (size_t each = 0; each < sizeof units / sizeof *units; each++) {
        if (strcmp(units[each].name, unit) == 0) {
            int length = numtext_real(value, text);
            text[length++] = ' ';
            strcpy(text + length, units[each].sign);
            return length + (int)strlen(units[each].sign);
        }
    }
    return -1;
}
