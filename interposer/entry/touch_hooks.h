// How a hook that names device memory is written in one line: its signature, its effect and the
// addresses it names.
//
// Included by the hooks_*.cpp whose functions follow this pattern, in their global part: it takes
// the names that the lines need into the global namespace. The seam itself is around.h.
#pragma once

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"

using spillway::driver::Driver;
using spillway::entry::Around;
using spillway::entry::Collector;
using spillway::entry::Effect;

// One hook: its exact name, whose default stream it means, its stream, its parameters, the same as
// arguments, its effect on device memory, and the statement that adds the addresses it names.
#define SPILLWAY_TOUCH(name, per_thread, stream, parameters, arguments, effect, ...) \
  SPILLWAY_EXPORT CUresult name parameters {                                         \
    return Around(                                                                   \
        {stream, per_thread}, effect,                                                \
        [&](Collector& add) {                                                        \
          add.IsCalled(#name);                                                       \
          __VA_ARGS__;                                                               \
        },                                                                           \
        [&] { return Driver().name arguments; });                                    \
  }
// The hook and its twin for the per-thread default stream.
#define SPILLWAY_TOUCH_TWINS(name, suffix, stream, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH(name, false, stream, parameters, arguments, effect, __VA_ARGS__)      \
  SPILLWAY_TOUCH(name##suffix, true, stream, parameters, arguments, effect, __VA_ARGS__)

#define SPILLWAY_SYNCHRONOUS(name, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH_TWINS(name, _ptds, nullptr, parameters, arguments, effect, __VA_ARGS__)
#define SPILLWAY_ASYNCHRONOUS(name, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH_TWINS(name, _ptsz, s, parameters, arguments, effect, __VA_ARGS__)
