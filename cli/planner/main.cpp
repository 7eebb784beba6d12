// `spillway-plan`: runs `spillway plan`, `trace`, `advise` and `view`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/failure.h"
#include "cli/planner/advise_command.h"
#include "cli/planner/plan_command.h"
#include "cli/planner/trace_command.h"
#include "cli/timeline_report/view_command.h"

namespace spillway::cli {
namespace {

using Action = std::function<int()>;

void AddPlan(CLI::App& app, Action& action) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* plan =
      app.add_subcommand("plan", "plan an iteration at a budget, with one strategy or all of them");
  plan->add_option("TRACE", options->source, "profile or trace file, JSON, or network:NAME[:BATCH]")
      ->required();
  plan->add_option("-b,--budget", options->budget,
                   "8GiB, 25% of the device, 50%peak of the profile")
      ->capture_default_str();
  plan->add_option("-s,--strategy", options->strategy,
                   "a strategy's name, or all (default: spillway)");
  plan->add_option("-d,--device", options->device, "k40c, m40, 1080ti, a100 or h200")
      ->capture_default_str();
  plan->add_option("--chunk", options->chunk, "granularity of device memory")
      ->capture_default_str();
  plan->add_option("--link-share", options->link_percent, "per cent of the link that the job has")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  plan->add_option("--seed", options->seed, "for strategies that draw at random")
      ->capture_default_str();
  plan->add_flag("--repair", options->repair,
                 "put right what a strategy's rule leaves over the budget");
  plan->add_flag("--place", options->place, "give buffers addresses");
  plan->add_flag("--explain", options->explain, "why each action was taken");
  plan->add_flag("--json", options->json, "for scripts");
  plan->add_option("--svg", options->svg_path, "draw memory and engines over time into a file");
  plan->add_option("--perfetto", options->perfetto_path, "write a trace for ui.perfetto.dev");
  plan->add_option(
      "--curve", options->curve_path,
      "draw the slow-down over budgets, all strategies, into an SVG file (takes minutes)");
  plan->callback([options, &action] { action = [options] { return RunPlanCommand(*options); }; });
}

struct TraceOptions {
  std::string source, output, device = "h200";
  bool as_profile = false;
  uint64_t from = 0, until = 0;
};

void AddTrace(CLI::App& app, Action& action) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* trace =
      app.add_subcommand("trace", "look at profile and trace files, convert and cut them");
  trace->require_subcommand(1);

  CLI::App* print = trace->add_subcommand("print", "one line per operation or event");
  print->add_option("FILE", options->source)->required();
  print->add_option("-d,--device", options->device, "for durations of networks")
      ->capture_default_str();
  print->callback([options, &action] {
    action = [options] { return PrintTrace(options->source, options->device); };
  });

  CLI::App* convert =
      trace->add_subcommand("convert", "to JSON (output ends in .json) or to our own form");
  convert->add_option("FILE", options->source)->required();
  convert->add_option("OUTPUT", options->output)->required();
  convert->add_option("-d,--device", options->device, "for durations of networks")
      ->capture_default_str();
  convert->add_flag("--profile", options->as_profile, "take a trace for one iteration");
  convert->callback([options, &action] {
    action = [options] {
      return ConvertTrace(options->source, options->output, options->device, options->as_profile);
    };
  });

  CLI::App* trim = trace->add_subcommand("trim", "keep some of a trace's events");
  trim->add_option("FILE", options->source)->required();
  trim->add_option("OUTPUT", options->output)->required();
  trim->add_option("--from", options->from, "first event to keep")->capture_default_str();
  trim->add_option("--until", options->until, "first event not to keep")->required();
  trim->callback([options, &action] {
    action = [options] {
      return TrimTrace(options->source, options->output, options->from, options->until);
    };
  });
}

void AddAdvise(CLI::App& app, Action& action) {
  auto options = std::make_shared<AdviseOptions>();
  CLI::App* advise = app.add_subcommand(
      "advise", "which minibatch to train with, from profiles at two or more batch sizes");
  advise
      ->add_option("PROFILE", options->sources,
                   "profile or trace file, JSON, or network:NAME:BATCH")
      ->required()
      ->expected(2, 64);
  advise
      ->add_option("-b,--budget", options->budget,
                   "8GiB, 25% of the device, 50%peak of the last profile")
      ->capture_default_str();
  advise->add_option("-d,--device", options->device, "k40c, m40, 1080ti, a100 or h200")
      ->capture_default_str();
  advise->add_option("--chunk", options->chunk, "granularity of device memory")
      ->capture_default_str();
  advise->add_option("--learning-rate", options->learning_rate, "tuned for the base batch");
  advise->add_option("--base-batch", options->base_batch, "default: the smallest profile's");
  advise->add_option("--batch-step", options->batch_step, "consider multiples of this")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  advise->add_option("--most-batch", options->most_batch, "consider none larger")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  advise->add_flag("--json", options->json, "for scripts");
  advise->callback(
      [options, &action] { action = [options] { return RunAdviseCommand(*options); }; });
}

void AddView(CLI::App& app, Action& action) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* view =
      app.add_subcommand("view", "what a job did, from its trace, as one page for a browser");
  view->add_option("TRACE", options->trace,
                   "what `spillway run --trace TRACE` wrote; the job may still run")
      ->required();
  view->add_option("-o,--output", options->output,
                   "the page, - for standard output (default: beside the trace, .html)");
  view->footer(
      "The page shows memory over time, what was moved and why, prefetches used, late and not "
      "used, waits by "
      "cause,\n"
      "idle times, and iterations against the plan's prediction. It needs no network.\n\n"
      "Example\n"
      "  spillway run --budget 50% --trace t.json -- ./train && spillway view t.json -o "
      "report.html\n\n"
      "Exit codes: 0; 1 the trace cannot be read, or the page not be written; 2 the command line "
      "is wrong.");
  view->callback([options, &action] { action = [options] { return RunViewCommand(*options); }; });
}

int Run(int argc, char** argv) {
  CLI::App app("spillway - plans for jobs that want more device memory than they have", "spillway");
  app.require_subcommand(1);
  Action action;
  AddPlan(app, action);
  AddTrace(app, action);
  AddAdvise(app, action);
  AddView(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return action();
}

}  // namespace
}  // namespace spillway::cli

int main(int argc, char** argv) {
  try {
    return spillway::cli::Run(argc, argv);
  } catch (const spillway::cli::Failure& failure) {
    std::fputs(failure.text().c_str(), stderr);
    return failure.exit_code();
  }
}
