#include "cli/help.h"

namespace spillway::cli {
namespace {

constexpr char kOverview[] =
    R"(spillway - runs an unmodified CUDA program in less device memory than it wants

  spillway run [options] -- COMMAND...   run a command under a budget
  spillway doctor                        what on this machine would stop that
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
  -b, --budget SIZE        device memory the job may hold (default: all of the device)
      --host SIZE          host memory that evicted data may take (default: 80 % of what is free)
      --agent[=SOCKET]     follow the node agent: the budget is what it grants, at most --budget, and changes while the
                           job runs (default socket: $SPILLWAY_SOCKET, or /run/spillway/agent.sock). Without an agent
                           that takes it the job runs with the budget of this command line, and says so
      --require-agent      refuse to run without an agent that knows the device; the job gets no device memory but what
                           the agent grants. --agent=required is the same at the default socket. An administrator
                           can require it of all jobs: agent = "required" in /etc/spillway/run.toml
      --park WHEN          memory that is away stays mapped, on the host, so that kernels may reach it by pointers
                           in memory: host: always; off: never, the job is assumed_safe for; auto (default): until it
                           is known that its kernels build no structures of pointers
      --strategy NAME      who plans what moves once the job's iteration is known: spillway (default), or one of the
                           papers' strategies, for comparison (--strategy list shows their names)
      --no-learn           make no plan: move memory only when something else needs its place
      --plan-store DIR     where plans are kept, so that the next run of this job has one from its second iteration on
                           (default: $XDG_STATE_HOME/spillway/plans, or ~/.local/state/spillway/plans)
      --simulate[=PROFILE] run on the simulated GPU (k40c, m40, 1080ti, a100, h200; default h200)
  -r, --report FILE        write what happened as JSON when the job ends
      --trace FILE         write what happens, as it happens: operations, copies, memory, waits, plans, in Chrome's
                           trace format, for `spillway view FILE` or ui.perfetto.dev; costs some microseconds per
                           operation. A job that is killed leaves what it did. Child processes write FILE.<pid>
      --call-sites[=N]     list in the report which libraries and functions allocated the device memory, by every
                           N-th allocation (default 16) and all large ones; better where libunwind is installed
      --off                run the command without Spillway, for comparison
      --no-framework-switches
                           leave PYTORCH_CUDA_ALLOC_CONF, TF_GPU_ALLOCATOR, XLA_PYTHON_CLIENT_ALLOCATOR and
                           XLA_PYTHON_CLIENT_PREALLOCATE alone (else set to per-tensor allocation, unless you have)
  -q, --quiet              no start line, no summary, no progress line
  -h, --help

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

constexpr char kDoctor[] = R"(spillway doctor - what on this machine would stop a job under Spillway

  spillway doctor [--json] [--simulate[=PROFILE]]

Checks the installation, the driver and its device, the kernel's settings and this session. Each line is ok, warning
(slower, or something is lost) or problem (jobs will not run), with what to do about it.

Options
      --json                for scripts
      --simulate[=PROFILE]  look at the simulated GPU instead of a real one

Exit codes: 0 when there is no problem, 1 when there is one, 2 when the command line is wrong.
)";

constexpr char kStatus[] =
    R"(spillway status, jobs, job - what the node agent shares between which jobs

  spillway status [--json] [--socket PATH]     devices, then jobs
  spillway jobs [--json] [--socket PATH]
  spillway job NAME [--json] [--socket PATH]   all that is known of one job

Options
      --json              for scripts: "schema" is a number; fields keep their meaning within it. What fails says so with
                          "done": false, "exit_code", "problem" and "why"
      --socket PATH       of the agent (default: $SPILLWAY_SOCKET, or /run/spillway/agent.sock)

Budget is what a job may hold now, wanted what its program has allocated, resident what of that is on the device; the rest is
in host memory.

Exit codes: 0; 2 the command line is wrong; 3 there is no such job; 4 there is no agent.
)";

constexpr char kTop[] =
    R"(spillway top - the agent's status on the whole terminal, again every second

  spillway top [--json [--count N]] [--socket PATH]

Shows what each job moves in and out each second, which part of the time it waits for memory (Stall), how many iterations it does, how
much of its budget it uses, and its sizes; where a terminal is narrow, the less important columns are left out.

Keys: s sorts by the next of age, name, budget, wants, held, moved, stalls, iterations; r reverses; j, k, arrows, PgUp and PgDn move; Enter
shows all that is known of a job, Esc goes back; q or Ctrl-C quits, Ctrl-Z and fg work. Where the output is no terminal it prints one page,
as `spillway status` does. An agent that goes away is waited for.

