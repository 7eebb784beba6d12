// `spillway cdi`: a CDI specification (Container Device Interface 0.5.0) for podman and docker, by
// which any image runs under Spillway: podman run --device spillway.dev/job=shared ...
#pragma once

#include <string>
#include <vector>

#include "base/container_edits.h"
#include "cli/options/option.h"

namespace spillway::cli {

// Throws Failure (2, 3, 4, 125).
int RunCdi(const std::vector<std::string>& arguments);

std::vector<Option> CdiOptionList();

// Pure.
std::string CdiSpecification(const base::ContainerNeeds& needs,
                             const std::string& device = "shared");

}  // namespace spillway::cli
