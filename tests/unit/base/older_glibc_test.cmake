# Under a sanitizer nothing is added to the target. There is none here, so that adding would fail.
include(${CMAKE_CURRENT_LIST_DIR}/../../../tools/cmake/SpillwayOlderGlibc.cmake)
spillway_older_glibc(no_target files threads)
