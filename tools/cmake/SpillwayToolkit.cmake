# Finds the CUDA toolkit: its headers are required, nvcc is optional.
#
# Sets CUDA_INCLUDE_DIR, CUDA_TOOLKIT_ROOT, CUDA_NVCC (empty when absent) and the interface target spillway_cuda_headers.
set(CUDA_TOOLKIT_ROOT "$ENV{CUDA_HOME}" CACHE PATH "Root of the CUDA toolkit")
find_path(CUDA_INCLUDE_DIR cuda.h
  HINTS ${CUDA_TOOLKIT_ROOT}/include /usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include
  NO_DEFAULT_PATH)
if(NOT CUDA_INCLUDE_DIR)
  message(FATAL_ERROR
    "The CUDA toolkit's headers were not found (cuda.h in \$CUDA_HOME/include or /usr/local/cuda/include).\n"
    "Install NVIDIA's cuda-toolkit-13-0 package (headers are enough: cuda-cudart-dev-13-0, cuda-driver-dev-13-0, "
    "libcublas-dev-13-0, cudnn9-cuda-13), or set CUDA_HOME to the toolkit's root, and run again.")
endif()
find_program(CUDA_NVCC nvcc HINTS ${CUDA_TOOLKIT_ROOT}/bin /usr/local/cuda/bin)
if(NOT CUDA_NVCC)
  set(CUDA_NVCC "")
  message(STATUS "nvcc was not found: the workloads are built by ${CMAKE_CXX_COMPILER} for the simulator only")
endif()
add_library(spillway_cuda_headers INTERFACE)
target_include_directories(spillway_cuda_headers SYSTEM INTERFACE ${CUDA_INCLUDE_DIR})
