/* The precision setting, for the library's own files. */
#ifndef PRECISION_H
#define PRECISION_H

struct setting { int digits; char format[8]; };

/* The setting of the process. It may be rewritten at any time that it is not locked. */
const struct setting *numtext_lock_setting(void);
void numtext_unlock_setting(void);

#endif
