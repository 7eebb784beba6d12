#!/usr/bin/env python3
"""Writes the list of functions that a simulated library exports, from the toolkit's headers.

usage: list_functions.py CUDA_INCLUDE_DIR LIBRARY OUTPUT

The build runs it, so that the names are those of the toolkit at hand. Every name is exported: by its implementation, or else
by a weak stand-in that answers NOT_SUPPORTED.
"""
import pathlib
import re
import sys

LIBRARIES = {
    "cudnn": (["cudnn_graph.h", "cudnn_ops.h", "cudnn_cnn.h", "cudnn_adv.h"], r"CUDNNWINAPI\s+(cudnn\w+)\s*\("),
    "cublas": (["cublas_api.h", "cublas.h", "cublasXt.h"], r"CUBLASWINAPI\s+(cublas\w+)\s*\("),
    "cublasLt": (["cublasLt.h"], r"CUBLASWINAPI\s+(cublasLt\w+)\s*\("),
    "cudart": (["cuda_runtime_api.h", "cuda_gl_interop.h"], r"CUDARTAPI\s+(cuda[A-Z]\w+)\s*\("),
    "cufft": (["cufft.h", "cufftXt.h"], r"CUFFTAPI\s+(cufft\w+)\s*\("),
    "curand": (["curand.h"], r"CURANDAPI\s+(curand\w+)\s*\("),
    "cusolver": (["cusolverDn.h", "cusolverSp.h", "cusolverSp_LOWLEVEL_PREVIEW.h", "cusolverRf.h"],
                 r"CUSOLVERAPI\s+(cusolver\w+)\s*\("),
    "cusparse": (["cusparse.h"], r"CUSPARSEAPI\s+(cusparse\w+)\s*\("),
}


def functions(include, headers, pattern):
    names = set()
    for header in headers:
        text = (include / header).read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        text = re.sub(r"^#define[^\n]*\\\n(?:[^\n]*\\\n)*", "", text, flags=re.M)
        names.update(re.findall(pattern, text))
    return sorted(names)


def main():
    include, library, output = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    headers, pattern = LIBRARIES[library]
    names = functions(include, headers, pattern)
    if not names:
        sys.exit(f"{include}: no function of {library} is declared in {', '.join(headers)}")
    output.parent.mkdir(exist_ok=True)
    output.write_text("".join(f"SPILLWAY_EXPORT({name})\n" for name in names), encoding="utf-8")


main()
