/* driver THREADS RUNS SCRIPT: THREADS threads, each with its own interpreter, together evaluate SCRIPT RUNS times.
 *
 * With 0 threads, or with a Tcl without threads, the main thread does all of it. All evaluations must return the same
 * answer, otherwise the driver fails: a script that stops early would look fast. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tcl.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static long left;           /* remaining runs, protected by guard */
static char answer[64];     /* the answer of the first run, protected by guard */
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

static void check(const char *result)
{
    pthread_mutex_lock(&guard);
    if (!answer[0])
        snprintf(answer, sizeof answer, "%s", result);
    int same = *result && strncmp(answer, result, sizeof answer - 1) == 0;
    pthread_mutex_unlock(&guard);
    if (!same)
        fail("a run returned another answer", result);
}

static void source_runs(void)
{
    Tcl_Interp *interp = Tcl_CreateInterp(); /* no Tcl_Init: the script does not use Tcl's library */
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
        fail("cannot find out whether Tcl has threads", Tcl_GetStringResult(interp));
    Tcl_DeleteInterp(interp);
    return has;
}

int main(int count, char **arguments)
{
    if (count != 4)
        fail("usage", "driver THREADS RUNS SCRIPT");
    long threads = strtol(arguments[1], NULL, 10);
    left = strtol(arguments[2], NULL, 10);
    script = arguments[3];
    Tcl_FindExecutable(arguments[0]);
    if (threads == 0 || !has_threads()) {
        source_runs();
    } else {
        pthread_t *started = calloc((size_t)threads, sizeof *started);
        for (long i = 0; i < threads; i++)
            if (pthread_create(&started[i], NULL, in_a_thread, NULL))
                fail("cannot start a thread", arguments[1]);
        for (long i = 0; i < threads; i++)
            pthread_join(started[i], NULL);
        free(started);
    }
    printf("answer %s\n", answer);
    return 0;
}
