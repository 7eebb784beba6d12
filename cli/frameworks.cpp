#include "cli/frameworks.h"

#include <glob.h>

#include <cstdlib>
#include <vector>

#include "base/file.h"
#include "base/framework_settings.h"
#include "base/lines.h"
#include "cli/command_target.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/script_file.h"

namespace spillway::cli {
namespace {

using frameworks::kPerTensor;
using frameworks::kPyTorchNames;

// "NAME=VALUE"; the older name counts more where both are set.
std::optional<std::string> PyTorchSetting() {
  std::optional<std::string> found;
  for (const char* name : kPyTorchNames) {
    if (const char* value = std::getenv(name)) found = std::string(name) + "=" + value;
  }
  return found;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool IsPython(const std::string& path) { return BaseName(path).starts_with("python"); }

// `#!/usr/bin/env python3`: the word behind env.
std::string WordBehindInterpreter(std::string_view script) {
  const std::string_view line = script.substr(0, script.find('\n'));
  const size_t begin = line.find_last_of(" \t");
  return begin == line.npos ? "" : std::string(line.substr(begin + 1));
}

std::optional<std::string> PythonOf(const std::string& program_path) {
  if (IsPython(program_path)) return program_path;
  const base::Result<MappedFile> file = MappedFile::Open(program_path);
  if (!file) return std::nullopt;
  std::optional<std::string> interpreter = ScriptInterpreter(file->view());
  if (!interpreter) return std::nullopt;
  if (BaseName(*interpreter) == "env") interpreter = WordBehindInterpreter(file->view());
  if (!IsPython(*interpreter)) return std::nullopt;
  try {
    return FindCommand(*interpreter);
  } catch (const Failure&) {
    return std::nullopt;
  }
}

// docs.python.org, site
std::vector<std::string> PackageFolders(const std::string& python) {
  std::vector<std::string> folders;
  const std::string path = EnvironmentValue("PYTHONPATH");
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto add_prefix = [&](const std::string& prefix) {
    folders.push_back(prefix + "/lib/python3*/site-packages");
    folders.push_back(prefix + "/local/lib/python3*/dist-packages");
    folders.push_back(prefix + "/lib/python3*/dist-packages");
  };
  add_prefix(ParentFolder(ParentFolder(python)));
  if (const std::string home = EnvironmentValue("HOME"); !home.empty())
    folders.push_back(home + "/.local/lib/python3*/site-packages");
  if (const auto resolved = ResolvedPath(python)) add_prefix(ParentFolder(ParentFolder(*resolved)));
  return folders;
}

std::vector<std::string> FilesLike(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

// __version__ = '2.12.1+cu130'
std::optional<std::string> VersionIn(std::string_view text) {
  while (const auto line = base::TakeLine(text)) {
    if (!line->starts_with("__version__")) continue;
    const size_t begin = line->find_first_of("'\"");
    const size_t end = line->find_last_of("'\"");
    if (begin < end && end != line->npos)
      return std::string(line->substr(begin + 1, end - begin - 1));
  }
  return std::nullopt;
}

}  // namespace

void SwitchFrameworks(EnvironmentChanges& environment) {
  if (!PyTorchSetting()) {
    for (const char* name : kPyTorchNames) environment.Set(name, kPerTensor);
  }
  for (const frameworks::Setting& other : frameworks::kOthers)
    environment.SetDefault(other.name, other.value);
}

std::optional<std::string> PyTorchVersion(const std::string& program_path) {
  const std::optional<std::string> python = PythonOf(program_path);
  if (!python) return std::nullopt;
  for (const std::string& folder : PackageFolders(*python)) {
    for (const std::string& file : FilesLike(folder + "/torch/version.py")) {
      const base::Result<std::string> text = base::ReadFile(file);
      if (const auto version = text ? VersionIn(*text) : std::nullopt) return version;
    }
  }
  return std::nullopt;
}

std::string DescribePyTorch(const std::string& version, bool is_switched) {
  if (version.ends_with("+cpu")) return "";
  const std::string begin = "PyTorch " + version + ": ";
  const std::optional<std::string> own = PyTorchSetting();
  if (own && own->find(kPerTensor) != own->npos)
    return begin + "each tensor gets its own allocation, by your " + *own;
  if (own && own->find("expandable_segments:True") != own->npos)
    return begin + "your " + *own +
           " stays; memory of expandable segments moves only between the job's turns";
  if (own) return begin + "your " + *own + " stays; tensors move with their segments, not alone";
  if (!is_switched) return begin + "tensors move with their segments, not alone";
  return begin + "each tensor gets its own allocation (" + kPyTorchNames[0] + "=" + kPerTensor +
         "; --no-framework-env leaves it)";
}

}  // namespace spillway::cli
