/* shell SCRIPT ?ARGUMENT ...?: a tclsh with one more command, which replaces Tcl's Thread package:
 *
 *     threads COUNT SCRIPT    evaluate SCRIPT in COUNT new threads in parallel, each in a separate interpreter without
 *                             Tcl's script library; returns the list of their results, and fails if one of them fails
 */
#include <stdlib.h>
#include <string.h>
#include <tcl.h>

enum { MOST_THREADS = 1000 };

typedef struct {
    Tcl_ThreadId id;
    const char *script;
    char *result; /* a copy: the objects of a thread end with the thread */
    int failed;
} Worker;

static Tcl_ThreadCreateType work(ClientData data)
{
    Worker *worker = data;
    Tcl_Interp *interp = Tcl_CreateInterp();
    worker->failed = Tcl_EvalEx(interp, worker->script, -1, TCL_EVAL_GLOBAL) != TCL_OK;
    worker->result = strdup(Tcl_GetStringResult(interp));
    Tcl_DeleteInterp(interp);
    Tcl_FinalizeThread();
    TCL_THREAD_CREATE_RETURN;
}

static int threads(ClientData unused, Tcl_Interp *interp, int count, Tcl_Obj *const arguments[])
{
    int wanted, started = 0, failed = 0;
    (void)unused;
    if (count != 3) {
        Tcl_WrongNumArgs(interp, 1, arguments, "count script");
        return TCL_ERROR;
    }
    if (Tcl_GetIntFromObj(interp, arguments[1], &wanted) != TCL_OK)
        return TCL_ERROR;
    if (wanted < 1 || wanted > MOST_THREADS) {
        Tcl_SetObjResult(interp, Tcl_ObjPrintf("from 1 to %d threads, not %d", MOST_THREADS, wanted));
        return TCL_ERROR;
    }
    Worker *workers = calloc((size_t)wanted, sizeof *workers);
    for (; workers && started < wanted; started++) {
        workers[started].script = Tcl_GetString(arguments[2]);
        if (Tcl_CreateThread(&workers[started].id, work, &workers[started], TCL_THREAD_STACK_DEFAULT,
                             TCL_THREAD_JOINABLE) != TCL_OK)
            break;
    }
    Tcl_Obj *results = Tcl_NewListObj(0, NULL);
    for (int each = 0; each < started; each++) {
        int status;
        Tcl_JoinThread(workers[each].id, &status);
        failed |= workers[each].failed;
        Tcl_ListObjAppendElement(NULL, results, Tcl_NewStringObj(workers[each].result, -1));
        free(workers[each].result);
    }
    free(workers);
    Tcl_SetObjResult(interp, results);
    if (started < wanted)
        Tcl_SetObjResult(interp, Tcl_ObjPrintf("cannot start more than %d threads", started));
    return failed || started < wanted ? TCL_ERROR : TCL_OK;
}

static int begin(Tcl_Interp *interp)
{
    Tcl_CreateObjCommand(interp, "threads", threads, NULL, NULL);
    return Tcl_Init(interp);
}

int main(int count, char **arguments)
{
    Tcl_Main(count, arguments, begin);
    return 1; /* Tcl_Main does not return */
}
