// Runs random CUDA programs by seed in one process, and prints what each of them computed.
//
// The same seeds print the same lines with the driver alone and under the preload library with any
// budget. Exit status: 0 all ran, 1 a program failed (its line says how; later seeds did not run),
// 2 wrong usage.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>

#include "base/environment.h"
#include "tests/fuzz/differential/execute.h"
#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/generate.h"
#include "tests/fuzz/differential/order.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/repeat.h"
#include "tests/fuzz/differential/schedule.h"

namespace spillway::fuzz {
namespace {

constexpr char kUsage[] =
    "usage: differential --seeds FIRST..LAST [options]\n"
    "  --hosts 1..4      host threads in each program (default: the seed decides)\n"
    "  --contexts 1|2    contexts in each program (default: the seed decides)\n"
    "  --features LIST   what programs use beside the basics, by commas; '' for nothing (default: "
    "the seed "
    "decides)\n"
    "  --iterations N    the same again and again, N times after a beginning\n"
    "  --patterns N      with --iterations: of N kinds, three of one kind in a row (default: 1)\n"
    "  --small           shorter programs with smaller buffers\n"
    "  --keep LIST       of the last seed only the operations with these numbers (1,4-7): for "
    "shortening a "
    "program\n"
    "  --timing SALT     let kernels last differently; the digest stays the same\n"
    "  --omit KIND       leave inserted event_wait or event_sync operations out: a broken program\n"
    "  --schedule N      one host thread runs at a time, and this number and the seed decide "
    "which\n"
    "  --trace           tell on standard error what is done next, and where memory was given\n"
    "  --print-program   print the operations instead of running them\n";

struct Options {
  std::uint64_t first_seed = 1;
  std::uint64_t last_seed = 0;
  std::optional<int> hosts;  // these: the seed decides if unset
  std::optional<int> contexts;
  std::optional<std::set<int>> features;
  Repetition repetition;
  bool small = false;
  bool print_program = false;
  std::optional<std::set<int>> kept;
  Manner manner;
  std::optional<std::uint64_t> schedule;
  std::optional<Kind> omitted;
};

std::set<int> ParseList(const char* text) {
  std::set<int> numbers;
  while (*text != '\0') {
    char* end = nullptr;
    const long first = std::strtol(text, &end, 10);
    if (end == text) break;
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    for (long number = first; number <= last; ++number) numbers.insert(static_cast<int>(number));
    text = *end == ',' ? end + 1 : end;
  }
  return numbers;
}

// Nothing when one of the names is unknown.
std::optional<std::set<int>> ParseFeatures(const std::string& text) {
  std::set<int> features;
  std::stringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const int feature = FeatureNamed(name.c_str());
    if (feature == kNone) return std::nullopt;
    features.insert(feature);
  }
  return features;
}

bool ParseShape(const std::string& name, const char* value, Options& options) {
  if (name == "--hosts") {
    options.hosts = std::clamp(std::atoi(value), 1, kMaximumThreads);
  } else if (name == "--contexts") {
    options.contexts = std::clamp(std::atoi(value), 1, kMaximumContexts);
  } else if (name == "--features") {
    options.features = ParseFeatures(value);
    return options.features.has_value();
  } else {
    return false;
  }
  return true;
}

bool ParseValue(const std::string& name, const char* value, Options& options) {
  if (name == "--seeds") {
    char* end = nullptr;
    options.first_seed = std::strtoull(value, &end, 10);
    options.last_seed =
        std::strncmp(end, "..", 2) == 0 ? std::strtoull(end + 2, nullptr, 10) : options.first_seed;
  } else if (name == "--keep") {
    options.kept = ParseList(value);
  } else if (name == "--timing") {
    options.manner.timing_salt = std::strtoull(value, nullptr, 10);
  } else if (name == "--schedule") {
    options.schedule = std::strtoull(value, nullptr, 10);
  } else if (name == "--omit" && std::strcmp(value, "event_wait") == 0) {
    options.omitted = Kind::kEventWait;
  } else if (name == "--omit" && std::strcmp(value, "event_sync") == 0) {
    options.omitted = Kind::kEventSync;
  } else if (name == "--iterations") {
    options.repetition.iterations = std::atoi(value);
  } else if (name == "--patterns") {
    options.repetition.patterns = std::max(std::atoi(value), 1);
  } else {
    return ParseShape(name, value, options);
  }
  return true;
}

std::optional<Options> Parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--small") {
      options.small = true;
    } else if (name == "--trace") {
      options.manner.trace = true;
    } else if (name == "--print-program") {
      options.print_program = true;
    } else if (i + 1 == count || !ParseValue(name, arguments[++i], options)) {
      return std::nullopt;
    }
  }
  if (options.last_seed < options.first_seed) return std::nullopt;
  return options;
}

