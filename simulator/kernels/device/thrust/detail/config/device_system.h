// Puts the simulator's device system of Thrust in the place of NVIDIA's: see ../../algorithms.h.
#pragma once

#ifndef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
#include_next <thrust/detail/config/device_system.h>
// Its headers are those of the system `cpp` and the ones beside them here.
#undef __THRUST_DEVICE_SYSTEM_NAMESPACE
#undef __THRUST_DEVICE_SYSTEM_ROOT
#define __THRUST_DEVICE_SYSTEM_NAMESPACE cuda
// clang-format off
#define __THRUST_DEVICE_SYSTEM_ROOT thrust/system/cpp
// clang-format on
