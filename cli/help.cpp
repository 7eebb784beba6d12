#include "cli/help.h"

#include <algorithm>

#include "base/options/option_help.h"
#include "cli/command_list.h"

namespace spillway::cli {
namespace {

constexpr char kOverview[] =
    R"(spillway - runs an unmodified CUDA program in less device memory than it wants

  spillway run [options] -- COMMAND...   run a command under a budget
  spillway doctor                        what on this machine would stop that
  spillway cdi                           a CDI specification: containers of any image under Spillway
  spillway plan TRACE --budget SIZE      what a recorded or modelled iteration would cost at a budget
  spillway trace print|convert|trim      look at recorded iterations
  spillway view TRACE -o REPORT.html     what a job did, from run --trace, as one page for a browser
  spillway advise PROFILE PROFILE...     which minibatch suits a budget
  spillway status | jobs | job NAME      what the node agent shares between which jobs
  spillway top                           the same, live, on the whole terminal
  spillway budget set JOB SIZE           give a running job another budget
  spillway drain | undrain               let no new job begin on this node; let them again
  spillway config check|show|diff|reload the agent's configuration; config log LEVEL: what it logs
  spillway completion bash|zsh|fish      teaches a shell these words
  spillway help run                      all options, sizes and exit codes
  spillway --version

Examples
  spillway run --budget 8GiB -- ./train --epochs 10
  spillway run --simulate -- build/workloads/digits_cnn                    (no GPU needed)
  spillway run --simulate --budget 25%peak -- build/workloads/digits_cnn   (a quarter of what it wanted)
)";

constexpr char kRun[] = R"(spillway run - run a command under a device memory budget

  spillway run [options] -- COMMAND [ARGUMENTS...]

The command becomes this process: same pid, same signals, same exit code, same output. What it wants beyond its
budget is kept in host memory while it is idle, and is back when a kernel needs it.

Options
@OPTIONS@
Sizes
  8GiB 8192MiB 8G 1.5GiB   binary units: KiB MiB GiB TiB, and K M G T alone
  500MB 8GB                decimal units: kB MB GB TB
  8589934592               bytes
  25%                      of the device's memory
  25%peak                  of what this same command wanted at its peak in an earlier run

Examples
  spillway run --budget 8GiB --report report.json -- python3 train.py --epochs 10
  spillway run -b 50% --trace t.json -- ./train && spillway view t.json -o report.html
  spillway run -- ./train              first run: measures the peak ...
  spillway run -b 50%peak -- ./train   ... which later runs can take a share of

Exit codes: the command's own, or
  2    the command line is wrong
  125  Spillway cannot work here, or not with this budget, or not without the agent that is required
  126  the command cannot be executed, or not under Spillway (static, set-user-id, other machine type)
  127  the command was not found
)";

constexpr char kCdi[] =
    R"(spillway cdi - a CDI specification, by which containers run under Spillway

  spillway cdi @USAGE@

A container with this device has the library preloaded into all its programs, and follows the node agent through the
agent's socket for jobs alone. It needs glibc 2.28 or newer. The GPU itself comes as before, for example by nvidia.com/gpu.

With --allocation the container has a socket of its own. Its device is spillway.dev/job=NAME.

Options
@OPTIONS@
Examples
  spillway cdi -o /etc/cdi/spillway.json
  podman run --device nvidia.com/gpu=all --device spillway.dev/job=shared IMAGE python3 train.py
  spillway cdi --allocation team-a --budget 16GiB -o /etc/cdi/spillway-team-a.json
  podman run --device nvidia.com/gpu=all --device spillway.dev/job=team-a IMAGE python3 train.py
  spillway cdi --allocation team-a -o /etc/cdi/spillway-team-a.json --close
)";

constexpr char kDoctor[] = R"(spillway doctor - what on this machine would stop a job under Spillway

  spillway doctor @USAGE@

Checks the installation, the driver and its device, the kernel's settings and this session. Each line is ok, warning
(slower, or something is lost) or problem (jobs will not run), with what to do about it.

Options
@OPTIONS@
Exit codes: 0 when there is no problem, 1 when there is one, 2 when the command line is wrong.
)";

constexpr char kStatus[] =
    R"(spillway status, jobs, job - what the node agent shares between which jobs

  spillway status @USAGE@     devices, then jobs
  spillway jobs @USAGE@
  spillway job NAME @USAGE@   all that is known of one job

A beginning or an end of NAME is enough where no other job's name has it. Numbers are not split: local-118 is not local-1187.

Options
@OPTIONS@
Budget is what a job may hold now, wanted what its program has allocated, resident what of that is on the device; the rest is
in host memory.

Exit codes: 0; 2 the command line is wrong; 3 there is no such job; 4 there is no agent.
)";

