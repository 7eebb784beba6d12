"""The modules of tools/simkernels."""
