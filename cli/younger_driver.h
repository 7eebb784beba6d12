// A driver that is younger than libspillway.so: its functions that the library does not know, and
// programs that cannot start without them.
//
// The library stands in the driver's place from the start (it bears its name), so a program that is
// linked with a function which only the driver has would be missing a symbol, where it binds all of
// them at once. Such a program gets the driver beside the library, after it: known functions still
// go through the library, the others to the driver.
//
// One thread. Reads files; runs the dynamic loader, never the program.
#pragma once

#include <set>
#include <string>

#include "cli/command_target.h"
#include "cli/environment_changes.h"

namespace spillway::cli {

// The functions (cu...) of the driver that the library does not know; none when a file cannot be
// read.
std::set<std::string> UnknownFunctions(const std::string& driver,
                                       const std::string& preload_library);

// Those of `functions` without which the program, with all the libraries that it starts with, does
// not start. `environment` is the one in which it will.
std::set<std::string> NeededAtStart(const LoadedProgram& program,
                                    const std::set<std::string>& functions,
                                    const std::string& preload_library,
                                    EnvironmentChanges environment);

// "cuA, cuB and 3 more".
std::string Listed(const std::set<std::string>& names);

}  // namespace spillway::cli
