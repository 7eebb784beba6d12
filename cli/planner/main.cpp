#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/failure.h"
#include "cli/options/option.h"
#include "cli/planner/advise_command.h"
#include "cli/planner/option_binding.h"
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
  const OptionBinding stated(*plan, "plan");
  stated.Bind("budget", options->budget)->capture_default_str();
  stated.Bind("strategy", options->strategy);
  stated.Bind("device", options->device)->capture_default_str();
  stated.Bind("chunk", options->chunk)->capture_default_str();
  stated.Bind("link-share", options->link_percent)
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  stated.Bind("seed", options->seed)->capture_default_str();
  stated.Bind("repair", options->repair);
  stated.Bind("place", options->place);
  stated.Bind("explain", options->explain);
  stated.Bind("json", options->json);
  stated.Bind("svg", options->svg_path);
  stated.Bind("perfetto", options->perfetto_path);
  stated.Bind("curve", options->curve_path);
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
  OptionBinding(*print, "trace").Bind("device", options->device)->capture_default_str();
  print->callback([options, &action] {
    action = [options] { return PrintTrace(options->source, options->device); };
  });

  CLI::App* convert =
      trace->add_subcommand("convert", "to JSON (output ends in .json) or to our own form");
  convert->add_option("FILE", options->source)->required();
  convert->add_option("OUTPUT", options->output)->required();
  OptionBinding(*convert, "trace").Bind("device", options->device)->capture_default_str();
  OptionBinding(*convert, "trace").Bind("profile", options->as_profile);
  convert->callback([options, &action] {
    action = [options] {
      return ConvertTrace(options->source, options->output, options->device, options->as_profile);
    };
  });

  CLI::App* trim = trace->add_subcommand("trim", "keep some of a trace's events");
  trim->add_option("FILE", options->source)->required();
  trim->add_option("OUTPUT", options->output)->required();
  OptionBinding(*trim, "trace").Bind("from", options->from)->capture_default_str();
  OptionBinding(*trim, "trace").Bind("until", options->until)->required();
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
  const OptionBinding stated(*advise, "advise");
  stated.Bind("budget", options->budget)->capture_default_str();
  stated.Bind("device", options->device)->capture_default_str();
  stated.Bind("chunk", options->chunk)->capture_default_str();
  stated.Bind("learning-rate", options->learning_rate);
  stated.Bind("base-batch", options->base_batch);
  stated.Bind("batch-step", options->batch_step)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  stated.Bind("most-batch", options->most_batch)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  stated.Bind("json", options->json);
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
  OptionBinding(*view, "view").Bind("output", options->output);
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
  app.set_help_flag("-h,--help", DescriptionOf(kHelpOption));
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
