"""Parts of tools/try_program, in the order in which a program passes them: programs, building, running, comparing, tables."""
