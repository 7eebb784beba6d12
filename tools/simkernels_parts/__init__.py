"""The parts of tools/simkernels: tokens, declarations, rewriting, the assembler's input, and the build."""
