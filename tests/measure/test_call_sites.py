"""Call sites of allocations, from stacks and names of functions."""

from __future__ import annotations

from perftrail.measure.call_sites import Allocated, CallSite, allocation_profile, call_sites
from perftrail.model.process import AllocationStack
from perftrail.model.profile import Function

LIBC = "/usr/lib/libc.so.6"
NAMES = {
    (LIBC, 1): (Function("strdup", object=LIBC),),
    ("/b/app", 2): (
        Function("std::string::assign", "/usr/include/c++/12/string", 9, "/b/app"),
        Function("copy", "/b/app.c", 3, "/b/app"),
    ),
    ("/b/app", 3): (Function("run.constprop.0", "/b/app.c", 9, "/b/app"),),
    ("/b/app", 4): (),
}


def stack(*frames: tuple[str, int], allocations: int = 1) -> AllocationStack:
    return AllocationStack(allocations=allocations, bytes=10 * allocations, frames=frames)


def test_the_innermost_function_of_the_program_and_its_caller_are_the_site() -> None:
    site = CallSite(function="copy", file="app.c", caller="run")
    found = call_sites([stack((LIBC, 1), ("/b/app", 2), ("/b/app", 3))], NAMES)
    assert found == {site: Allocated(allocations=1, bytes=10)}
    assert str(site) == "run → copy (app.c)"


def test_stacks_of_one_site_are_added() -> None:
    stacks = [
        stack((LIBC, 1), ("/b/app", 3), allocations=2),
        stack(("/b/app", 3), ("/b/app", 3), allocations=5),
    ]
    [(site, found)] = call_sites(stacks, NAMES).items()
    assert site == CallSite(function="run", file="app.c", caller="")
    assert (found.allocations, found.bytes) == (7, 70)


def test_a_stack_without_functions_of_the_program_is_that_of_the_library() -> None:
    [(site, _)] = call_sites([stack((LIBC, 1))], NAMES).items()
    assert str(site) == "strdup"


def test_a_stack_without_names_is_not_lost() -> None:
    [(site, found)] = call_sites([stack(("/b/app", 4), allocations=3)], NAMES).items()
    assert str(site) == "unknown functions"
    assert found.allocations == 3


def test_a_profile_has_the_allocations_of_functions_and_of_each_call_edge_once() -> None:
    deep = stack((LIBC, 1), ("/b/app", 2), ("/b/app", 3), ("/b/app", 2), ("/b/app", 3), allocations=2)
    profile = allocation_profile([deep, stack(("/b/app", 2)), stack(("/b/app", 4))], NAMES)
    library, assign, copy, run = (function for place in NAMES for function in NAMES[place])
    assert profile.events == ("allocations", "allocated bytes")
    assert profile.own == {library: (2.0, 20.0), assign: (1.0, 10.0)}
    assert {edge: calls.costs for edge, calls in profile.calls.items()} == {
        (assign, library): (2.0, 20.0),
        (copy, assign): (3.0, 30.0),
        (run, copy): (2.0, 20.0),
        (assign, run): (2.0, 20.0),
    }
