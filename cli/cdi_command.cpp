#include "cli/cdi_command.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/environment.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/path.h"
#include "base/size_text.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/installation.h"
#include "cli/launch_checks.h"
#include "cli/options/option_parser.h"

namespace spillway::cli {
namespace {

constexpr char kKind[] = "spillway.dev/job", kDevice[] = "shared";
constexpr char kJobSocket[] = "/run/spillway/jobs/agent.sock";

struct CdiOptions {
  std::string socket = kJobSocket;
  std::optional<std::uint64_t> budget_bytes;
  bool has_agent = true, sets_frameworks = true;
  std::string output;
  bool help = false;
};

std::uint64_t ParseBudget(const std::string& value) {
  const std::optional<base::Size> size = base::ParseSize(value);
  if (size && size->kind == base::SizeKind::kBytes && size->bytes >= kSmallestBudgetBytes)
    return size->bytes;
  throw Failure(kExitUsage, "--budget cannot be '" + value + "'",
                "a specification is written before any job, so it holds bytes, at least " +
                    base::FormatBytesExactly(kSmallestBudgetBytes),
                "write for example --budget 8GiB");
}

constexpr OptionRow<CdiOptions> kCdiRows[] = {
    {{"budget", 'b', Value("SIZE"),
      "device memory that a job in such a container may hold, in bytes; with an agent the most "
      "that it asks for (default: all of the device)"},
     [](CdiOptions& cdi, const std::string& value) { cdi.budget_bytes = ParseBudget(value); }},
    {{"job-socket", 0, Value("SOCKET", Kind::kFile),
      "the agent's socket for jobs alone, [agent] job_socket in its configuration (default: "
      "/run/spillway/jobs/agent.sock). Its folder is mounted"},
     [](CdiOptions& cdi, const std::string& value) { cdi.socket = value; }},
    {{"no-agent", 0, kNoValue, "jobs follow no agent: --budget alone holds"},
     [](CdiOptions& cdi, const std::string&) { cdi.has_agent = false; }},
    {{"no-framework-env", 0, kNoValue, "leave the frameworks' variables alone (see spillway-run)"},
     [](CdiOptions& cdi, const std::string&) { cdi.sets_frameworks = false; }},
    {{"output", 'o', Value("FILE", Kind::kFile),
      "where to write it, for example /etc/cdi/spillway.json (default: standard output)"},
     [](CdiOptions& cdi, const std::string& value) { cdi.output = value; }},
    HelpRow<CdiOptions>(),
};

// Folders of the whole system, which no container may get.
bool IsSystemFolder(const std::filesystem::path& folder) {
  constexpr std::array kFolders{"/",    "/run",     "/var", "/var/run",
                                "/tmp", "/var/tmp", "/etc", "/dev"};
  for (const char* const one : kFolders)
    if (folder == one || folder == base::Canonical(one)) return true;
  return false;
}

bool HoldsTheAgentsSocket(const std::filesystem::path& folder, const std::string& socket) {
  const char* const set = std::getenv(environment::kSocket);
  const std::string named = set == nullptr ? "" : set;
  return base::IsInFolder(environment::kDefaultSocket, folder) ||
         (named.starts_with('/') && base::Canonical(named) != socket &&
          base::IsInFolder(named, folder));
}

// Its folder without links, dots and double slashes: the specification names what was checked.
std::string CheckedJobSocket(const std::string& written) {
  const auto refused = [&](const std::string& why, const std::string& remedy) {
    return Failure(kExitUsage, "--job-socket cannot be '" + written + "'", why, remedy);
  };
  const std::string own =
      "name [agent] job_socket of the agent's configuration, in a folder of its "
      "own, for example --job-socket " +
      std::string(kJobSocket);
  const std::filesystem::path path(written), name = path.filename();
  if (!path.is_absolute())
    throw refused("a container gets its folder, so it takes an absolute path", own);
  if (name.empty() || name == "." || name == "..") throw refused("it names no file", own);
  const std::filesystem::path folder = base::Canonical(path.parent_path());
  if (folder.empty()) throw refused("its folder cannot be resolved", own);
  if (HoldsTheAgentsSocket(folder, folder / name))
    throw refused(
        "in its folder is the agent's other socket, through which a container's root "
        "would operate the node",
        own);
  if (IsSystemFolder(folder)) throw refused("a container would get all of " + folder.string(), own);
  return folder / name;
}

base::ContainerNeeds NeedsOf(const CdiOptions& cdi, const Installation& installation) {
  const std::string socket = cdi.has_agent ? CheckedJobSocket(cdi.socket) : "";
  CheckPreloadLibrary(installation);
  return {.library = installation.preload_library,
          .job_socket = socket,
          .sets_frameworks = cdi.sets_frameworks,
          .budget_bytes = cdi.budget_bytes};
}

std::string ListOf(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + base::JsonQuoted(word);
  return "[" + list + "]";
}

}  // namespace

std::string CdiSpecification(const base::ContainerNeeds& needs) {
  const base::ContainerEdits edits = base::EditsFor(needs);
  std::string mounts;
  for (const base::ContainerMount& mount : edits.mounts)
    mounts += std::string(mounts.empty() ? "" : ",") +
              "\n     {\"hostPath\": " + base::JsonQuoted(mount.host) +
              ", \"containerPath\": " + base::JsonQuoted(mount.inside) +
              ", \"options\": " + ListOf(mount.options) + "}";
  return "{\"cdiVersion\": " + base::JsonQuoted(base::kCdiVersion) +
         ",\n \"kind\": " + base::JsonQuoted(kKind) +
         ",\n \"devices\": [{\"name\": " + base::JsonQuoted(kDevice) +
         ", \"containerEdits\": {\n   \"env\": " + ListOf(edits.variables) + ",\n   \"mounts\": [" +
         mounts + "]}}]}\n";
}

std::vector<Option> CdiOptionList() { return OptionsIn(kCdiRows); }

int RunCdi(const std::vector<std::string>& arguments) {
  CdiOptions cdi;
  const auto operands = ParseOptions(arguments, kCdiRows, cdi);
  if (!operands.empty()) throw UnexpectedOperand("cdi", operands.front());
  const std::string text =
      cdi.help ? HelpText("cdi") : CdiSpecification(NeedsOf(cdi, FindInstallation()));
  if (cdi.help || cdi.output.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  if (const base::Status written = base::ReplaceFile(cdi.output, text, {.mode = 0644});
      !written.ok())
    throw Failure(kExitRefused, written.error());
  std::fprintf(stderr, "spillway: wrote %s: podman run --device %s=%s ...\n", cdi.output.c_str(),
               kKind, kDevice);
  return 0;
}

}  // namespace spillway::cli
