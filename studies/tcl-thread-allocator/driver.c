/* driver THREADS RUNS SCRIPT: THREADS threads, each with an interpreter of its own, source SCRIPT RUNS times between them.
 *
 * With no threads, or a Tcl that was built without them, the program's own thread does all of it. Each sourcing has
 * to give the same answer, or the driver fails: a script that stops early would otherwise look fast. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tcl.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static long left;           /* runs that nobody has taken, under guard */
static char answer[64];     /* what the first run gave, under guard */
static const char *script;

static int take_a_run(void)
{
    pthread_mutex_lock(&guard);
    int taken = left > 0;
    left -= taken;
    pthread_mutex_unlock(&guard);
    return taken;
}

static void fail(const char *why, const char *what)
{
    fprintf(stderr, "driver: %s: %s\n", why, what);
    _Exit(1);
}

static void check(const char *given)
{
    pthread_mutex_lock(&guard);
    if (!answer[0])
        snprintf(answer, sizeof answer, "%s", given);
    int same = *given && strncmp(answer, given, sizeof answer - 1) == 0;
    pthread_mutex_unlock(&guard);
    if (!same)
        fail("a run gave another answer", given);
}

static void source_runs(void)
{
    Tcl_Interp *interp = Tcl_CreateInterp(); /* no Tcl_Init: the script uses nothing of Tcl's library */
    while (take_a_run()) {
        if (Tcl_EvalFile(interp, script) != TCL_OK)
            fail(script, Tcl_GetStringResult(interp));
        check(Tcl_GetStringResult(interp));
    }
    Tcl_DeleteInterp(interp);
}

static void *in_a_thread(void *unused)
{
    source_runs();
    Tcl_FinalizeThread();
    return unused;
}

static int has_threads(void)
{
    Tcl_Interp *interp = Tcl_CreateInterp();
    int has = 0;
    if (Tcl_Eval(interp, "::tcl::pkgconfig get threaded") != TCL_OK ||
        Tcl_GetBoolean(interp, Tcl_GetStringResult(interp), &has) != TCL_OK)
        fail("cannot tell whether Tcl has threads", Tcl_GetStringResult(interp));
    Tcl_DeleteInterp(interp);
    return has;
}

int main(int count, char **words)
{
    if (count != 4)
        fail("usage", "driver THREADS RUNS SCRIPT");
    long threads = strtol(words[1], NULL, 10);
    left = strtol(words[2], NULL, 10);
    script = words[3];
    Tcl_FindExecutable(words[0]);
    if (threads == 0 || !has_threads()) {
        source_runs();
    } else {
        pthread_t *started = calloc((size_t)threads, sizeof *started);
        for (long i = 0; i < threads; i++)
            if (pthread_create(&started[i], NULL, in_a_thread, NULL))
                fail("cannot start a thread", words[1]);
        for (long i = 0; i < threads; i++)
            pthread_join(started[i], NULL);
        free(started);
    }
    printf("answer %s\n", answer);
    return 0;
}
