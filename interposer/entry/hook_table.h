// Leads from a driver symbol, by name or by the driver's own pointer, to its hook.
//
// The entry points (proc_address.cpp, symbol_lookup.cpp) call it on any thread. Owns nothing.
// Invariants
//  1. Names match exactly: never by prefix, another version or another stream variant.
//  2. A hook is given out only for a function that the real driver has.
#pragma once

#include <string_view>

namespace spillway::entry {

bool IsListed(std::string_view name);

void* HookNamed(const char* name);

// The hook for the real driver's `function`, or `function` itself if it is not hooked.
void* RouteToHook(void* function);

}  // namespace spillway::entry
