/* Prints what it was started with, each string ended by a NUL: arguments, an empty string, environment. */
#include <stdio.h>
#include <string.h>

extern char **environ;

static void print_all(char **strings)
{
    for (; *strings; strings++)
        fwrite(*strings, 1, strlen(*strings) + 1, stdout);
}

int main(int count, char **arguments)
{
    (void)count;
    print_all(arguments);
    putchar('\0');
    print_all(environ);
    return 0;
}
