"""Record the links of a build, and repeat them with code at other places in memory.

`elf` reads what linkers write, `record` stores links with their inputs, and `replay` links again.
"""
