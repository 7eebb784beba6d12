// cuFFT against sums by the definition, in double on the host.
#include <cufft.h>
#include <cufftXt.h>

#include <complex>
#include <numbers>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

using Complexes = std::vector<std::complex<float>>;

Complexes Random(std::size_t count, int seed) {
  const Floats values = Values(static_cast<std::int64_t>(2 * count), seed);
  Complexes result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = {values[2 * i], values[2 * i + 1]};
  return result;
}

struct Lengths {
  int x, y, z;
  int Count() const { return x * y * z; }
};

// One point of a transform; `sign` is the exponent's.
std::complex<double> Point(const Complexes& from, Lengths n, int kx, int ky, int kz, int sign) {
  std::complex<double> sum = 0;
  for (int x = 0; x < n.x; ++x) {
    for (int y = 0; y < n.y; ++y) {
      for (int z = 0; z < n.z; ++z) {
        const double turns = double(kx) * x / n.x + double(ky) * y / n.y + double(kz) * z / n.z;
        sum += std::complex<double>(from[(x * n.y + y) * n.z + z]) *
               std::polar(1.0, sign * 2 * std::numbers::pi * turns);
      }
    }
  }
  return sum;
}

Complexes Transformed(const Complexes& from, Lengths n, int sign) {
  Complexes result;
  for (int x = 0; x < n.x; ++x) {
    for (int y = 0; y < n.y; ++y) {
      for (int z = 0; z < n.z; ++z)
        result.push_back(std::complex<float>(Point(from, n, x, y, z, sign)));
    }
  }
  return result;
}

void ExpectClose(const Complexes& actual, const Complexes& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_LT(std::abs(actual[i] - expected[i]), 2e-5f * float(expected.size())) << "at " << i;
}

class CufftTest : public GpuTest {
 protected:
  void TearDown() override {
    if (plan_ != 0) {
      EXPECT_EQ(cufftDestroy(plan_), CUFFT_SUCCESS);
    }
  }
  void Expect(cufftResult result) { EXPECT_EQ(result, CUFFT_SUCCESS); }
  static cufftComplex* In(const Device<std::complex<float>>& data) {
    return reinterpret_cast<cufftComplex*>(data.get());
  }
  cufftHandle plan_ = 0;
};

class CufftLengthTest : public CufftTest, public testing::WithParamInterface<int> {};

TEST_P(CufftLengthTest, TransformsABatchOfLinesBothWays) {
  const int length = GetParam();
  const Complexes first = Random(length, 1), second = Random(length, 2);
  Complexes both = first;
  both.insert(both.end(), second.begin(), second.end());
  const Device<std::complex<float>> data(both), spectrum(both.size());
  Expect(cufftPlan1d(&plan_, length, CUFFT_C2C, 2));
  Expect(cufftExecC2C(plan_, In(data), In(spectrum), CUFFT_FORWARD));
  const Complexes result = spectrum.Read();
  ExpectClose(Complexes(result.begin(), result.begin() + length),
              Transformed(first, {1, 1, length}, -1));
  ExpectClose(Complexes(result.begin() + length, result.end()),
              Transformed(second, {1, 1, length}, -1));

  // Back in place: the length times the data.
  Expect(cufftExecC2C(plan_, In(spectrum), In(spectrum), CUFFT_INVERSE));
  Complexes scaled = both;
  for (auto& value : scaled) value *= static_cast<float>(length);
  ExpectClose(spectrum.Read(), scaled);
}

INSTANTIATE_TEST_SUITE_P(Lengths, CufftLengthTest,
                         testing::Values(1, 2, 3, 4, 8, 15, 30, 49, 64, 97, 128, 194, 240));

TEST_F(CufftTest, TransformsPlanesAndVolumes) {
  const Complexes values = Random(6 * 10, 3);
  const Device<std::complex<float>> data(values);
  Expect(cufftPlan2d(&plan_, 6, 10, CUFFT_C2C));
  Expect(cufftExecC2C(plan_, In(data), In(data), CUFFT_INVERSE));
  ExpectClose(data.Read(), Transformed(values, {1, 6, 10}, 1));

  cufftHandle volume = 0;
  const Device<std::complex<float>> cube(values);
  Expect(cufftPlan3d(&volume, 3, 4, 5, CUFFT_C2C));
  Expect(cufftExecC2C(volume, In(cube), In(cube), CUFFT_FORWARD));
  ExpectClose(cube.Read(), Transformed(values, {3, 4, 5}, -1));
  Expect(cufftDestroy(volume));
}

TEST_F(CufftTest, RealsHaveHalfASpectrumAndComeBack) {
  for (const int last : {9, 10}) {
    const Lengths n = {1, 4, last};
    const int half = last / 2 + 1;
    const Floats reals = Values(n.Count(), 5);
    const DeviceFloats data(reals), back(n.Count());
    const Device<std::complex<float>> spectrum(4 * half);
    cufftHandle forward = 0, inverse = 0;
    Expect(cufftPlan2d(&forward, 4, last, CUFFT_R2C));
    Expect(cufftPlan2d(&inverse, 4, last, CUFFT_C2R));
    Expect(cufftExecR2C(forward, data.get(), In(spectrum)));
    const Complexes whole = Transformed(Complexes(reals.begin(), reals.end()), n, -1);
    Complexes expected;
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < half; ++x) expected.push_back(whole[y * last + x]);
    }
    ExpectClose(spectrum.Read(), expected);

    Expect(cufftExecC2R(inverse, In(spectrum), back.get()));
    Floats scaled = back.Read();
    for (float& value : scaled) value /= static_cast<float>(n.Count());
    ExpectNear(scaled, reals);
    Expect(cufftDestroy(forward));
    Expect(cufftDestroy(inverse));
  }
}

