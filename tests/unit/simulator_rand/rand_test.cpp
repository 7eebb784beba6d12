// cuRAND's host interface: places, moments, and points that are known.
#include <curand.h>

#include <bit>
#include <cmath>
#include <functional>

#include "simulator/rand/philox.h"
#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

constexpr std::size_t kMany = 200000;

class CurandTest : public GpuTest {
 protected:
  curandGenerator_t Make(curandRngType_t type, unsigned long long seed = 7) {
    curandGenerator_t generator = nullptr;
    Expect(curandCreateGenerator(&generator, type));
    if (type < CURAND_RNG_QUASI_DEFAULT)
      Expect(curandSetPseudoRandomGeneratorSeed(generator, seed));
    made_.push_back(generator);
    return generator;
  }
  void TearDown() override {
    for (const curandGenerator_t generator : made_) curandDestroyGenerator(generator);
  }
  void Expect(curandStatus_t status) { EXPECT_EQ(status, CURAND_STATUS_SUCCESS); }

  Floats Uniform(curandGenerator_t generator, std::size_t count) {
    const DeviceFloats device(count);
    Expect(curandGenerateUniform(generator, device.get(), count));
    return device.Read();
  }

  std::vector<curandGenerator_t> made_;
};

template <typename Value>
double Mean(const std::vector<Value>& values, const std::function<double(double)>& of) {
  double sum = 0;
  for (const Value value : values) sum += of(static_cast<double>(value));
  return sum / static_cast<double>(values.size());
}
template <typename Value>
void ExpectMoments(const std::vector<Value>& values, double mean, double variance) {
  const double tolerance = 6 * std::sqrt(variance / static_cast<double>(values.size()));
  EXPECT_NEAR(Mean(values, [](double x) { return x; }), mean, tolerance);
  EXPECT_NEAR(Mean(values, [&](double x) { return (x - mean) * (x - mean); }), variance,
              0.05 * variance);
}

