# Shared target settings: output folders, warnings, unity builds.
set(SPILLWAY_BIN_DIR ${CMAKE_BINARY_DIR}/bin)
set(SPILLWAY_LIB_DIR ${CMAKE_BINARY_DIR}/lib)
set(SPILLWAY_SIMULATOR_DIR ${CMAKE_BINARY_DIR}/simulator)
set(SPILLWAY_WORKLOADS_DIR ${CMAKE_BINARY_DIR}/workloads)
set(SPILLWAY_TESTS_DIR ${CMAKE_BINARY_DIR}/tests-bin)

# tests/gpu/run turns this off, so that an untested compiler's warnings do not stop the build.
option(SPILLWAY_WARNINGS_ARE_ERRORS "Compile with -Werror" ON)

# One compiler call reads up to eight files of a target, and their headers once. A clean build takes a fifth less time. Names in
# unnamed namespaces must then differ within a target; other targets set UNITY_BUILD OFF. -DSPILLWAY_UNITY=OFF compiles each
# file alone, for tools that look for a file in compile_commands.json.
option(SPILLWAY_UNITY "Compile several source files in one call" ON)
set(CMAKE_UNITY_BUILD ${SPILLWAY_UNITY})

function(spillway_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${SPILLWAY_WARNINGS_ARE_ERRORS}>:-Werror>)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
endfunction()
