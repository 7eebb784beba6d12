// The books of a machine that several simulated processes share, as JSON: what each device and each process holds and held,
// present, ended or killed. Any process may read them at any time; reading finds out who is dead.
#pragma once

#include <string>

namespace spillway::simulator {

// False, and why: there is no such machine.
bool ReadNodeBooks(const std::string& path, std::string& json, std::string& error);

}  // namespace spillway::simulator
