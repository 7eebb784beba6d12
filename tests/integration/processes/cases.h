// Process lives that use CUDA, by name. Each prints the same with and without Spillway.
//
// main.cpp runs one per process, on its main thread; a case's result becomes the exit code.
#pragma once

#include <string>
#include <vector>

namespace spillway::processes {

struct Case {
  const char* name;
  int (*run)(const std::string& self);  // receives the path of this program
};

std::vector<Case> ForkCases();
std::vector<Case> ExitCases();
std::vector<Case> SurroundingsCases();
std::vector<Case> ThreadCases();
std::vector<Case> LedgerCases();

}  // namespace spillway::processes
