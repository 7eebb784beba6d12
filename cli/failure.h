// An error of the command: what is wrong, why, and what to do. Caught only by main().
//
// Invariants
//  1. `what` names the wrong thing, `why` the rule or fact behind it, `remedy` an action for the
//     reader.
//  2. Exit codes follow env(1), nohup(1) and timeout(1), so scripts can tell our refusals from the
//     job's.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace spillway::cli {

inline constexpr int kExitUsage = 2;            // wrong command line
inline constexpr int kExitRefusedByAgent = 3;   // the node agent refuses the request, or this user
inline constexpr int kExitNoAgent = 4;          // no agent, or no answer
inline constexpr int kExitRefused = 125;        // Spillway cannot work here, or not as asked
inline constexpr int kExitCannotExecute = 126;  // the command cannot be run, or not under Spillway
inline constexpr int kExitCommandNotFound = 127;

class Failure : public std::exception {
 public:
  Failure(int exit_code, base::Error error);
  Failure(int exit_code, std::string what, std::string why, std::string remedy)
      : Failure(exit_code, base::Error{std::move(what), std::move(why), std::move(remedy)}) {}

  int exit_code() const { return exit_code_; }
  const std::string& problem() const { return error_.what; }
  const std::string& why() const { return error_.why; }
  // "spillway: <what>", "  why: ...", "  do:  ..."; each line ends with a newline.
  const std::string& text() const { return text_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  int exit_code_;
  base::Error error_;
  std::string text_;
};

// In the schema of all --json output.
std::string JsonOf(const Failure& failure);
void PrintIfJsonRequested(const std::vector<std::string>& arguments, const Failure& failure);

}  // namespace spillway::cli