Shape ShapeFor(std::uint64_t seed, const Options& options) {
  Shape shape = ShapeOf(seed);
  shape.small = options.small;
  if (options.contexts) shape.contexts = *options.contexts;
  if (options.hosts) shape.hosts = *options.hosts;
  shape.hosts = std::min(shape.hosts, kMaximumThreads / shape.contexts);
  if (options.features) shape.features = *options.features;
  return shape;
}

std::vector<Operation> Draft(std::uint64_t seed, const Shape& shape, const Options& options) {
  const std::vector<Operation> program = Repeat(Generate(seed, shape), shape, options.repetition);
  return options.kept && seed == options.last_seed ? Keep(program, *options.kept) : program;
}

// Breaches that the simulated driver has counted; 0 on any other driver.
std::uint64_t RuleBreaches() {
  using Reader = unsigned long long (*)(const char*);
  const char* const driver = std::getenv(environment::kDriver);
  void* const library = dlopen(driver != nullptr ? driver : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  const auto read = reinterpret_cast<Reader>(dlsym(library, "spillway_sim_read"));
  dlclose(library);
  if (read == nullptr) return 0;
  return read("unmapped_while_in_use") + read("illegal_accesses");
}

void Print(std::uint64_t seed, const std::vector<Operation>& program) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (const Operation& operation : program) std::printf("  %s\n", ToText(operation).c_str());
}

// False when a call failed.
bool RunSeed(std::uint64_t seed, const Options& options, Device& device) {
  const Shape shape = ShapeFor(seed, options);
  const std::vector<Operation> draft = Draft(seed, shape, options);
  const Size size = Measure(draft);
  const std::uint64_t breaches_before = RuleBreaches();
  std::optional<Schedule> schedule;
  if (options.schedule) schedule.emplace(Scramble(seed) + *options.schedule, shape.hosts);
  const Outcome outcome = Execute(Complete(draft, options.omitted), shape, device, options.manner);
  const auto number = static_cast<unsigned long long>(seed);
  if (!outcome.error.empty()) {
    std::printf("seed %llu failed: %s\n", number, outcome.error.c_str());
  } else {
    std::printf("seed %llu digest %016llx live %d peak %llu breaches %llu\n", number,
                static_cast<unsigned long long>(outcome.digest), size.live_buffers,
                static_cast<unsigned long long>(size.peak_bytes),
                static_cast<unsigned long long>(RuleBreaches() - breaches_before));
  }
  std::fflush(stdout);
  return outcome.error.empty();
}

int Run(const Options& options) {
  if (options.print_program) {
    for (std::uint64_t seed = options.first_seed; seed <= options.last_seed; ++seed) {
      Print(seed, Complete(Draft(seed, ShapeFor(seed, options), options), options.omitted));
    }
    return 0;
  }
  Device device;
  for (std::uint64_t seed = options.first_seed; seed <= options.last_seed; ++seed) {
    if (!RunSeed(seed, options, device)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace spillway::fuzz

int main(int count, char** arguments) {
  const auto options = spillway::fuzz::Parse(count, arguments);
  if (!options) {
    std::fputs(spillway::fuzz::kUsage, stderr);
    return 2;
  }
  try {
    return spillway::fuzz::Run(*options);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "differential: %s\n", failure.what());
    return 1;
  }
}
