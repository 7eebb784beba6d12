#include "cli/failure.h"

#include <algorithm>
#include <cstdio>

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

std::string EscapedForJson(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') escaped += '\\';
    const bool is_plain =
        static_cast<unsigned char>(letter) >= 0x20 && static_cast<unsigned char>(letter) < 0x7f;
    escaped += is_plain ? letter : '?';
  }
  return escaped;
}

std::string JsonOf(const Failure& failure) {
  return "{\"schema\": 1, \"done\": false, \"exit_code\": " + std::to_string(failure.exit_code()) +
         ", \"problem\": \"" + EscapedForJson(failure.problem()) + "\", \"why\": \"" +
         EscapedForJson(failure.why()) + "\"}\n";
}

void PrintWhereJsonIsAsked(const std::vector<std::string>& arguments, const Failure& failure) {
  if (std::find(arguments.begin(), arguments.end(), "--json") != arguments.end())
    std::fputs(JsonOf(failure).c_str(), stdout);
}

}  // namespace spillway::cli
