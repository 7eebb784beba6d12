// Leads from a driver symbol, by name or by the driver's own pointer, to its hook.
//
// Invariants
//  1. Names match exactly: never by prefix, another version or another stream variant.
//  2. A hook is given out only for a function that the real driver has.
#pragma once

#include <string_view>

namespace spillway::entry {

bool IsListed(std::string_view name);

void* HookNamed(const char* name);

void* RouteToHook(void* function);

}  // namespace spillway::entry
