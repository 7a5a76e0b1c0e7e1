"""Start a sandbox in the network of another one, so that a service and its client reach each other, and nothing else.

The new sandbox has its own processes, files and users. It enters the user namespace that owns the network, because only
there it has the right to enter the network, and creates its own user namespace below.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perftrail.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator

_GET_OWNER = 0xB701
"""NS_GET_USERNS of linux/nsfs.h: return a descriptor of the user namespace that owns a namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNetwork:
    """Words that start bubblewrap in a network, and the descriptors of the namespaces that it inherits."""

    prefix: tuple[str, ...]
    descriptors: tuple[int, ...]


@contextmanager
def network_of(process: int) -> Iterator[SharedNetwork]:
    """Yield the network of a process in a sandbox. Raises `SandboxError` if it cannot be shared."""
    program = shutil.which("nsenter")
    if program is None:
        raise SandboxError(
            "sandbox — nsenter is not installed; a service needs it: install the package util-linux"
        )
    with ExitStack() as stack:
        try:
            network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, network)
            owner: int = fcntl.ioctl(network, _GET_OWNER)
            stack.callback(os.close, owner)
        except OSError as error:
            raise SandboxError(
                f"sandbox — a service cannot share the network of its client: {error.strerror}"
            ) from error
        yield SharedNetwork(
            prefix=(
                program,
                f"--user=/proc/self/fd/{owner}",
                f"--net=/proc/self/fd/{network}",
                "--preserve-credentials",
                "--",
            ),
            descriptors=(network, owner),
        )
