"""Profile the Python program that imports this module at its start: every call of every
thread, with cProfile.

It runs in the environment of the studied project, without perftrail, and must work with old versions of Python. At the
end of the process it writes functions and calls as JSON into ``PERFTRAIL_PYTHON_PROFILES``. Code objects have a
fingerprint that doesn't contain lines. Then it imports the `sitecustomize` that it hides.
"""

import atexit
import os
import sys


def _start():
    import cProfile

    directory = os.environ.get("PERFTRAIL_PYTHON_PROFILES")
    if not directory or not os.path.isdir(directory):
        return
    profilers = [cProfile.Profile()]
    process = os.getpid()

    def profile_thread(frame, event, argument):
        profiler = cProfile.Profile()
        profilers.append(profiler)
        profiler.enable()  # it replaces this function in the thread

    def write():
        profilers[0].disable()
        if os.getpid() != process:
            return  # a forked child has its parent's profile
        import json

        functions, names = [], {}

        def number(code):
            if code not in names:
                names[code] = len(functions)
                if isinstance(code, str):
                    functions.append([code, "", 0, ""])
                else:
                    name = getattr(code, "co_qualname", code.co_name)
                    functions.append([name, code.co_filename, code.co_firstlineno, _body(code)])
            return names[code]

        rows, calls = [], []
        for profiler in profilers:
            for entry in profiler.getstats():
                rows.append([number(entry.code), entry.callcount, entry.inlinetime, entry.totaltime])
                for call in entry.calls or ():
                    calls.append([number(entry.code), number(call.code), call.callcount, call.totaltime])
        path = os.path.join(directory, "%d.json" % process)
        with open(path, "w") as file:
            json.dump({"functions": functions, "own": rows, "calls": calls}, file)

    atexit.register(write)
    if sys.version_info < (3, 12):  # since 3.12, one profiler receives the calls of all threads
        import threading

        threading.setprofile(profile_thread)
    profilers[0].enable()


def _body(code):
    """Return a fingerprint of a function's code, with that of the functions in it, without lines and files."""
    import hashlib

    def parts(code):
        yield code.co_code
        yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags)).encode("utf-8", "replace")
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                yield from parts(constant)
            elif isinstance(constant, frozenset):
                yield repr(sorted(map(repr, constant))).encode("utf-8", "replace")
            else:
                yield repr(constant).encode("utf-8", "replace")

    digest = hashlib.sha256()
    for part in parts(code):
        digest.update(part)
    return digest.hexdigest()[:20]


def _import_hidden():
    """Import the `sitecustomize` of the environment, if it has one."""
    mine = os.path.dirname(os.path.abspath(__file__))
    paths = [each for each in sys.path if os.path.abspath(each or ".") != mine]
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec("sitecustomize", paths)
    if found is not None and found.loader is not None:
        from importlib.util import module_from_spec

        module = module_from_spec(found)
        found.loader.exec_module(module)


_import_hidden()
_start()
