# Builds a CUDA program for the simulated GPU; with nvcc it also runs on a real GPU.
#
#   spillway_workload(NAME SOURCES FILE.cu... [LIBRARIES cudnn cublas] [INCLUDES FOLDER...] [DEFINES NAME...]
#                     [OUTPUT_DIRECTORY FOLDER] [USES FILE])
#
# makes <folder>/NAME (default build/workloads) and its kernels' plug-in <folder>/NAME.kernels.so; the target is NAME.
# USES declares its kernels' memory use for the simulator's compute mode `tags`; it becomes <folder>/NAME.uses.
# Sources have paths relative to the build folder, so that ccache has a result for every clone.
# Programs have no rpath and find CUDA's libraries by SONAME at run time. LD_LIBRARY_PATH selects the simulator's libraries
# (build/simulator) or the toolkit's.
include_guard()

set(SPILLWAY_SIMKERNELS ${CMAKE_SOURCE_DIR}/tools/simkernels)
file(GLOB SPILLWAY_SIMKERNELS_PARTS CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/tools/simkernels_parts/*.py ${CMAKE_SOURCE_DIR}/simulator/kernels/*.cpp
  ${CMAKE_SOURCE_DIR}/simulator/kernels/*.h)
file(GLOB_RECURSE SPILLWAY_DEVICE_HEADERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/simulator/kernels/device/*)
list(APPEND SPILLWAY_SIMKERNELS_PARTS ${SPILLWAY_DEVICE_HEADERS})

# Machine code for A100 (sm_80) and H100/H200 (sm_90); PTX for later GPUs.
set(SPILLWAY_GPU_CODE
  -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90])

# The compiler of tools/simkernels, through ccache if it is there.
set(SPILLWAY_SIMKERNELS_CXX "CXX=${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER}")

# The kernel executor for the CPU, compiled once for all workloads.
set(SPILLWAY_KERNEL_EXECUTOR ${CMAKE_BINARY_DIR}/kernel_executor)
set(SPILLWAY_KERNEL_EXECUTOR_MADE ${SPILLWAY_KERNEL_EXECUTOR}/made)
if(NOT TARGET spillway_kernel_executor)
  add_custom_command(OUTPUT ${SPILLWAY_KERNEL_EXECUTOR_MADE}
    COMMAND ${CMAKE_COMMAND} -E env ${SPILLWAY_SIMKERNELS_CXX} ${SPILLWAY_SIMKERNELS}
      --make-executor ${SPILLWAY_KERNEL_EXECUTOR} --cuda ${CUDA_INCLUDE_DIR}/..
    COMMAND ${CMAKE_COMMAND} -E touch ${SPILLWAY_KERNEL_EXECUTOR_MADE}
    DEPENDS ${SPILLWAY_SIMKERNELS} ${SPILLWAY_SIMKERNELS_PARTS}
    COMMENT "What runs kernels on the processor" VERBATIM)
  add_custom_target(spillway_kernel_executor DEPENDS ${SPILLWAY_KERNEL_EXECUTOR_MADE})
endif()

set(SPILLWAY_SONAME_cudart libcudart.so.13)
set(SPILLWAY_SONAME_cudnn libcudnn.so.9)
set(SPILLWAY_SONAME_cublas libcublas.so.13)

function(spillway_workload name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_DIRECTORY;USES" "SOURCES;LIBRARIES;INCLUDES;DEFINES")
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY ${SPILLWAY_WORKLOADS_DIR})
  endif()
  file(MAKE_DIRECTORY ${arg_OUTPUT_DIRECTORY})
  set(program ${arg_OUTPUT_DIRECTORY}/${name})
  set(plugin ${program}.kernels.so)
  set(work_folder ${name}.dir)  # for intermediate files
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${work_folder})
  set(flags)
  foreach(folder IN LISTS arg_INCLUDES ITEMS ${CMAKE_SOURCE_DIR})
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    list(APPEND flags -I${folder})
  endforeach()
  foreach(define IN LISTS arg_DEFINES)
    list(APPEND flags -D${define})
  endforeach()
  set(sources)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source)
    list(APPEND sources ${source})
  endforeach()
  set(cuda_sources ${sources})
  list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")

  set(simkernels ${CMAKE_COMMAND} -E env ${SPILLWAY_SIMKERNELS_CXX} ${SPILLWAY_SIMKERNELS} --std c++20 ${flags}
    --cuda ${CUDA_INCLUDE_DIR}/.. --executor ${SPILLWAY_KERNEL_EXECUTOR} --keep ${work_folder})
  set(simkernels_inputs ${SPILLWAY_SIMKERNELS} ${SPILLWAY_SIMKERNELS_PARTS}
    spillway_kernel_executor ${SPILLWAY_KERNEL_EXECUTOR_MADE})
  if(CUDA_NVCC)
    spillway_workload_nvcc()
  else()
    spillway_workload_host()
  endif()
  set(uses)
  if(arg_USES)
    set(uses ${program}.uses)
    add_custom_command(OUTPUT ${uses}
      COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_SOURCE_DIR}/${arg_USES} ${uses}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${arg_USES} VERBATIM)
  endif()
  add_custom_target(${name} ALL DEPENDS ${program} ${plugin} ${uses})
endfunction()

# Compiles SOURCE to OBJECT, a path relative to the build folder, with nvcc.
function(spillway_nvcc_object object source)
  cmake_path(ABSOLUTE_PATH source)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} OUTPUT_VARIABLE relative)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CUDA_NVCC} -O2 ${SPILLWAY_GPU_CODE} ${ARGN} -c ${relative} -o ${object} -MD -MF ${object}.d
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "${object} by nvcc" VERBATIM)
endfunction()

# Builds the program with nvcc, and the plug-in. A library that the toolkit lacks is linked from the simulator.
macro(spillway_workload_nvcc)
  add_custom_command(OUTPUT ${plugin}
    COMMAND ${simkernels} ${cuda_sources} -o ${plugin} --depfile ${CMAKE_CURRENT_BINARY_DIR}/${name}.kernels.d
    DEPENDS ${cuda_sources} ${simkernels_inputs}
    DEPFILE ${CMAKE_CURRENT_BINARY_DIR}/${name}.kernels.d
    COMMENT "Kernels of ${name} for the simulator" VERBATIM)
  set(libraries)
  set(library_targets)
  foreach(library IN LISTS arg_LIBRARIES)
    find_library(SPILLWAY_TOOLKIT_${library} ${library}
      HINTS ${CUDA_INCLUDE_DIR}/../lib64 ${CUDA_INCLUDE_DIR}/../lib NO_DEFAULT_PATH)
    if(SPILLWAY_TOOLKIT_${library})
      list(APPEND libraries ${SPILLWAY_TOOLKIT_${library}})
    else()
      # nvcc does not recognize a file named .so.9 as a library; the linker does.
      list(APPEND libraries -Xlinker ${SPILLWAY_SIMULATOR_DIR}/${SPILLWAY_SONAME_${library}})
      list(APPEND library_targets spillway_sim_${library})
    endif()
  endforeach()
  set(objects)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    spillway_nvcc_object(${work_folder}/${stem}.o ${source} -std=c++20 ${flags})
    list(APPEND objects ${work_folder}/${stem}.o)
  endforeach()
  add_custom_command(OUTPUT ${program}
    COMMAND ${CUDA_NVCC} ${SPILLWAY_GPU_CODE} -cudart shared ${objects} -o ${program} ${libraries}
      -Xlinker --allow-shlib-undefined
    DEPENDS ${objects} ${library_targets}
    COMMENT "Linking ${name}" VERBATIM)
endmacro()

# Builds the program with g++, for the simulator only, and the plug-in from the same compilation.
macro(spillway_workload_host)
  set(libraries)
  set(library_targets spillway_sim_cudart)
  foreach(library IN LISTS arg_LIBRARIES)
    list(APPEND libraries --library ${SPILLWAY_SONAME_${library}})
    list(APPEND library_targets spillway_sim_${library})
  endforeach()
  add_custom_command(OUTPUT ${program} ${plugin}
    COMMAND ${simkernels} --host ${sources} -o ${program} --plugin ${plugin} --runtime ${SPILLWAY_SIMULATOR_DIR} ${libraries}
      --depfile ${CMAKE_CURRENT_BINARY_DIR}/${name}.d
    DEPENDS ${sources} ${library_targets} ${simkernels_inputs}
    DEPFILE ${CMAKE_CURRENT_BINARY_DIR}/${name}.d
    COMMENT "${name} by ${CMAKE_CXX_COMPILER}, for the simulator" VERBATIM)
endmacro()