Options
      --json              for scripts: every second a line, the document of `spillway status --json`; while there is no answer,
                          the one with "done": false. Ends with Ctrl-C, or when nobody reads any more
      --count N           end after so many lines
      --socket PATH       of the agent (default: $SPILLWAY_SOCKET, or /run/spillway/agent.sock)

Exit codes: 0; 1 the terminal was closed, or the reader; 2 the command line is wrong; 4 there is no agent at the start.
)";

constexpr char kBudget[] = R"(spillway budget - change what a running job may have

  spillway budget set JOB [SIZE] [options]

SIZE is the most device memory that the job may hold; with less than it holds, the rest goes to the host while it runs on.
Sizes are bytes with a unit (8GiB, 500MB), or a share of the device (25%), with --host of the node's host memory.

Options
      --guaranteed SIZE   device memory that comes back as soon as the job wants it
      --host SIZE         the most host memory for what is away
      --link PERCENT      the most of the link between host and device
      --weight N          of its share beside jobs of the same priority (1 to 10000)
      --priority N        higher goes first (0 to 1000)
      --dry-run           only say whether it would be done
      --json              for scripts
      --socket PATH       of the agent (default: $SPILLWAY_SOCKET, or /run/spillway/agent.sock)

Examples
  spillway budget set slurm-1201 12GiB --host 64GiB --link 50
  spillway budget set local-4711 --guaranteed 8GiB --priority 10 --dry-run

Exit codes: 0; 2 the command line is wrong; 3 refused, with the reason; 4 there is no agent.
)";

constexpr char kDrain[] =
    R"(spillway drain, undrain - let no new job begin on this node; let them again

  spillway drain [--json] [--socket PATH]
  spillway undrain [--json] [--socket PATH]

Jobs that run go on.

Options
      --json              for scripts
      --socket PATH       of the agent (default: $SPILLWAY_SOCKET, or /run/spillway/agent.sock)

Exit codes: 0; 2 the command line is wrong; 3 not permitted; 4 there is no agent.
)";

constexpr char kConfig[] = R"(spillway config - the node agent's configuration

  spillway config check    say what is wrong with /etc/spillway/spillway.toml and its drop-ins
  spillway config show     the whole configuration, with what nobody has set
  spillway config diff     what differs from the defaults
  spillway config reload   let the agent read it again: all of it, or nothing
  spillway config log LEVEL   how much the agent logs until then: trace, debug, info, warn or error

Options
      --config FILE       to check or show instead of /etc/spillway/spillway.toml; drop-ins are in spillway.d beside it
      --json              for scripts
      --socket PATH       of the agent that is asked (default: $SPILLWAY_SOCKET, or /run/spillway/agent.sock)

Exit codes: 0; 1 the configuration is wrong; 2 the command line is; 3 refused, with the reason; 4 there is no agent.
)";

constexpr char kCompletion[] = R"text(spillway completion - teach a shell the command's words

  spillway completion bash|zsh|fish

Prints a script. For one session: eval "$(spillway completion bash)", or: spillway completion fish | source
For good: into /usr/share/bash-completion/completions/spillway, /usr/share/zsh/vendor-completions/_spillway,
or /usr/share/fish/vendor_completions.d/spillway.fish.
)text";

}  // namespace

std::string HelpText(const std::string& topic) {
  if (topic.empty()) return kOverview;
  if (topic == "run") return kRun;
  if (topic == "doctor") return kDoctor;
  if (topic == "status" || topic == "jobs" || topic == "job") return kStatus;
  if (topic == "top") return kTop;
  if (topic == "budget") return kBudget;
  if (topic == "drain" || topic == "undrain") return kDrain;
  if (topic == "config") return kConfig;
  if (topic == "completion") return kCompletion;
  throw Failure(kExitUsage, "no help on '" + topic + "'",
                "the topics are run, doctor, status, top, budget, drain, config, completion, plan, "
                "trace and advise",
                "see: spillway --help");
}

std::string VersionText() { return "spillway " SPILLWAY_VERSION "\n"; }

Failure UnexpectedOperand(const std::string& subcommand, const std::string& operand) {
  return {kExitUsage, "unexpected '" + operand + "'",
          "`spillway " + subcommand + "` takes options only", "see: spillway help " + subcommand};
}

}  // namespace spillway::cli
