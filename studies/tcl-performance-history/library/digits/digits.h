/* The decimal digits of a double. */
#ifndef DIGITS_H
#define DIGITS_H

enum { MOST_DIGITS = 17 };

/* Writes the shortest digits that read back as this positive, finite value, or the first `most` of them,
   rounded, where most is not 0. Gives how many; *point is where the decimal point stands after the first. */
int numtext_digits(double value, int most, char *digits, int *point);

#endif
