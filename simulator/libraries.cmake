# How the simulated libraries above the driver are made: cuDNN, cuBLAS and those beside them.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

# The functions that the toolkit's headers declare, as weak stand-ins that answer NOT_SUPPORTED.
function(spillway_stand_ins target name not_supported)
  set(folder ${PROJECT_SOURCE_DIR}/simulator/dnn/exports)
  set(lists ${PROJECT_BINARY_DIR}/simulator_exports)
  add_custom_command(
    OUTPUT ${lists}/${name}_functions.inc
    COMMAND ${Python3_EXECUTABLE} ${folder}/list_functions.py ${CUDA_INCLUDE_DIR} ${name} ${lists}/${name}_functions.inc
    DEPENDS ${folder}/list_functions.py ${CUDA_INCLUDE_DIR}/cuda.h
    COMMENT "Listing the functions of ${name}" VERBATIM)
  add_library(${target} OBJECT ${folder}/stand_ins.cpp ${lists}/${name}_functions.inc)
  target_include_directories(${target} PRIVATE ${lists})
  target_compile_definitions(${target} PRIVATE
    SPILLWAY_EXPORT_LIST="${name}_functions.inc"
    SPILLWAY_NOT_SUPPORTED=${not_supported})
  spillway_warnings(${target})
endfunction()

# One library under one SONAME, made of `objects`. The symbols have the SONAME as their version, which programs ask for.
function(spillway_simulated_soname target name version)
  add_library(${target} SHARED)
  target_link_libraries(${target} PRIVATE ${ARGN})
  set(SPILLWAY_VERSION_NODE lib${name}.so.${version})
  set(SPILLWAY_EXPORTS "${name}*")
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${name}.${version}.map)
  configure_file(${PROJECT_SOURCE_DIR}/simulator/dnn/exports/library.map.in ${map} @ONLY)
  # A library's calls of its own functions stay inside, as in NVIDIA's: none goes through a hook of a preloaded library.
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-z,defs -Wl,-Bsymbolic-functions)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} LINKER_LANGUAGE CXX LINK_DEPENDS ${map}
    LIBRARY_OUTPUT_DIRECTORY ${SPILLWAY_SIMULATOR_DIR})
endfunction()

# One library: its name, its version in CUDA 13 and in CUDA 12 (the same, or a second file), its status value of
# NOT_SUPPORTED, and its sources. They become the objects spillway_sim_<name>_objects.
function(spillway_simulated_library name version version12 not_supported)
  set(target spillway_sim_${name})
  add_library(${target}_objects OBJECT ${ARGN})
  target_link_libraries(${target}_objects PUBLIC spillway_sim_dnn_common)
  spillway_warnings(${target}_objects)
  spillway_stand_ins(${target}_stand_ins ${name} ${not_supported})
  spillway_simulated_soname(${target} ${name} ${version} ${target}_objects ${target}_stand_ins spillway_sim_dnn_common)
  set_target_properties(${target} PROPERTIES SOVERSION ${version})
  if(NOT version12 STREQUAL version)
    spillway_simulated_soname(${target}12 ${name} ${version12}
      ${target}_objects ${target}_stand_ins spillway_sim_dnn_common)
    # No SOVERSION: it would make a second link lib<name>.so, which belongs to the newest release.
    set_target_properties(${target}12 PROPERTIES SUFFIX .so.${version12})
  endif()
endfunction()
