// Every feature by name; each is defined in the file of its name.
#pragma once

#include "tests/fuzz/differential/feature.h"

namespace spillway::fuzz {

const Feature& Barriers();
const Feature& Beside();
const Feature& Early();
const Feature& Gradients();
const Feature& Graphs();
const Feature& Guests();
const Feature& Hidden();
const Feature& Mappings();
const Feature& Own();
const Feature& Pointers();
const Feature& Recompute();
const Feature& Strays();
const Feature& Structures();
const Feature& Switches();
const Feature& Tables();
const Feature& TensorMaps();
const Feature& Textures();
const Feature& Workspaces();

}  // namespace spillway::fuzz
