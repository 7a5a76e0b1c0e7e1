"""The launcher, the sandbox and the machine: how processes are started, kept apart and watched."""
