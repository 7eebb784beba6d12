#include "deploy/slurm/plugin_settings.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway::slurm {
namespace {

base::Result<PluginSettings> Parse(const std::vector<const char*>& words) {
  return ParseSettings(words);
}

TEST(PluginSettingsTest, AllHaveDefaults) {
  EXPECT_EQ(Parse({})->socket, "/run/spillway/agent.sock");
  EXPECT_EQ(Parse({})->shard_bytes, std::nullopt);
}

TEST(PluginSettingsTest, TakesTheOperatorsWords) {
  EXPECT_EQ(Parse({"lib=/opt/libspillway.so", "socket=/run/a", "shard=1GiB", "log=/var/log/a"}),
            (PluginSettings{.library = "/opt/libspillway.so",
                            .socket = "/run/a",
                            .shard_bytes = int64_t{1} << 30,
                            .log = "/var/log/a"}));
}

TEST(PluginSettingsTest, SaysWhatIsWrong) {
  EXPECT_EQ(Parse({"libs=/a"}).text(),
            "'libs=/a' is unknown; there are lib=, socket=, log= and shard=");
  EXPECT_EQ(Parse({"lib=a.so"}).text(), "'lib=a.so' needs an absolute path");
  EXPECT_EQ(Parse({"log"}).text(), "'log' needs an absolute path");
  EXPECT_EQ(Parse({"shard=0"}).text(), "'0' is no size; sizes are written like 8G or 512MiB");
}

}  // namespace
}  // namespace spillway::slurm
