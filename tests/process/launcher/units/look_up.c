/* Look up a function of the C library as the preloaded object does: look_up NAME [VERSION]
 *
 * Print "found", or "ended" if the look-up ends the program. */
#include "locks/slots.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void note_end(int signal_number)
{
    (void)signal_number;
    puts("ended");
    exit(0); /* called from abort, not from a handler that interrupted something */
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    void *cached = NULL;
    signal(SIGABRT, note_end);
    void *found = original(&cached, arguments[1], count > 2 ? arguments[2] : NULL);
    puts(found && found == cached ? "found" : "NULL");
    return 0;
}
