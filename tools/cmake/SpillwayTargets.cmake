# Shared target settings: where products land, how strictly they compile.
set(SPILLWAY_BIN_DIR ${CMAKE_BINARY_DIR}/bin)
set(SPILLWAY_LIB_DIR ${CMAKE_BINARY_DIR}/lib)
set(SPILLWAY_SIMULATOR_DIR ${CMAKE_BINARY_DIR}/simulator)
set(SPILLWAY_WORKLOADS_DIR ${CMAKE_BINARY_DIR}/workloads)
set(SPILLWAY_TESTS_DIR ${CMAKE_BINARY_DIR}/tests-bin)

# Off where a compiler that nobody has tried must not stop the build: tests/gpu/run.
option(SPILLWAY_WARNINGS_ARE_ERRORS "Compile with -Werror" ON)

# One call of the compiler reads up to eight files of a target, and their headers once: a build from nothing takes a fifth less. Names
# in unnamed namespaces must differ within a target for that; UNITY_BUILD OFF stands where they do not. -DSPILLWAY_UNITY=OFF
# gives every file a call, as tools like it that look for a file in compile_commands.json.
option(SPILLWAY_UNITY "Compile several source files in one call" ON)
set(CMAKE_UNITY_BUILD ${SPILLWAY_UNITY})

function(spillway_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${SPILLWAY_WARNINGS_ARE_ERRORS}>:-Werror>)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
endfunction()
