// The routes from a driver symbol, by name or by the driver's own pointer, to its hook.
//
// Called by the entry points (proc_address.cpp, symbol_lookup.cpp) on any thread. Owns nothing;
// hook_table.inc is the list.
//
// Invariants
//  1. Names match exactly: never by prefix, never another version or stream flavour of the
//  function.
//  2. A hook is given out only for a function that the real driver has.
#pragma once

#include <string_view>

namespace spillway::entry {

// True if the list has the exported symbol `name`, hooked or not.
bool IsListed(std::string_view name);

// The hook of the exported symbol `name`, or null if it is not hooked.
void* HookNamed(const char* name);

// The hook of the symbol at which the real driver's `function` lies; `function` itself if it is not
// hooked.
void* RouteToHook(void* function);

}  // namespace spillway::entry