// The third line of the published test vectors of Philox4x32-10: digits of pi.
TEST(PhiloxTest, GivesThePublishedWords) {
  const std::uint64_t key = 0x299f31d0a4093822, counter = 0x85a308d3243f6a88,
                      stream = 0x0370734413198a2e;
  EXPECT_EQ(rand::Philox(key, counter, stream),
            (rand::PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST_F(CurandTest, UniformDrawsAreUniformForEachGenerator) {
  for (const curandRngType_t type :
       {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_MTGP32,
        CURAND_RNG_PSEUDO_MT19937, CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_QUASI_SOBOL32}) {
    const Floats values = Uniform(Make(type), kMany);
    ExpectMoments(values, 0.5, 1.0 / 12);
    EXPECT_GT(*std::min_element(values.begin(), values.end()), 0);
    EXPECT_LE(*std::max_element(values.begin(), values.end()), 1);
  }
}

TEST_F(CurandTest, NumbersFollowFromSeedAndPlace) {
  const Floats whole = Uniform(Make(CURAND_RNG_PSEUDO_XORWOW, 5), 100);
  const curandGenerator_t parts = Make(CURAND_RNG_PSEUDO_XORWOW, 5);
  Floats joined = Uniform(parts, 33);
  const Floats rest = Uniform(parts, 67);
  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(joined, whole);

  const curandGenerator_t later = Make(CURAND_RNG_PSEUDO_XORWOW, 5);
  Expect(curandSetGeneratorOffset(later, 90));
  EXPECT_EQ(Uniform(later, 10), Floats(whole.begin() + 90, whole.end()));
  EXPECT_NE(Uniform(Make(CURAND_RNG_PSEUDO_XORWOW, 6), 100), whole);
  EXPECT_NE(Uniform(Make(CURAND_RNG_PSEUDO_MRG32K3A, 5), 100), whole);
}

TEST_F(CurandTest, AHostGeneratorGivesTheSameNumbers) {
  curandGenerator_t host = nullptr;
  Expect(curandCreateGeneratorHost(&host, CURAND_RNG_PSEUDO_MTGP32));
  Expect(curandSetPseudoRandomGeneratorSeed(host, 7));
  Floats values(100);
  Expect(curandGenerateUniform(host, values.data(), values.size()));
  EXPECT_EQ(values, Uniform(Make(CURAND_RNG_PSEUDO_MTGP32, 7), 100));
  Expect(curandDestroyGenerator(host));
}

TEST_F(CurandTest, NormalAndPoissonDrawsHaveTheirMoments) {
  const curandGenerator_t generator = Make(CURAND_RNG_PSEUDO_PHILOX4_32_10);
  const DeviceFloats floats(kMany);
  Expect(curandGenerateNormal(generator, floats.get(), kMany, 3, 2));
  ExpectMoments(floats.Read(), 3, 4);
  const Device<double> doubles(kMany);
  Expect(curandGenerateLogNormalDouble(generator, doubles.get(), kMany, 0, 0.25));
  const double e = std::exp(0.0625);
  ExpectMoments(doubles.Read(), std::sqrt(e), (e - 1) * e);
  for (const double lambda : {2.5, 200.0}) {
    const Device<unsigned> counts(kMany);
    Expect(curandGeneratePoisson(generator, counts.get(), kMany, lambda));
    ExpectMoments(counts.Read(), lambda, lambda);
  }
}

TEST_F(CurandTest, QuasirandomNormalDrawsAreTheInverseOfTheDistribution) {
  const curandGenerator_t generator = Make(CURAND_RNG_QUASI_SOBOL64);
  const Device<double> values(4);
  Expect(curandGenerateNormalDouble(generator, values.get(), 4, 0, 1));
  const double quartile = 0.6744897501960817;
  const std::vector<double> normal = values.Read();
  EXPECT_NEAR(normal[1], 0, 1e-12);
  EXPECT_NEAR(normal[2], quartile, 1e-9);
  EXPECT_NEAR(normal[3], -quartile, 1e-9);
}

TEST_F(CurandTest, SobolPointsAreThePublishedOnesDimensionByDimension) {
  const curandGenerator_t generator = Make(CURAND_RNG_QUASI_SOBOL32);
  Expect(curandSetQuasiRandomGeneratorDimensions(generator, 3));
  const Floats points = Uniform(generator, 24);
  const Floats expected = {0, 0.5f, 0.75f, 0.25f, 0.375f, 0.875f, 0.625f, 0.125f,
                           0, 0.5f, 0.25f, 0.75f, 0.375f, 0.875f, 0.125f, 0.625f,
                           0, 0.5f, 0.25f, 0.75f, 0.625f, 0.125f, 0.875f, 0.375f};
  ExpectNear(points, expected, 1e-6f);
  const DeviceFloats device(4);
  EXPECT_EQ(curandGenerateUniform(generator, device.get(), 4), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
}

TEST_F(CurandTest, EveryDimensionMeetsEachIntervalOnce) {
  curandDirectionVectors32_t* vectors = nullptr;
  Expect(curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
  for (const int dimension : {0, 1, 9, 10, 500, 19999}) {
    std::vector<bool> met(1024);
    unsigned point = 0;
    for (unsigned i = 0; i < met.size(); ++i) {
      EXPECT_FALSE(met[point >> 22]) << dimension;
      met[point >> 22] = true;
      point ^= vectors[dimension][std::countr_one(i)];
    }
  }
}

TEST_F(CurandTest, RefusesWhatTheGeneratorsTypeExcludes) {
  const curandGenerator_t pseudo = Make(CURAND_RNG_PSEUDO_MTGP32);
  const curandGenerator_t quasi = Make(CURAND_RNG_QUASI_SOBOL32);
  const DeviceFloats device(3);
  EXPECT_EQ(curandGenerateNormal(pseudo, device.get(), 3, 0, 1), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  EXPECT_EQ(curandSetGeneratorOffset(pseudo, 1), CURAND_STATUS_TYPE_ERROR);
  EXPECT_EQ(curandSetQuasiRandomGeneratorDimensions(pseudo, 2), CURAND_STATUS_TYPE_ERROR);
  EXPECT_EQ(curandSetPseudoRandomGeneratorSeed(quasi, 2), CURAND_STATUS_TYPE_ERROR);
  EXPECT_EQ(curandSetQuasiRandomGeneratorDimensions(quasi, 20001), CURAND_STATUS_OUT_OF_RANGE);
  curandGenerator_t none = nullptr;
  EXPECT_EQ(curandCreateGenerator(&none, CURAND_RNG_TEST), CURAND_STATUS_TYPE_ERROR);
}

}  // namespace
}  // namespace spillway::simulator::dnn
