"""Studies made and measured on other machines: what is sent there, what is done there, what comes back.

Where jobs are performed.
"""

from __future__ import annotations
