#include "interposer/planning/job_key.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "interposer/record/operation_shape.h"

namespace spillway::interposer {

namespace {

std::string CommandWord(int index) {
  char part[4096];
  const std::string all(base::ReadInto("/proc/self/cmdline", part));
  std::string word;
  for (std::size_t at = 0; at < all.size(); at += word.size() + 1, --index) {
    word = all.c_str() + at;
    if (index == 0) return word;
  }
  return "";
}

Shape MixPath(Shape shape, const std::string& path) {
  char whole[PATH_MAX];
  return MixShape(shape, ShapeOfName(realpath(path.c_str(), whole) ? whole : path.c_str()));
}

}  // namespace

std::uint64_t JobKey(const std::string& device_name, bool repeats_kernels) {
  Shape key = MixPath(ShapeOfName(device_name.c_str()), "/proc/self/exe");
  const std::string script = CommandWord(1);
  struct stat status {};
  if (!script.empty() && stat(script.c_str(), &status) == 0 && S_ISREG(status.st_mode))
    key = MixPath(key, script);
  return repeats_kernels ? MixShape(key, 1) : key;
}

}  // namespace spillway::interposer
