/* numtext: numbers as text. */
#ifndef NUMTEXT_H
#define NUMTEXT_H

#include <stddef.h>

#define NUMTEXT_VERSION "@VERSION@"

#define NUMTEXT_ROOM 64   /* bytes that every text fits in */

/* How many significant digits numtext_real writes; one setting for the whole process. */
int numtext_set_precision(int digits);
int numtext_precision(void);

/* Each writes a text that ends in 0 and gives its length. */
int numtext_real(double value, char *text);
int numtext_grouped(long value, char *text);
int numtext_quantity(double value, const char *unit, char *text);

/* Buffers that a thread keeps for itself. */
char *numtext_take(size_t bytes);
void numtext_give(char *buffer, size_t bytes);

#endif
