/* shell SCRIPT ?ARGUMENT ...?: a tclsh with one command more, for which Tcl's Thread package is needed otherwise:
 *
 *     threads COUNT SCRIPT    evaluate SCRIPT in COUNT new threads at once, each in an interpreter of its own without
 *                             Tcl's script library; gives the list of their results, and fails where one of them does
 */
#include <stdlib.h>
#include <string.h>
#include <tcl.h>

enum { MOST_THREADS = 1000 };

typedef struct {
    Tcl_ThreadId id;
    const char *script;
    char *result; /* its own copy: a thread's objects end with the thread */
    int failed;
} Worker;

static Tcl_ThreadCreateType work(ClientData given)
{
    Worker *worker = given;
    Tcl_Interp *interp = Tcl_CreateInterp();
    worker->failed = Tcl_EvalEx(interp, worker->script, -1, TCL_EVAL_GLOBAL) != TCL_OK;
    worker->result = strdup(Tcl_GetStringResult(interp));
    Tcl_DeleteInterp(interp);
    Tcl_FinalizeThread();
    TCL_THREAD_CREATE_RETURN;
}

static int threads(ClientData unused, Tcl_Interp *interp, int count, Tcl_Obj *const words[])
{
    int wanted, started = 0, failed = 0;
    (void)unused;
    if (count != 3) {
        Tcl_WrongNumArgs(interp, 1, words, "count script");
        return TCL_ERROR;
    }
    if (Tcl_GetIntFromObj(interp, words[1], &wanted) != TCL_OK)
        return TCL_ERROR;
    if (wanted < 1 || wanted > MOST_THREADS) {
        Tcl_SetObjResult(interp, Tcl_ObjPrintf("from 1 to %d threads, not %d", MOST_THREADS, wanted));
        return TCL_ERROR;
    }
    Worker *workers = calloc((size_t)wanted, sizeof *workers);
    for (; workers && started < wanted; started++) {
        workers[started].script = Tcl_GetString(words[2]);
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

int main(int count, char **words)
{
    Tcl_Main(count, words, begin);
    return 1; /* Tcl_Main does not come back */
}
