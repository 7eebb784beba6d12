// `spillway view`: from a trace file to a page.
//
// One thread; prints where the page is, throws Failure.
#pragma once

#include <string>

namespace spillway::cli {

struct ViewOptions {
  std::string trace;
  std::string output;  // empty: beside the trace, with .html for .json; "-": standard output
};

int RunViewCommand(const ViewOptions& options);

}  // namespace spillway::cli
