// The control groups of tests/fixtures/control_groups/slurm_v2.txt.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace spillway::test {

struct SlurmGroup {
  std::string path, job, step;  // without a job: both empty
};

inline std::vector<SlurmGroup> SlurmGroups() {
  std::ifstream file(Fixture("control_groups/slurm_v2.txt"));
  std::vector<SlurmGroup> groups;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    SlurmGroup group;
    std::istringstream(line) >> group.path >> group.job >> group.step;
    if (group.job == "-") group.job = group.step = "";
    groups.push_back(std::move(group));
  }
  EXPECT_GT(groups.size(), 10U) << "the fixture cannot be read";
  return groups;
}

}  // namespace spillway::test