// In place, each line of reals is padded to the size of its spectrum.
TEST_F(CufftTest, RealsInPlaceArePadded) {
  constexpr int kRows = 3, kLast = 6, kPadded = 2 * (kLast / 2 + 1);
  const Floats values = Values(kRows * kPadded, 6);
  Complexes reals;
  for (int i = 0; i < kRows * kPadded; ++i) {
    if (i % kPadded < kLast) reals.emplace_back(values[i], 0.0f);
  }
  const DeviceFloats data(values);
  Expect(cufftPlan2d(&plan_, kRows, kLast, CUFFT_R2C));
  Expect(cufftExecR2C(plan_, data.get(), reinterpret_cast<cufftComplex*>(data.get())));
  const Floats raw = data.Read();
  const Complexes whole = Transformed(reals, {1, kRows, kLast}, -1);
  for (int y = 0; y < kRows; ++y) {
    for (int x = 0; x <= kLast / 2; ++x) {
      EXPECT_NEAR(raw[y * kPadded + 2 * x], whole[y * kLast + x].real(), 1e-4);
      EXPECT_NEAR(raw[y * kPadded + 2 * x + 1], whole[y * kLast + x].imag(), 1e-4);
    }
  }
}

// Two interleaved lines of five, with a gap after each pair.
TEST_F(CufftTest, FollowsStridesAndLeavesTheRestAlone) {
  constexpr int kLength = 5, kStride = 3;
  const Complexes values = Random(kLength * kStride, 7);
  const Device<std::complex<float>> data(values);
  int length = kLength;
  Expect(cufftPlanMany(&plan_, 1, &length, &length, kStride, 1, &length, kStride, 1, CUFFT_C2C, 2));
  Expect(cufftExecC2C(plan_, In(data), In(data), CUFFT_FORWARD));
  const Complexes result = data.Read();
  for (int line = 0; line < 2; ++line) {
    Complexes own, got;
    for (int i = 0; i < kLength; ++i) {
      own.push_back(values[i * kStride + line]);
      got.push_back(result[i * kStride + line]);
    }
    ExpectClose(got, Transformed(own, {1, 1, kLength}, -1));
  }
  for (int i = 0; i < kLength; ++i) EXPECT_EQ(result[i * kStride + 2], values[i * kStride + 2]);
}

TEST_F(CufftTest, DoublesAreExact) {
  const Device<std::complex<double>> data(std::vector<std::complex<double>>{1, 2, 3, 4});
  auto* const points = reinterpret_cast<cufftDoubleComplex*>(data.get());
  long long length = 4;
  std::size_t work_bytes = 0;
  Expect(cufftCreate(&plan_));
  Expect(cufftXtMakePlanMany(plan_, 1, &length, nullptr, 1, 1, CUDA_C_64F, nullptr, 1, 1,
                             CUDA_C_64F, 1, &work_bytes, CUDA_C_64F));
  Expect(cufftXtExec(plan_, points, points, CUFFT_FORWARD));
  const auto result = data.Read();
  const std::complex<double> expected[] = {{10, 0}, {-2, 2}, {-2, 0}, {-2, -2}};
  for (int i = 0; i < 4; ++i) EXPECT_LT(std::abs(result[i] - expected[i]), 1e-14);
}

TEST_F(CufftTest, AProgramsOwnWorkAreaIsUsed) {
  std::size_t work_bytes = 0;
  Expect(cufftCreate(&plan_));
  Expect(cufftSetAutoAllocation(plan_, 0));
  Expect(cufftMakePlan1d(plan_, 256, CUFFT_C2C, 1, &work_bytes));
  EXPECT_EQ(work_bytes, 256 * sizeof(std::complex<float>));
  const Device<std::complex<float>> data(256);
  EXPECT_EQ(cufftExecC2C(plan_, In(data), In(data), CUFFT_FORWARD), CUFFT_NO_WORKSPACE);
  const DeviceBytes area(work_bytes);
  Expect(cufftSetWorkArea(plan_, area.get()));
  Expect(cufftExecC2C(plan_, In(data), In(data), CUFFT_FORWARD));
  EXPECT_NE(area.Read(), std::vector<unsigned char>(work_bytes));
}

TEST_F(CufftTest, APlanHoldsItsWorkAreaUntilItsEnd) {
  std::size_t before = 0, during = 0, after = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
  cufftHandle plan = 0;
  Expect(cufftPlan1d(&plan, 1 << 20, CUFFT_C2C, 1));
  ASSERT_EQ(cuMemGetInfo(&during, &total), CUDA_SUCCESS);
  EXPECT_GE(before - during, sizeof(std::complex<float>) << 20);
  Expect(cufftDestroy(plan));
  ASSERT_EQ(cuMemGetInfo(&after, &total), CUDA_SUCCESS);
  EXPECT_EQ(after, before);
}

TEST_F(CufftTest, RefusesWrongPlansTypesAndSizes) {
  const Device<std::complex<float>> data(8);
  EXPECT_EQ(cufftExecC2C(12345, In(data), In(data), CUFFT_FORWARD), CUFFT_INVALID_PLAN);
  EXPECT_EQ(cufftPlan1d(&plan_, 0, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
  Expect(cufftPlan1d(&plan_, 8, CUFFT_R2C, 1));
  EXPECT_EQ(cufftExecC2C(plan_, In(data), In(data), CUFFT_FORWARD), CUFFT_INVALID_TYPE);
}

}  // namespace
}  // namespace spillway::simulator::dnn
