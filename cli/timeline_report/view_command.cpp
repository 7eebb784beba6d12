#include "cli/timeline_report/view_command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "cli/failure.h"
#include "cli/timeline_report/recorded_run.h"
#include "cli/timeline_report/report_page.h"

namespace spillway::cli {
namespace {

constexpr int kExitFailed = 1;

RecordedRun Read(const std::string& path) {
  std::ifstream trace(path, std::ios::binary);
  if (!trace)
    throw Failure(kExitFailed, "cannot read " + path, std::strerror(errno),
                  "name a file that spillway run --trace wrote");
  return ReadRecordedRun(trace, path);
}

std::string OutputFor(const ViewOptions& options) {
  if (!options.output.empty()) return options.output;
  return std::filesystem::path(options.trace).replace_extension(".html").string();
}

void Write(const std::string& page, const std::string& path) {
  const base::Status written = base::WriteFile(path, page);
  if (!written.ok())
    throw Failure(kExitFailed, "cannot write " + path, written.error().why,
                  "choose another place with -o FILE");
}

}  // namespace

int RunViewCommand(const ViewOptions& options) {
  const std::string page = ReportPage(Read(options.trace));
  if (options.output == "-") {
    std::fputs(page.c_str(), stdout);
    return 0;
  }
  const std::string path = OutputFor(options);
  Write(page, path);
  std::printf("%s\n", path.c_str());
  return 0;
}

}  // namespace spillway::cli
