"""Makes subjects usable: each in a directory of its own, named by the content that went in."""

from perftrail.builder.local import LocalBuilder

__all__ = ["LocalBuilder"]
