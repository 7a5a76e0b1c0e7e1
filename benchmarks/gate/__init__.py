"""How often the gate fails an unchanged branch, and a slower one."""
