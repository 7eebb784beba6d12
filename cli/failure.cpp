#include "cli/failure.h"

namespace spillway::cli {
namespace {

std::string Indented(const std::string& text) {
  std::string indented;
  for (char c : text) {
    indented += c;
    if (c == '\n') indented += "       ";
  }
  return indented;
}

}  // namespace

Failure::Failure(int exit_code, std::string what, std::string why, std::string remedy)
    : exit_code_(exit_code),
      problem_(what),
      why_(why),
      text_("spillway: " + what + "\n  why: " + Indented(why) + "\n  do:  " + Indented(remedy) + "\n") {}

}  // namespace spillway::cli
