// Replaces the header of this name: see cuda_pipeline.h.
#pragma once

#include "simulator/kernels/device/cuda_pipeline.h"
