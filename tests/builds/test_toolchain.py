"""The versions of tools that belong to a build's identity."""

from __future__ import annotations

import errno
import os
import platform

import pytest

from perftrail.builds.toolchain import Toolchain


def test_a_c_library_without_the_name_of_glibc_is_musl(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Alpine, confstr reports an invalid argument."""

    def confstr(name: str) -> str:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "confstr", confstr)
    machine, library, *tools = Toolchain(lambda *_: "", path="").fingerprint(["cc -O2 a.c"])
    assert machine == platform.machine()
    assert library == "musl"
    assert tools


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="the C library here is not glibc")
def test_glibc_has_its_version() -> None:
    assert Toolchain(lambda *_: "", path="").fingerprint([])[1] == " ".join(platform.libc_ver())
