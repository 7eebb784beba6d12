#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/config/config_fields.h"
#include "agent/config/config_file.h"

namespace spillway::agent {
namespace {

using Lines = std::vector<std::string>;

class ConfigFileTest : public testing::Test {
 protected:
  ConfigFileTest() : folder_(testing::TempDir() + "config." + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_ + "/spillway.d");
  }
  ~ConfigFileTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  ConfigResult Read() { return ReadConfigFiles(folder_ + "/spillway.toml"); }
  // The errors without the folder's name.
  Lines Errors() {
    Lines errors = Read().errors;
    for (std::string& error : errors) error = error.substr(folder_.size() + 1);
    return errors;
  }

  const std::string folder_;
};

TEST_F(ConfigFileTest, EmptyConfigurationMeansDefaults) {
  const ConfigResult result = Read();

  EXPECT_EQ(result.errors, Lines{});
  EXPECT_EQ(result.config, Config{});
}

TEST_F(ConfigFileTest, MissingNamedFileIsAnError) {
  const ConfigResult result = ReadConfigFiles(folder_ + "/spillway.toml", MainFile::kMustBeThere);

  EXPECT_EQ(result.errors,
            Lines{folder_ + "/spillway.toml cannot be read: No such file or directory"});
}

TEST_F(ConfigFileTest, ReadsShowsAndComparesUsersAndAccounts) {
  Write("spillway.toml", R"([[user]]
jobs = 4
[[user]]
uid = 1003
limit = "8GiB"
[[account]]
name = "physics"
uids = [1001, 1002]
guaranteed = "4GiB"
host_limit = "16GiB"
weight = 2
)");
  const ConfigResult result = Read();
  ASSERT_EQ(result.errors, Lines{});
  const Config& config = result.config;

  EXPECT_EQ(UserTermsFor(config, 1003, 0),
            (OwnerTerms{.limit_bytes = int64_t{8} << 30, .jobs = 4}));
  EXPECT_EQ(UserTermsFor(config, std::nullopt, 0), (OwnerTerms{.jobs = 4}));
  ASSERT_NE(AccountOf(config, 1002), nullptr);
  EXPECT_EQ(AccountOf(config, 1003), nullptr);
  EXPECT_EQ(AccountTermsFor(*AccountOf(config, 1002), 0),
            (OwnerTerms{.guaranteed_bytes = int64_t{4} << 30,
                        .host_limit_bytes = int64_t{16} << 30,
                        .weight = 2}));

  Write("spillway.toml", ShowConfig(config));
  EXPECT_EQ(Read().config, config);
  EXPECT_EQ(
      DifferencesBetween(Config{}, config),
      (Lines{"new: [[account]] name = \"physics\", uids = [1001, 1002], guaranteed = \"4GiB\", "
             "host_limit = \"16GiB\", weight = 2",
             "new: [[user]] jobs = 4", "new: [[user]] uid = 1003, limit = \"8GiB\""}));
}

// Regression: only a job's terms accepted percentages.
TEST_F(ConfigFileTest, EverySizeMayBeAPercentage) {
  Write("spillway.toml", R"([devices]
reserve = "2%"
[host]
memory = "40%"
spare = "10%"
[[user]]
limit = "25%"
guaranteed = "33.3%"
host_limit = "50%"
[[device]]
uuid = "GPU-01000000-0000-0000-0000-000000000000"
memory = "50%"
)");
  EXPECT_EQ(Errors(), Lines{"spillway.toml:6: guaranteed is more than limit"});
  Write("spillway.toml",
        "[devices]\nreserve = '2%'\n[host]\nmemory = '40%'\nspare = '10%'\n[[user]]\nlimit = "
        "'33.3%'\n"
        "guaranteed = '25%'\nhost_limit = '50%'\n[[device]]\nmemory = '50%'\n"
        "uuid = 'GPU-01000000-0000-0000-0000-000000000000'\n");
  const ConfigResult result = Read();
  ASSERT_EQ(result.errors, Lines{});

  const OwnerTerms user = UserTermsFor(result.config, 7, 1000);
  EXPECT_EQ(user.LimitOn(1000), 333);
  EXPECT_EQ(user.GuaranteedOn(2000), 500);
  EXPECT_EQ(user.host_limit_bytes, 500);
  Write("spillway.toml", ShowConfig(result.config));
  EXPECT_EQ(Read().config, result.config);
  EXPECT_NE(ShowConfig(result.config).find("reserve = \"2%\""), std::string::npos);
}

TEST_F(ConfigFileTest, PercentageOfAnUndetectedDeviceIsAnError) {
  Write("spillway.toml",
        "[devices]\nfind = false\n[[device]]\nmemory = '50%'\n"
        "uuid = 'GPU-01000000-0000-0000-0000-000000000000'\n");

  EXPECT_EQ(Errors(), Lines{"spillway.toml: the memory of device "
                            "GPU-01000000-0000-0000-0000-000000000000 is a share, which "
                            "takes NVML: write it in bytes, or set [devices] find = true"});
}

// Regression: `config check` accepted these, and the agent failed or ignored the setting.
TEST_F(ConfigFileTest, SettingsThatTheAgentCannotUseAreErrors) {
  Write("spillway.toml", R"([agent]
socket = "agent.sock"
http = "127.0.0.1:99999"
log_level = "loud"
[[device]]
uuid = "GPU-xyz"
memory = "1GiB"
[[device]]
uuid = "GPU-01000000-0000-0000-0000-000000000000"
memory = "1GiB"
[[device]]
uuid = "gpu-01"
memory = "1GiB"
[[device]]
uuid = "GPU-01000000000000000000000000000000"
memory = "2GiB"
[[account]]
name = "a\"b"
)");

  EXPECT_EQ(
      Errors(),
      (Lines{
          "spillway.toml:17: the name of an account is of letters, digits, '.', '_' and '-'",
          "spillway.toml:3: '127.0.0.1:99999' is no address and port like 127.0.0.1:9477",
          "spillway.toml:4: log_level is trace, debug, info, warn or error",
          "spillway.toml:2: socket is a whole path of at most 107 bytes, like "
          "\"/run/spillway/agent.sock\"",
          "spillway.toml:6: uuid is a text like \"GPU-12345678-1234-1234-1234-123456789abc\"; see: "
          "nvidia-smi -L",
          "spillway.toml:12: uuid is a text like \"GPU-12345678-1234-1234-1234-123456789abc\"; "
          "see: "
          "nvidia-smi -L",
          "spillway.toml:14: device GPU-01000000000000000000000000000000 is configured already"}));
}

TEST_F(ConfigFileTest, AnAddressThatOtherMachinesReachNeedsATokenOrAWord) {
  for (const char* address : {"0.0.0.0:9477", "[::]:9477", ":9477", "10.0.0.1:9477", "node:9477",
                              "128.0.0.1:9477", "127.example.com:9477"}) {
    const std::string agent = std::string("[agent]\nhttp = \"") + address + "\"\n";
    Write("spillway.toml", agent);
    EXPECT_EQ(Errors(), Lines{std::string("spillway.toml: [agent] http is ") + address +
                              ", where other machines can look at this node's jobs: set [http] "
                              "token_file, or open = true if anybody may"});
    Write("spillway.toml", agent + "[http]\nopen = true\n");
    EXPECT_EQ(Errors(), Lines{});
    Write("spillway.toml", agent + "[http]\ntoken_file = \"/etc/spillway/token\"\n");
    EXPECT_EQ(Errors(), Lines{});
  }
  for (const char* address : {"127.0.0.1:9477", "127.1.2.3:0", "[::1]:9477", "localhost:9477"}) {
    Write("spillway.toml", std::string("[agent]\nhttp = \"") + address + "\"\n");
    EXPECT_EQ(Errors(), Lines{}) << address;
  }
}

TEST_F(ConfigFileTest, TheJobsSocketHasAFolderOfItsOwn) {
  const auto errors = [&](const std::string& more) {
    Write("spillway.toml", "[agent]\njob_socket = \"/run/spillway/jobs/agent.sock\"\n" + more);
    return Errors();
  };
  const std::string why =
      " is in the folder of [agent] job_socket, /run/spillway/jobs/agent.sock, which containers "
      "mount: give job_socket a folder of its own, such as /run/spillway/jobs";
  EXPECT_EQ(errors(""), Lines{});
  EXPECT_EQ(errors("socket = \"/run/spillway/jobs/operators.sock\"\n"),
            Lines{"spillway.toml: [agent] socket" + why});
  EXPECT_EQ(errors("state = \"/run/spillway/x/../jobs/below/state\"\n"),
            Lines{"spillway.toml: [agent] state" + why});
  EXPECT_EQ(errors("[planning]\nstore = \"/run/spillway/jobs\"\n"),
            Lines{"spillway.toml: [planning] store" + why});
  EXPECT_EQ(errors("[http]\nsocket = \"/run/spillway/jobs/http.sock\"\n"),
            Lines{"spillway.toml: [http] socket" + why});
  EXPECT_EQ(errors("[planning]\nstore = \"/run/spillway/jobs-of-others\"\n"), Lines{});
  Write("spillway.toml", "[agent]\njob_socket = \"/agent.sock\"\n");
  EXPECT_EQ(Errors().size(), 2u);  // the whole machine's: the other socket, and the configuration
  Write("spillway.toml", "[agent]\njob_socket = \"@jobs\"\n");
  EXPECT_EQ(Errors(), Lines{"spillway.toml:2: '@jobs' is no whole path"});
}

// Regression: only texts were compared, and a link led containers to the other socket.
TEST_F(ConfigFileTest, NoLinkLeadsJobsToTheAgentsOtherFiles) {
  namespace fs = std::filesystem;
  fs::create_directories(folder_ + "/agent");
  fs::create_symlink(folder_ + "/agent", folder_ + "/jobs");
  const auto errors = [&](const std::string& jobs) {
    Write("spillway.toml", "[agent]\nsocket = \"" + folder_ +
                               "/agent/agent.sock\"\njob_socket = \"" + jobs + "/jobs.sock\"\n");
    return Errors();
  };
  const auto is_refused = [&](const std::string& what, const std::string& jobs) {
    const Lines all = errors(jobs);
    return std::any_of(all.begin(), all.end(), [&](const std::string& error) {
      return error.starts_with("spillway.toml: " + what);
    });
  };
  EXPECT_TRUE(is_refused("[agent] socket is in the folder", folder_ + "/jobs"));
  EXPECT_TRUE(is_refused("the configuration is in the folder", folder_ + "/spillway.d/.."));
  EXPECT_EQ(errors(folder_ + "/own"), Lines{});
  EXPECT_TRUE(is_refused("all users may write to /tmp", "/tmp"));
}

TEST_F(ConfigFileTest, ACertificateNeedsItsKeyAndPathsAreWhole) {
  Write("spillway.toml", "[http]\ncertificate = \"/etc/a.pem\"\ntoken_file = \"token\"\n");
  EXPECT_EQ(Errors(),
            (Lines{"spillway.toml:3: 'token' is no whole path",
                   "spillway.toml: [http] certificate and key go together; set both, or none"}));
}

TEST_F(ConfigFileTest, ShownTextsAreReadBack) {
  Write("spillway.toml", "[planning]\nstore = 'a\"b\\c'\n[[rule]]\njob = 'x\"y'\n");
  const Config config = Read().config;
  Write("spillway.toml", ShowConfig(config));

  EXPECT_EQ(Read().config, config);
}

TEST_F(ConfigFileTest, ErrorsInUsersAndAccountsAreReported) {
  Write("spillway.toml", R"([[user]]
wieght = 2
[[account]]
uids = [1001]
[[account]]
name = "physics"
uids = [1001]
guaranteed = "2GiB"
limit = "1GiB"
)");

  EXPECT_EQ(Errors(),
            (Lines{"spillway.toml:3: an account needs a name",
                   "spillway.toml:5: guaranteed is more than limit",
                   "spillway.toml:5: user 1001 is in account '' already",
                   "spillway.toml:2: there is no setting 'wieght'; do you mean 'weight'?"}));
}

TEST_F(ConfigFileTest, ReadsShowsAndComparesTurns) {
  EXPECT_FALSE(AllowsTurns(Config{}));
  Write("spillway.toml", R"([turns]
quantum_ms = 500
[defaults]
turns = "auto"
[[rule]]
job = "slurm-*"
turns = "always"
[[device]]
uuid = "GPU-12345678-1234-1234-1234-123456789abc"
memory = "8GiB"
turns = "never"
)");
  const ConfigResult result = Read();
  EXPECT_EQ(result.errors, Lines{});
  EXPECT_TRUE(AllowsTurns(result.config));
  EXPECT_EQ(TurnRulesOf(result.config).quantum_ns, 500'000'000);
  EXPECT_EQ(TermsFor(result.config, "local-1", 0, 1, 1).turns, TurnsChoice::kAuto);
  EXPECT_EQ(TermsFor(result.config, "slurm-7", 0, 1, 1).turns, TurnsChoice::kAlways);
  EXPECT_EQ(TermsFor(Config{}, "slurm-7", 0, 1, 1).turns, std::nullopt);
  const Lines differences = DifferencesBetween(Config{}, result.config);
  EXPECT_NE(std::find(differences.begin(), differences.end(), "[defaults] turns: unset -> auto"),
            differences.end());

  Write("spillway.toml", ShowConfig(result.config));
  EXPECT_EQ(Read().config, result.config);
  Write("spillway.toml", "[defaults]\nturns = \"sometimes\"\n");
  EXPECT_EQ(Errors(), Lines{"spillway.toml:2: turns is \"never\", \"auto\" or \"always\""});
}

// Regression: `config check` accepted it, and the guarantee silently became the limit.
TEST_F(ConfigFileTest, AGuaranteeAboveItsLimitIsAnError) {
  Write("spillway.toml", R"([defaults]
limit = "4GiB"
host_guaranteed = "2GiB"
[[rule]]
job = "slurm-*"
guaranteed = "8GiB"
limit = "4GiB"
)");
  Write("spillway.d/10-less.toml", "[defaults]\nhost_limit = '1GiB'\nfloor = '5GiB'\n");

  EXPECT_EQ(Errors(), (Lines{"spillway.toml:6: guaranteed is more than limit",
                             "spillway.d/10-less.toml:3: floor is more than limit"}));
}

// Regression: each counted as an empty file, without an error.
TEST_F(ConfigFileTest, UnreadableFileIsAnError) {
  std::filesystem::create_directories(folder_ + "/spillway.toml");
  std::filesystem::create_symlink("nowhere", folder_ + "/spillway.d/10-lost.toml");

  EXPECT_EQ(Errors(), (Lines{"spillway.toml cannot be read: Is a directory",
                             "spillway.d/10-lost.toml cannot be read: No such file or directory"}));

  std::filesystem::remove_all(folder_ + "/spillway.d");
  Write("spillway.d", "a file");
  EXPECT_EQ(Errors().back(), "spillway.d cannot be read: Not a directory");
}

TEST_F(ConfigFileTest, ReadsEveryKindOfSetting) {
  Write("spillway.toml", R"(
[agent]
socket = "/run/x.sock"
socket_mode = 0o660
operators = [1000, 1001]
[devices]
find = false
reserve = "1GiB"
[defaults]
guaranteed = "2GiB"
priority = 5
[[rule]]
job = "slurm-*"
uid = 1000
limit = "1.5GiB"
[[device]]
uuid = "GPU-01000000-0000-0000-0000-000000000000"
memory = "16GiB"
)");

  const ConfigResult result = Read();

  ASSERT_EQ(result.errors, Lines{});
  EXPECT_EQ(result.config.socket, "/run/x.sock");
  EXPECT_EQ(result.config.socket_mode, 0660);
  EXPECT_EQ(result.config.operators, (std::vector<int64_t>{1000, 1001}));
  EXPECT_FALSE(result.config.find_devices);
  EXPECT_EQ(result.config.device_reserve_bytes, int64_t{1} << 30);
  EXPECT_EQ(result.config.defaults.guaranteed_bytes, int64_t{2} << 30);
  EXPECT_EQ(result.config.defaults.priority, 5);
  ASSERT_EQ(result.config.rules.size(), 1u);
  EXPECT_EQ(result.config.rules[0].job, "slurm-*");
  EXPECT_EQ(result.config.rules[0].uid, 1000);
  EXPECT_EQ(result.config.rules[0].terms.limit_bytes, int64_t{3} << 29);
  EXPECT_EQ(result.config.devices[0].memory_bytes, int64_t{16} << 30);
}

TEST_F(ConfigFileTest, EveryErrorNamesItsLineAndTheNearestName) {
  Write("spillway.toml",
        "[agent]\nsokcet = \"x\"\n[agents]\n[limits]\nsessions = 0\n[defaults]\nlimit = \"big\"\n");

  EXPECT_EQ(Errors(), (Lines{"spillway.toml:2: there is no setting 'sokcet'; do you mean 'socket'?",
                             "spillway.toml:3: there is no table 'agents'; do you mean 'agent'?",
                             "spillway.toml:7: limit is a size like \"8GiB\" or \"25%\"",
                             "spillway.toml:5: sessions is between 1 and 1000000"}));
}

TEST_F(ConfigFileTest, SizesOfTermsMayBePercentages) {
  Write("spillway.toml",
        "[defaults]\nlimit = \"25%\"\nfloor = \"0.5%\"\nhost_limit = \"12.5 %\"\n");
  EXPECT_EQ(Errors().size(), 1u) << "a blank stands before no per cent sign";
  Write("spillway.toml", "[defaults]\nlimit = \"25%\"\nfloor = \"0.5%\"\nhost_limit = \"12.5%\"\n");
  const Config config = Read().config;

  constexpr int64_t gib = int64_t{1} << 30;
  const Terms terms = TermsFor(config, "job", 0, 160 * gib, 64 * gib);
  EXPECT_EQ(terms.memory.limit, 40 * gib);
  EXPECT_EQ(terms.memory.floor, 160 * gib / 200);
  EXPECT_EQ(terms.host.limit, 8 * gib);
  Write("spillway.toml", ShowConfig(config));
  EXPECT_EQ(Read().config, config);
  for (const char* wrong : {"0%", "101%", "%", "-5%", "5%%", "x%"}) {
    Write("spillway.toml", std::string("[defaults]\nlimit = \"") + wrong + "\"\n");
    EXPECT_EQ(Errors().size(), 1u) << wrong;
  }
}

TEST_F(ConfigFileTest, DefaultFloorIsShownAndYieldsToASmallerLimit) {
  EXPECT_NE(ShowConfig(Config{}).find("[defaults]\nfloor = \"512MiB\""), std::string::npos);
  Write("spillway.toml", "[defaults]\nlimit = \"256MiB\"\n");
  EXPECT_TRUE(Read().errors.empty());
}

TEST_F(ConfigFileTest, BrokenSyntaxIsAnErrorWithItsLine) {
  Write("spillway.toml", "[agent]\nsocket = \n");

  const Lines errors = Errors();

  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].rfind("spillway.toml:2: ", 0), 0u) << errors[0];
}

