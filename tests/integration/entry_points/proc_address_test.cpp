// The real runtime's 440 requests, and every name of its dlsym fallback, get the hook of exactly
// the symbol that the bare driver returns, or that symbol.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/integration/entry_points/entry_paths.h"
#include "tests/integration/process.h"

namespace spillway::test {
namespace {

// A request or name, as the program prints it, and the location of its answer.
using Answers = std::map<std::string, std::string>;

const std::set<std::string> kHooks = {
#define SPILLWAY_HOOK(name, ...) #name,
#include "interposer/driver/hook_table.inc"
};

constexpr size_t kSymbols = 0
#define SPILLWAY_HOOK(...) +1
#define SPILLWAY_PASS(...) +1
#include "interposer/driver/hook_table.inc"
    ;

Environment Bare() { return {{"LD_LIBRARY_PATH", EntryDriverFolder()}}; }

Environment Preloaded() {
  Environment environment = Bare();
  environment["LD_PRELOAD"] = PreloadLibrary();
  environment["SPILLWAY_DRIVER"] = EntryDriver();
  return environment;
}

Answers AnswersOf(const std::vector<std::string>& command, const Environment& environment) {
  const Ended ended = RunProgram(command, environment);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.standard_error, "");
  std::istringstream lines(ended.standard_output);
  Answers answers;
  for (std::string line; std::getline(lines, line);) {
    const size_t last_space = line.rfind(' ');
    answers[line.substr(0, last_space)] = line.substr(last_space + 1);
  }
  return answers;
}

// The preload library's expected answer for the bare driver's: "libcuda.so.1:cuInit" ->
// "libspillway.so:cuInit".
std::string Hooked(const std::string& bare) {
  const size_t colon = bare.find(':');
  const std::string symbol = colon == std::string::npos ? "" : bare.substr(colon + 1);
  return kHooks.contains(symbol) ? "libspillway.so:" + symbol : bare;
}

// Returns the number of answers that were hooks.
int ExpectSameButHooked(const Answers& bare, const Answers& preloaded) {
  int hooks = 0;
  EXPECT_EQ(preloaded.size(), bare.size());
  for (const auto& [request, answer] : bare) {
    const auto found = preloaded.find(request);
    if (found == preloaded.end()) {
      ADD_FAILURE() << "not answered alike: " << request;
      continue;
    }
    EXPECT_EQ(found->second, Hooked(answer)) << request;
    hooks += found->second.starts_with("libspillway.so:");
  }
  return hooks;
}

TEST(ProcAddressTest, RuntimesRequestsGetTheHooksOfTheirVersionAndStreamFlavour) {
  const std::vector<std::string> command = {EntryPath("proc_address_entry"),
                                            Fixture("cudart13_requests.txt")};
  const Answers bare = AnswersOf(command, Bare());
  const Answers preloaded = AnswersOf(command, Preloaded());

  EXPECT_EQ(bare.size(), 440u);
  EXPECT_GE(ExpectSameButHooked(bare, preloaded), 60);

  // By name alone, these would be answered wrongly: two versions of one name, and the per-thread
  // stream.
  EXPECT_EQ(preloaded.at("cuGetProcAddress 11030 0 answer=0 status=0"),
            "libspillway.so:cuGetProcAddress");
  EXPECT_EQ(preloaded.at("cuGetProcAddress 12000 0 answer=0 status=0"),
            "libspillway.so:cuGetProcAddress_v2");
  EXPECT_EQ(preloaded.at("cuLaunchKernel 7000 2 answer=0 status=0"),
            "libspillway.so:cuLaunchKernel_ptsz");
}

TEST(ProcAddressTest, DlsymAnswersEachNameOfTheRuntimesFallbackAlike) {
  const std::vector<std::string> command = {EntryPath("searched_entry"), "names", "libcuda.so.1",
                                            Fixture("cudart13_dlsym_fallback.txt")};
  const Answers bare = AnswersOf(command, Bare());
  EXPECT_EQ(bare.size(), 439u);
  EXPECT_GE(ExpectSameButHooked(bare, AnswersOf(command, Preloaded())), 60);
}

TEST(ProcAddressTest, DlsymAnswersEverySymbolOfTheDriverAlike) {
  const std::vector<std::string> command = {EntryPath("searched_entry"), "names", "libcuda.so.1",
                                            EntryPath("driver_symbols.txt")};
  const Answers bare = AnswersOf(command, Bare());
  EXPECT_EQ(bare.size(), kSymbols);
  EXPECT_EQ(ExpectSameButHooked(bare, AnswersOf(command, Preloaded())),
            static_cast<int>(kHooks.size()));
}

}  // namespace
}  // namespace spillway::test
