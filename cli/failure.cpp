#include "cli/failure.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/json_text.h"

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

Failure::Failure(int exit_code, base::Error error)
    : exit_code_(exit_code),
      error_(std::move(error)),
      text_("spillway: " + error_.what + "\n  why: " + Indented(error_.why) +
            "\n  do:  " + Indented(error_.remedy) + "\n") {}

std::string JsonOf(const Failure& failure) {
  return "{\"schema\": 1, \"done\": false, \"exit_code\": " + std::to_string(failure.exit_code()) +
         ", \"problem\": " + base::JsonQuoted(failure.problem()) +
         ", \"why\": " + base::JsonQuoted(failure.why()) + "}\n";
}

void PrintIfJsonRequested(const std::vector<std::string>& arguments, const Failure& failure) {
  if (std::find(arguments.begin(), arguments.end(), "--json") != arguments.end())
    std::fputs(JsonOf(failure).c_str(), stdout);
}

}  // namespace spillway::cli