TEST_F(ConfigFileTest, DropInsOverrideAndAddRulesInNameOrder) {
  Write("spillway.toml", "[agent]\nlog_level = \"warn\"\n[[rule]]\njob = \"a\"\n");
  Write("spillway.d/20.toml", "[agent]\nlog_level = \"debug\"\n[[rule]]\njob = \"c\"\n");
  Write("spillway.d/10.toml", "[agent]\nlog_level = \"error\"\n[[rule]]\njob = \"b\"\n");
  Write("spillway.d/30.toml.off", "nonsense");

  const ConfigResult result = Read();

  ASSERT_EQ(result.errors, Lines{});
  EXPECT_EQ(result.config.log_level, "debug");
  ASSERT_EQ(result.config.rules.size(), 3u);
  EXPECT_EQ(result.config.rules[1].job, "b");
  EXPECT_EQ(result.config.rules[2].job, "c");
}

TEST_F(ConfigFileTest, ShownConfigurationReadsBackEqual) {
  Config config;
  config.http = "127.0.0.1:9477";
  config.operators = {7};
  config.socket_mode = 0640;
  config.defaults.weight = 3;
  config.defaults.limit_bytes = 12'345'678;
  config.rules = {{.job = "pod-*", .uid = 3, .terms = {.host_limit_bytes = int64_t{1} << 30}}};
  config.devices = {{"GPU-01000000-0000-0000-0000-000000000000", int64_t{16} << 30}};

  Write("spillway.toml", ShowConfig(config));

  EXPECT_EQ(Read().errors, Lines{});
  EXPECT_EQ(Read().config, config);
}

