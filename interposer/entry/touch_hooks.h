// A hook that names device memory in one line: its signature, its effect and its addresses.
//
// The seam itself is around.h.
#pragma once

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"

using spillway::driver::Driver;
using spillway::entry::Around;
using spillway::entry::Collector;
using spillway::entry::Effect;

// `per_thread`: the default stream is per thread. `...`: the statement that adds the addresses.
#define SPILLWAY_TOUCH(name, per_thread, stream, parameters, arguments, effect, ...) \
  SPILLWAY_EXPORT CUresult name parameters {                                         \
    return Around(                                                                   \
        {stream, per_thread}, effect,                                                \
        [&](Collector& add) {                                                        \
          add.SetTraceName(#name);                                                   \
          __VA_ARGS__;                                                               \
        },                                                                           \
        [&] { return Driver().name arguments; });                                    \
  }
#define SPILLWAY_TOUCH_TWINS(name, suffix, stream, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH(name, false, stream, parameters, arguments, effect, __VA_ARGS__)      \
  SPILLWAY_TOUCH(name##suffix, true, stream, parameters, arguments, effect, __VA_ARGS__)

#define SPILLWAY_SYNCHRONOUS(name, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH_TWINS(name, _ptds, nullptr, parameters, arguments, effect, __VA_ARGS__)
#define SPILLWAY_ASYNCHRONOUS(name, parameters, arguments, effect, ...) \
  SPILLWAY_TOUCH_TWINS(name, _ptsz, s, parameters, arguments, effect, __VA_ARGS__)
