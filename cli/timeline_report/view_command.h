// `spillway view`: makes a page from a trace.
#pragma once

#include <string>

namespace spillway::cli {

struct ViewOptions {
  std::string trace;
  std::string output;  // empty: beside the trace, .html instead of .json; "-": standard output
};

int RunViewCommand(const ViewOptions& options);

}  // namespace spillway::cli
