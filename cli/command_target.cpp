#include "cli/command_target.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "cli/elf_file.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/script_file.h"

namespace spillway::cli {
namespace {

// The kernel follows at most so many interpreters (BINPRM limits, execve(2)).
constexpr int kMaxInterpreters = 5;

bool IsExecutableFile(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

Failure NotFound(const std::string& name, const std::string& why) {
  return {kExitCommandNotFound, "command not found: " + name, why,
          "check the spelling, or give the full path"};
}

Failure NotExecutable(const std::string& path, const std::string& why, const std::string& remedy) {
  return {kExitCannotExecute, "cannot execute " + path, why, remedy};
}

Failure NotPreloadable(const std::string& path, const std::string& why, const std::string& remedy) {
  return {kExitCannotExecute, "cannot put a budget on " + path, why, remedy};
}

std::string CheckGivenPath(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw NotFound(path, "there is no such file");
    throw NotExecutable(path, std::strerror(errno), "check the permissions of its folders");
  }
  if (S_ISDIR(facts.st_mode))
    throw NotExecutable(path, "it is a folder", "name the program inside it");
  if (access(path.c_str(), X_OK) != 0) {
    throw NotExecutable(path, "you may not execute it", "make it executable: chmod +x " + path);
  }
  return AbsolutePath(path);
}

std::string FindInPath(const std::string& name) {
  const char* variable = getenv("PATH");
  const std::string path = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (IsExecutableFile(candidate)) return AbsolutePath(candidate);
    begin = end + 1;
  }
  throw NotFound(name, "no executable file of this name is in PATH (" + path + ")");
}

void CheckPrivileges(const std::string& path, const Identity& identity) {
  const std::string why =
      "so the dynamic loader ignores LD_PRELOAD for it, and its memory would go uncounted";
  const std::string remedy =
      "run a copy without the privilege, or start the program that it starts in turn directly "
      "under Spillway";
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return;
  if ((facts.st_mode & S_ISUID) != 0 && facts.st_uid != identity.user) {
    throw NotPreloadable(
        path, "it is set-user-id (runs as user " + std::to_string(facts.st_uid) + "), " + why,
        remedy);
  }
  if ((facts.st_mode & S_ISGID) != 0 && facts.st_gid != identity.group) {
    throw NotPreloadable(
        path, "it is set-group-id (runs as group " + std::to_string(facts.st_gid) + "), " + why,
        remedy);
  }
  // Root gains nothing from file capabilities, so its programs keep their preloads.
  if (identity.user != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    throw NotPreloadable(path, "it carries file capabilities (see getcap), " + why, remedy);
  }
}

void CheckLoader(const std::string& path, const std::string& loader) {
  if (loader.find("ld-musl") != std::string::npos) {
    throw NotPreloadable(
        path,
        "it is built for musl libc (" + loader + "), libspillway.so and NVIDIA's driver for glibc",
        "use a glibc build of the program, for example from a Debian or Ubuntu image");
  }
  if (access(loader.c_str(), F_OK) != 0) {
    throw NotExecutable(path, "its dynamic loader " + loader + " does not exist here",
                        "install the C library it was built for, or use a build for this machine");
  }
}

void CheckElf(const std::string& path, const ElfFacts& elf) {
  switch (elf.verdict) {
    case ElfVerdict::kDynamic:
      return CheckLoader(path, elf.interpreter);
    case ElfVerdict::kStatic:
      throw NotPreloadable(
          path,
          "it is statically linked: it starts without the dynamic loader, so nothing is preloaded",
          "use a dynamically linked build (for nvcc and g++: without -static)");
    case ElfVerdict::kForeign:
      throw NotPreloadable(
          path,
          "it is a " + elf.detail + " program, Spillway here is built for another machine type",
          "use a build for this machine's 64-bit type");
    case ElfVerdict::kDamaged:
      throw NotExecutable(path, "its ELF headers are damaged or it is not a program",
                          "build or copy it again");
    case ElfVerdict::kNotElf:
      throw NotExecutable(path, "it is neither an ELF program nor a script with a #! line",
                          "name the interpreter: spillway run -- bash " + path);
  }
}

// Nullopt: a program that passed the checks, with its `loader`.
std::optional<std::string> CheckOneFile(const std::string& path, const Identity& identity,
                                        std::string* loader) {
  CheckPrivileges(path, identity);
  const base::Result<MappedFile> file = MappedFile::Open(path);
  if (!file) {
    throw NotPreloadable(
        path, "it cannot be read to see what it is: " + file.error().why,
        "make it readable: an execute-only program cannot be checked, and drops its preloads");
  }
  const std::optional<std::string> interpreter = ScriptInterpreter(file->view());
  if (interpreter) return interpreter;
  const ElfFacts elf = InspectElf(file->view());
  CheckElf(path, elf);
  *loader = elf.interpreter;
  return std::nullopt;
}

}  // namespace

Identity CurrentIdentity() { return {.user = getuid(), .group = getgid()}; }

std::string FindCommand(const std::string& name) {
  if (name.empty()) throw NotFound("''", "the command is empty");
  return name.find('/') == std::string::npos ? FindInPath(name) : CheckGivenPath(name);
}

LoadedProgram CheckPreloadable(const std::string& path, const Identity& identity) {
  std::string current = path;
  std::string loader;
  for (int depth = 0; depth < kMaxInterpreters; ++depth) {
    const std::optional<std::string> interpreter = CheckOneFile(current, identity, &loader);
    if (!interpreter) return {.path = current, .loader = loader};
    if (!IsExecutableFile(*interpreter)) {
      throw NotExecutable(
          current, "its #! line names " + *interpreter + ", which is not an executable file here",
          "install that interpreter or correct the line");
    }
    current = *interpreter;
  }
  throw NotExecutable(path, "its chain of #! interpreters does not end", "correct the #! lines");
}

}  // namespace spillway::cli
