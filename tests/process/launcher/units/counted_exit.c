/* Write gcov's counts before a process ends without running exit handlers, or executes another program. Linked with
 * --wrap=_exit,--wrap=execve. */
void __gcov_dump(void);
void __gcov_reset(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);
int __real_execve(const char *path, char *const *arguments, char *const *environment);
int __wrap_execve(const char *path, char *const *arguments, char *const *environment);

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}

int __wrap_execve(const char *path, char *const *arguments, char *const *environment)
{
    __gcov_dump();
    int result = __real_execve(path, arguments, environment);
    __gcov_reset(); /* else the counts from here on would not be written */
    return result;
}
