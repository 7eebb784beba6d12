// The kernels' PTX, as the library holds it: text that ends with a zero, for cuModuleLoadData.
#pragma once

extern "C" const char spillway_fingerprint_ptx[] __attribute__((visibility("hidden")));
