#include "cli/cdi_command.h"

#include <errno.h>
#include <unistd.h>

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
#include "cli/agent_client.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/installation.h"
#include "cli/launch_checks.h"
#include "cli/options/option_parser.h"

namespace spillway::cli {
namespace {

constexpr char kKind[] = "spillway.dev/job", kShared[] = "shared";
constexpr char kJobSocket[] = "/run/spillway/jobs/agent.sock";

struct CdiOptions {
  std::optional<std::string> job_socket;  // nullopt: kJobSocket
  std::string allocation;                 // empty: none
  std::string socket;                     // the operators'
  std::optional<std::uint64_t> budget_bytes;
  bool has_agent = true, sets_frameworks = true;
  std::string output;
  bool closes = false;
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
     [](CdiOptions& cdi, const std::string& value) { cdi.job_socket = value; }},
    {{"allocation", 0, Value("NAME"),
      "a socket of its own, which the agent makes, for one container: the first that connects "
      "there. The device is spillway.dev/job=NAME, and the agent holds it to --budget. Needs an "
      "operator's rights"},
     [](CdiOptions& cdi, const std::string& value) { cdi.allocation = value; }},
    {{"close", 0, kNoValue,
      "remove the socket of --allocation, and the file of --output, instead of writing one"},
     [](CdiOptions& cdi, const std::string&) { cdi.closes = true; }},
    SocketRow<CdiOptions>(),
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
// An allocation's own folder is the agent's word: only the agent passes the one above it.
std::string CheckedJobSocket(const std::string& written, bool is_of_allocation = false) {
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
  const std::filesystem::path own_folder = path.parent_path();
  const std::filesystem::path seen =
      base::Canonical(is_of_allocation ? own_folder.parent_path() : own_folder);
  if (seen.empty()) throw refused("its folder cannot be resolved", own);
  const std::filesystem::path folder = is_of_allocation ? seen / own_folder.filename() : seen;
  if (HoldsTheAgentsSocket(seen, folder / name))
    throw refused(
        "in its folder is the agent's other socket, through which a container's root "
        "would operate the node",
        own);
  if (IsSystemFolder(folder)) throw refused("a container would get all of " + folder.string(), own);
  return folder / name;
}

std::string SocketOf(const CdiOptions& cdi) {
  if (!cdi.has_agent) return "";
  if (cdi.allocation.empty()) return CheckedJobSocket(cdi.job_socket.value_or(kJobSocket));
  protocol::OpenListener wanted;
  wanted.allocation = cdi.allocation;
  if (cdi.budget_bytes) wanted.limit_bytes = static_cast<int64_t>(*cdi.budget_bytes);
  return CheckedJobSocket(AgentClient(cdi.socket).OpenListener(wanted), true);
}

// The agent holds an allocation to its budget: no variable of the container's says it.
base::ContainerNeeds NeedsOf(const CdiOptions& cdi, const Installation& installation) {
  CheckPreloadLibrary(installation);
  const std::string socket = SocketOf(cdi);
  return {.library = installation.preload_library,
          .job_socket = socket,
          .sets_frameworks = cdi.sets_frameworks,
          .budget_bytes = cdi.allocation.empty() ? cdi.budget_bytes : std::nullopt};
}

void CheckTogether(const CdiOptions& cdi) {
  if (cdi.closes && cdi.allocation.empty())
    throw Failure(kExitUsage, "--close needs --allocation",
                  "only an allocation has a socket to remove",
                  "name it: spillway cdi --allocation NAME --close");
  if (cdi.allocation.empty()) return;
  if (protocol::JobName(cdi.allocation).view() != cdi.allocation)
    throw Failure(kExitUsage, "--allocation cannot be '" + cdi.allocation + "'",
                  "a name has at most 63 letters, digits, dashes and dots", "take a shorter name");
  if (cdi.allocation == kShared)
    throw Failure(kExitUsage, "an allocation cannot be named 'shared'",
                  "that is the device of the containers without one", "take another name");
  if (!cdi.has_agent || cdi.job_socket)
    throw Failure(kExitUsage,
                  std::string("--allocation and ") +
                      (cdi.has_agent ? "--job-socket" : "--no-agent") + " cannot be given together",
                  "the agent makes an allocation's socket", "leave one of them out");
}

int CloseAllocation(const CdiOptions& cdi) {
  AgentClient agent(cdi.socket);
  const protocol::Done done = agent.OutcomeOf(protocol::CloseListener{cdi.allocation});
  const std::string text(done.text.view());
  const bool is_unknown = done.outcome == protocol::Outcome::kUnknownJob;  // since a reboot, say
  if (!is_unknown && done.outcome != protocol::Outcome::kDone)
    throw Failure(kExitRefusedByAgent, "refused", text, "see: spillway status");
  if (!cdi.output.empty() && unlink(cdi.output.c_str()) != 0 && errno != ENOENT)
    throw Failure(kExitRefused, base::ErrnoError("cannot remove " + cdi.output));
  if (is_unknown)
    throw Failure(kExitRefusedByAgent, "refused", text, "see: spillway status --json");
  if (!text.empty()) std::fprintf(stderr, "spillway: %s\n", text.c_str());
  return 0;
}

std::string ListOf(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + base::JsonQuoted(word);
  return "[" + list + "]";
}

}  // namespace

std::string CdiSpecification(const base::ContainerNeeds& needs, const std::string& device) {
  const base::ContainerEdits edits = base::EditsFor(needs);
  std::string mounts;
  for (const base::ContainerMount& mount : edits.mounts)
    mounts += std::string(mounts.empty() ? "" : ",") +
              "\n     {\"hostPath\": " + base::JsonQuoted(mount.host) +
              ", \"containerPath\": " + base::JsonQuoted(mount.inside) +
              ", \"options\": " + ListOf(mount.options) + "}";
  return "{\"cdiVersion\": " + base::JsonQuoted(base::kCdiVersion) +
         ",\n \"kind\": " + base::JsonQuoted(kKind) +
         ",\n \"devices\": [{\"name\": " + base::JsonQuoted(device) +
         ", \"containerEdits\": {\n   \"env\": " + ListOf(edits.variables) + ",\n   \"mounts\": [" +
         mounts + "]}}]}\n";
}

std::vector<Option> CdiOptionList() { return OptionsIn(kCdiRows); }

int RunCdi(const std::vector<std::string>& arguments) {
  CdiOptions cdi;
  const auto operands = ParseOptions(arguments, kCdiRows, cdi);
  if (!operands.empty()) throw UnexpectedOperand("cdi", operands.front());
  CheckTogether(cdi);
  if (cdi.closes && !cdi.help) return CloseAllocation(cdi);
  const std::string device = cdi.allocation.empty() ? kShared : cdi.allocation;
  const std::string text =
      cdi.help ? HelpText("cdi") : CdiSpecification(NeedsOf(cdi, FindInstallation()), device);
  if (cdi.help || cdi.output.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  if (const base::Status written = base::ReplaceFile(cdi.output, text, {.mode = 0644});
      !written.ok())
    throw Failure(kExitRefused, written.error());
  std::fprintf(stderr, "spillway: wrote %s: podman run --device %s=%s ...\n", cdi.output.c_str(),
               kKind, device.c_str());
  return 0;
}

}  // namespace spillway::cli
