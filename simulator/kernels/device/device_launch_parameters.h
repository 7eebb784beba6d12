// Stands in for NVIDIA's header of the same name, which declares threadIdx and its kin: threads.h
// has them.
#pragma once
#include "simulator/kernels/device/threads.h"
