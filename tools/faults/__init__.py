"""Inject disk faults into commands: each file operation fails once, then the command is rerun.

What a command asks of the disk is counted by a small library in C that is loaded before it
(`shim.c`), so that Python, SQLite and Arrow are counted alike. For each operation and
each kind of fault the command runs in a process of its own, meets the fault there, and runs again
without one: it must end as if there had been none. Reading order: shim, commands, tries, table.
"""
