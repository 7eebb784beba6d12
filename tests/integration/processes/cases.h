// Lives of processes that use CUDA, by name. Each prints the same with and without Spillway.
//
// Run by main.cpp, one per process, on its main thread; what a case returns becomes the exit code.
#pragma once

#include <string>
#include <vector>

namespace spillway::processes {

struct Case {
  const char* name;
  int (*run)(const std::string& self);  // the path of this program
};

std::vector<Case> ForkCases();
std::vector<Case> ExitCases();
std::vector<Case> SurroundingsCases();
std::vector<Case> ThreadCases();
std::vector<Case> LedgerCases();

}  // namespace spillway::processes
