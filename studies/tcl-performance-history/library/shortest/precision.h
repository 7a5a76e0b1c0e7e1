/* The precision setting, for the library's own files. */
#ifndef PRECISION_H
#define PRECISION_H

enum { SHORTEST = 0, MOST_PRECISION = 17 };   /* 0: the fewest digits that read back as the same value */

#endif