constexpr char kTop[] =
    R"(spillway top - the agent's status on the whole terminal, again every second

  spillway top @USAGE@

Shows what each job moves in and out each second, which part of the time it waits for memory (Stall), how many iterations it does, how
much of its budget it uses, and its sizes; where a terminal is narrow, the less important columns are left out.

Keys: s sorts by the next of age, name, budget, wants, held, moved, stalls, iterations; r reverses; j, k, arrows, PgUp and PgDn move; Enter
shows all that is known of a job, Esc goes back; q or Ctrl-C quits, Ctrl-Z and fg work. Where the output is no terminal it prints one page,
as `spillway status` does. An agent that goes away is waited for.

Options
@OPTIONS@
Exit codes: 0; 1 the terminal was closed, or the reader; 2 the command line is wrong; 4 there is no agent at the start.
)";

constexpr char kBudget[] = R"(spillway budget - change what a running job may have

  spillway budget set JOB [SIZE] [options]

SIZE is the most device memory that the job may hold; with less than it holds, the rest goes to the host while it runs on.
Sizes are bytes with a unit (8GiB, 500MB), or a share of the device (25%), with --host of the node's host memory.
A beginning or an end of JOB is enough where no other job's name has it; numbers are not split.

Options
@OPTIONS@
Examples
  spillway budget set slurm-1201 12GiB --host 64GiB --link 50
  spillway budget set local-4711 --guaranteed 8GiB --priority 10 --dry-run

Exit codes: 0; 2 the command line is wrong; 3 refused, with the reason; 4 there is no agent.
)";

constexpr char kDrain[] =
    R"(spillway drain, undrain - let no new job begin on this node; let them again

  spillway drain @USAGE@
  spillway undrain @USAGE@

Jobs that run go on.

Options
@OPTIONS@
Exit codes: 0; 2 the command line is wrong; 3 not permitted; 4 there is no agent.
)";

constexpr char kConfig[] = R"(spillway config - the node agent's configuration

  spillway config check    say what is wrong with /etc/spillway/spillway.toml and its drop-ins
  spillway config show     the whole configuration, with what nobody has set
  spillway config diff     what differs from the defaults
  spillway config reload   let the agent read it again: all of it, or nothing
  spillway config log LEVEL   how much the agent logs until then: trace, debug, info, warn or error

Options
@OPTIONS@
Exit codes: 0; 1 the configuration is wrong; 2 the command line is; 3 refused, with the reason; 4 there is no agent.
)";

constexpr char kCompletion[] = R"text(spillway completion - teach a shell the command's words

  spillway completion bash|zsh|fish

Prints a script. For one session: eval "$(spillway completion bash)", or: spillway completion fish | source
For good: into /usr/share/bash-completion/completions/spillway, /usr/share/zsh/vendor-completions/_spillway,
or /usr/share/fish/vendor_completions.d/spillway.fish.
)text";

struct Topic {
  std::string_view name;
  const char* text;  // @OPTIONS@: the list of options; @USAGE@: in brackets
};

constexpr Topic kTopics[] = {{"run", kRun},       {"doctor", kDoctor}, {"cdi", kCdi},
                             {"status", kStatus}, {"jobs", kStatus},   {"job", kStatus},
                             {"top", kTop},       {"budget", kBudget}, {"drain", kDrain},
                             {"undrain", kDrain}, {"config", kConfig}, {"completion", kCompletion}};

void ReplaceAll(std::string& text, std::string_view mark, const std::string& replacement) {
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += replacement.size())
    text.replace(at, mark.size(), replacement);
}

std::vector<Option> OptionsNamed(std::string_view command_name) {
  for (const Command& command : AllCommands())
    if (command.name == command_name) return command.options;
  return {};
}

}  // namespace

std::string HelpText(const std::string& topic_name) {
  if (topic_name.empty()) return kOverview;
  const auto* topic = std::find_if(std::begin(kTopics), std::end(kTopics),
                                   [&](const Topic& one) { return one.name == topic_name; });
  if (topic == std::end(kTopics))
    throw Failure(kExitUsage, "no help on '" + topic_name + "'",
                  "the topics are " + Listed(HelpTopics()), "see: spillway --help");
  const std::vector<Option> options = OptionsNamed(topic_name);
  std::string text = topic->text;
  ReplaceAll(text, "@OPTIONS@", base::OptionsHelp(options));
  ReplaceAll(text, "@USAGE@", base::OptionsUsage(options));
  return text;
}

std::string VersionText() { return "spillway " SPILLWAY_VERSION "\n"; }

Failure UnexpectedOperand(const std::string& subcommand, const std::string& operand) {
  return {kExitUsage, "unexpected '" + operand + "'",
          "`spillway " + subcommand + "` takes options only", "see: spillway help " + subcommand};
}

}  // namespace spillway::cli