TEST(ConfigDifferencesTest, NamesChangesAndThoseThatNeedARestart) {
  Config next;
  next.http = "127.0.0.1:1";
  next.defaults.limit_bytes = int64_t{1} << 30;
  next.return_within_ms = 500;

  EXPECT_EQ(DifferencesBetween(Config{}, next),
            (Lines{"[agent] http: \"\" -> \"127.0.0.1:1\"",
                   "[arbiter] return_within_ms: 2000 -> 500", "[defaults] limit: unset -> 1GiB"}));
  EXPECT_EQ(NeedRestart(Config{}, next), (Lines{"[agent] http"}));
}

// Regression: only the numbers of rules were shown, so a changed rule went unnoticed.
TEST(ConfigDifferencesTest, ShowsChangedRulesAndDevices) {
  const JobRule first = {.job = "slurm-*", .uid = 3, .terms = {.weight = 2}};
  const JobRule second = {.job = "*", .uid = {}, .terms = {.limit_bytes = int64_t{1} << 30}};
  Config from, to;
  from.rules = {first, second};
  to.rules = {first, second, second};
  to.rules[1].terms.limit_bytes = int64_t{2} << 30;
  to.devices = {{"GPU-7", int64_t{8} << 30}};

  EXPECT_EQ(DifferencesBetween(from, to),
            (Lines{"new: [[device]] uuid = \"GPU-7\", memory = \"8GiB\"",
                   "new: [[rule]] job = \"*\", limit = \"2GiB\""}));
  EXPECT_EQ(DifferencesBetween(to, from),
            (Lines{"no more: [[device]] uuid = \"GPU-7\", memory = \"8GiB\"",
                   "no more: [[rule]] job = \"*\", limit = \"2GiB\""}));
  to = from;
  to.rules = {second, first};
  EXPECT_EQ(DifferencesBetween(from, to).size(), 4u) << "another order is another configuration";
}

TEST(ParseBytesTest, TakesBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseBytes("8GiB"), int64_t{8} << 30);
  EXPECT_EQ(ParseBytes("8G"), int64_t{8} << 30);
  EXPECT_EQ(ParseBytes("500 MB"), 500'000'000);
  EXPECT_EQ(ParseBytes("4096"), 4096);
  for (const char* wrong : {"", "GiB", "8GiBs", "-1", "1e99GiB", "8 G iB"})
    EXPECT_FALSE(ParseBytes(wrong)) << wrong;
}

TEST(FitsPatternTest, StarMatchesAnything) {
  EXPECT_TRUE(FitsPattern("*", ""));
  EXPECT_TRUE(FitsPattern("slurm-*", "slurm-12"));
  EXPECT_TRUE(FitsPattern("*-1*2", "slurm-132"));
  EXPECT_FALSE(FitsPattern("slurm-*", "local-12"));
  EXPECT_FALSE(FitsPattern("slurm-1", "slurm-12"));
}

}  // namespace
}  // namespace spillway::agent
