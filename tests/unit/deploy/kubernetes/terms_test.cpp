// Quantities, opaque configurations, and the terms that follow.
#include <gtest/gtest.h>

#include "deploy/kubernetes/memory_terms.h"
#include "deploy/kubernetes/quantity.h"

namespace spillway::kubernetes {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

MemoryConfig Config(const std::string& settings) {
  const auto config = ParseMemoryConfig(
      R"({"apiVersion":"spillway.dev/v1alpha1","kind":"MemoryConfig")" + settings + "}");
  EXPECT_TRUE(config.ok()) << config.text();
  return config ? *config : MemoryConfig{};
}

std::string WhyNot(const std::string& settings) {
  return ParseMemoryConfig(R"({"apiVersion":"spillway.dev/v1alpha1","kind":"MemoryConfig")" +
                           settings + "}")
      .text();
}

TEST(QuantityTest, ReadsWhatKubernetesWrites) {
  EXPECT_EQ(*ParseQuantity("8Gi"), 8 * kGi);
  EXPECT_EQ(*ParseQuantity("0.5Gi"), kGi / 2);
  EXPECT_EQ(*ParseQuantity("1500M"), 1'500'000'000);
  EXPECT_EQ(*ParseQuantity("2e9"), 2'000'000'000);
  EXPECT_EQ(*ParseQuantity("2E-1"), 1);  // a fraction of a byte is rounded up
  EXPECT_EQ(*ParseQuantity("1E"), 1'000'000'000'000'000'000);
  EXPECT_EQ(*ParseQuantity("1500m"), 2);
  EXPECT_EQ(*ParseQuantity("000000000000000000000007"), 7);
  EXPECT_EQ(*ParseQuantity("7Ei"), int64_t{7} << 60);
}

TEST(QuantityTest, RefusesOtherTexts) {
  for (const char* const text :
       {"", ".", "Gi", "-1", "8GiB", "8 Gi", "1e", "1e99", "8Ei", "9e18k", "0x10", "1.2.3"})
    EXPECT_FALSE(ParseQuantity(text).ok()) << text;
  EXPECT_EQ(ParseQuantity("8GiB").text(),
            R"('8GiB' is no quantity of memory; write it as "8Gi" or "512Mi")");
}

TEST(QuantityTest, WritesWhatItReadsBack) {
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4097}, 3 * kGi, kGi + 1024})
    EXPECT_EQ(*ParseQuantity(FormatQuantity(bytes)), bytes);
  EXPECT_EQ(FormatQuantity(256 << 20), "256Mi");
}

TEST(MemoryConfigTest, ReadsAllSettings) {
  const MemoryConfig config = Config(R"(,"limit":"100%","floor":"4Gi","weight":2,"priority":7)");
  EXPECT_EQ(config, (MemoryConfig{.limit = Amount{.permille = 1000},
                                  .floor = Amount{.bytes = 4 * kGi},
                                  .weight = 2,
                                  .priority = 7}));
}

TEST(MemoryConfigTest, SaysWhatIsWrong) {
  EXPECT_EQ(WhyNot(R"(,"limt":"1Gi")"),
            "limt: there is no such setting; there are limit, floor, weight and priority");
  EXPECT_EQ(WhyNot(R"(,"weight":0)"), "weight: it is no whole number from 1 to 10000");
  EXPECT_EQ(WhyNot(R"(,"priority":1.5)"), "priority: it is no whole number from 0 to 1000");
  EXPECT_EQ(WhyNot(R"(,"limit":"0")"), "limit: it is 0; leave it out for the default");
  EXPECT_EQ(WhyNot(R"(,"limit":"101%")"),
            R"(limit: '101%' is no share of a device; write it as "50%")");
  EXPECT_EQ(WhyNot(R"(,"limit":"0.05%")"),
            R"(limit: '0.05%' is less than a thousandth of a device; write at least "0.1%")");
  EXPECT_EQ(WhyNot(R"(,"kind":"GpuConfig")"), "kind: this driver understands MemoryConfig only");
  EXPECT_EQ(ParseMemoryConfig(R"({"limit":"1Gi"})").text(),
            "apiVersion is missing; parameters begin with apiVersion: spillway.dev/v1alpha1 and "
            "kind: MemoryConfig");
  EXPECT_EQ(ParseMemoryConfig("[]").text(), "the configuration's parameters are no JSON object");
}

class ResolveTest : public testing::Test {
 protected:
  base::Result<MemoryTerms> Resolve(const std::vector<MemoryConfig>& of_class,
                                    const std::vector<MemoryConfig>& of_claim) {
    return ResolveTerms({.device_bytes = 100 * kGi, .counted_bytes = 8 * kGi}, of_class, of_claim);
  }
};

TEST_F(ResolveTest, WithoutConfigurationTheCountedMemoryIsGuaranteeAndLimit) {
  EXPECT_EQ(*Resolve({}, {}), (MemoryTerms{.guaranteed_bytes = 8 * kGi, .limit_bytes = 8 * kGi}));
}

TEST_F(ResolveTest, AClassAllowsMoreThanIsCounted) {
  const auto terms = Resolve({Config(R"(,"limit":"50%","weight":3)")}, {});
  EXPECT_EQ(*terms,
            (MemoryTerms{.guaranteed_bytes = 8 * kGi, .limit_bytes = 50 * kGi, .weight = 3}));
}

TEST_F(ResolveTest, AClaimLowersWhatItsClassSets) {
  const auto terms = Resolve({Config(R"(,"limit":"50%","weight":3,"priority":5)")},
                             {Config(R"(,"limit":"20Gi","floor":"1Gi","weight":2,"priority":0)")});
  EXPECT_EQ(
      *terms,
      (MemoryTerms{.guaranteed_bytes = kGi, .limit_bytes = 20 * kGi, .weight = 2, .priority = 0}));
}

TEST_F(ResolveTest, AClaimNeverRaisesIt) {
  EXPECT_EQ(
      Resolve({}, {Config(R"(,"limit":"9Gi")")}).text(),
      "the claim's limit, 9Gi, is more than it may have, 8Gi; ask for less, or choose another "
      "device class");
  EXPECT_EQ(
      Resolve({}, {Config(R"(,"floor":"9Gi")")}).text(),
      "the claim's floor, 9Gi, is more than it may have, 8Gi; ask for less, or choose another "
      "device class");
  EXPECT_EQ(Resolve({}, {Config(R"(,"weight":1)")}).text(),
            "the claim sets a weight, which its device class does not: a claim can only lower what "
            "its class allows; leave it out");
  EXPECT_FALSE(Resolve({Config(R"(,"priority":1)")}, {Config(R"(,"priority":2)")}).ok());
}

TEST_F(ResolveTest, AFloorOfTheClassNeverExceedsWhatIsCounted) {
  EXPECT_EQ(Resolve({Config(R"(,"floor":"50%","limit":"100%")")}, {})->guaranteed_bytes, 8 * kGi);
}

TEST_F(ResolveTest, AFloorAboveTheLimitIsRefused) {
  EXPECT_EQ(Resolve({}, {Config(R"(,"limit":"2Gi","floor":"4Gi")")}).text(),
            "the floor, 4Gi, is above the limit, 2Gi");
}

TEST_F(ResolveTest, ALowLimitLowersTheGuarantee) {
  EXPECT_EQ(*Resolve({}, {Config(R"(,"limit":"2Gi")")}),
            (MemoryTerms{.guaranteed_bytes = 2 * kGi, .limit_bytes = 2 * kGi}));
}

}  // namespace
}  // namespace spillway::kubernetes
