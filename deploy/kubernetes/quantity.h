// Kubernetes quantities of memory ("8Gi", "1500M", "0.5Gi", "2e9") as whole bytes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway::kubernetes {

// Fractions of a byte are rounded up, as in resource.Quantity. Negative and larger than 2^63: an
// error.
base::Result<int64_t> ParseQuantity(std::string_view text);

// "8Gi", "4097": ParseQuantity reads it back exactly.
std::string FormatQuantity(int64_t bytes);

}  // namespace spillway::kubernetes
