// Replaces NVIDIA's cooperative_groups/reduce.h: see cooperative_groups.h beside this folder.
#pragma once

#include "simulator/kernels/device/cooperative_groups.h"
