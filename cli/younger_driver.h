// Functions of a driver newer than libspillway.so, and programs that cannot start without them.
//
// The library takes the driver's place. A program that binds all symbols at start would miss a
// driver-only function. For such a program the driver is preloaded after the library: known
// functions still go through the library, others to the driver.
//
// Runs the dynamic loader, never the program.
#pragma once

#include <set>
#include <string>

#include "cli/command_target.h"
#include "cli/environment_changes.h"

namespace spillway::cli {

// Empty if a file cannot be read.
std::set<std::string> UnknownFunctions(const std::string& driver,
                                       const std::string& preload_library);

// Those of `functions` that the program, with all its startup libraries, needs to start.
// `environment`: the one that it will have.
std::set<std::string> NeededAtStart(const LoadedProgram& program,
                                    const std::set<std::string>& functions,
                                    const std::string& preload_library,
                                    EnvironmentChanges environment);

// "cuA, cuB and 3 more".
std::string Listed(const std::set<std::string>& names);

}  // namespace spillway::cli
