// cuSOLVER's solutions against products on the host.
#include <cusolverDn.h>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

constexpr int kN = 6, kLda = 8;  // columns are apart
using Doubles = std::vector<double>;

Doubles Matrix(std::uint32_t seed) {
  const Floats values = Values(kLda * kN, seed);
  return {values.begin(), values.end()};
}

// Symmetric, with positive eigenvalues alone.
Doubles DominantMatrix() {
  Doubles a = Matrix(5);
  for (int column = 0; column < kN; ++column) {
    for (int row = 0; row < column; ++row) a[column * kLda + row] = a[row * kLda + column];
    a[column * kLda + column] = kN + 1;
  }
  return a;
}

const Doubles kX = {1, -2, 3, 0.5, 2, -1};

Doubles Product(const Doubles& a, bool turned, const Doubles& x) {
  Doubles b(kN);
  for (int row = 0; row < kN; ++row) {
    for (int k = 0; k < kN; ++k) b[row] += a[turned ? row * kLda + k : k * kLda + row] * x[k];
  }
  return b;
}

void ExpectNear(const Doubles& actual, const Doubles& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-9) << i;
}

class CusolverTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    Expect(cusolverDnCreate(&handle_));
  }
  void TearDown() override { Expect(cusolverDnDestroy(handle_)); }

  static void Expect(cusolverStatus_t status) { EXPECT_EQ(status, CUSOLVER_STATUS_SUCCESS); }

  // Solves by LU from a right-hand side that the host made.
  void ExpectSolvedByLu(const Doubles& a, cublasOperation_t operation, bool with_pivots) {
    Device<double> factors(a), b(Product(a, operation != CUBLAS_OP_N, kX));
    Device<int> pivots(kN), info(1);
    int* const used = with_pivots ? pivots.get() : nullptr;
    int room = 0;
    Expect(cusolverDnDgetrf_bufferSize(handle_, kN, kN, factors.get(), kLda, &room));
    Device<double> work(room);
    Expect(cusolverDnDgetrf(handle_, kN, kN, factors.get(), kLda, work.get(), used, info.get()));
    EXPECT_EQ(info.Read()[0], 0);
    Expect(cusolverDnDgetrs(handle_, operation, kN, 1, factors.get(), kLda, used, b.get(), kN,
                            info.get()));
    ExpectNear(b.Read(), kX);
  }

  cusolverDnHandle_t handle_ = nullptr;
};

TEST_F(CusolverTest, LuSolvesWithAndWithoutPivots) {
  for (const cublasOperation_t operation : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    ExpectSolvedByLu(Matrix(3), operation, true);
    ExpectSolvedByLu(DominantMatrix(), operation, false);
  }
}

TEST_F(CusolverTest, LuNamesTheFirstPivotThatIsZero) {
  Doubles a = DominantMatrix();
  for (int row = 0; row < kN; ++row) a[2 * kLda + row] = 0;
  for (const bool with_pivots : {true, false}) {
    Device<double> factors(a), work(kN);
    Device<int> pivots(kN), info(1);
    Expect(cusolverDnDgetrf(handle_, kN, kN, factors.get(), kLda, work.get(),
                            with_pivots ? pivots.get() : nullptr, info.get()));
    EXPECT_EQ(info.Read()[0], 3);
  }
}

TEST_F(CusolverTest, CholeskySolvesFromEitherPart) {
  const Doubles a = DominantMatrix();
  for (const cublasFillMode_t fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
    Device<double> factor(a), b(Product(a, false, kX));
    Device<int> info(1);
    int room = 0;
    Expect(cusolverDnDpotrf_bufferSize(handle_, fill, kN, factor.get(), kLda, &room));
    Device<double> work(room);
    Expect(cusolverDnDpotrf(handle_, fill, kN, factor.get(), kLda, work.get(), room, info.get()));
    Expect(cusolverDnDpotrs(handle_, fill, kN, 1, factor.get(), kLda, b.get(), kN, info.get()));
    EXPECT_EQ(info.Read()[0], 0);
    ExpectNear(b.Read(), kX);
  }
}

TEST_F(CusolverTest, CholeskyRefusesAnIndefiniteMatrix) {
  Doubles a = DominantMatrix();
  a[3 * kLda + 3] = -1;
  Device<double> factor(a), work(kN);
  Device<int> info(1);
  Expect(cusolverDnDpotrf(handle_, CUBLAS_FILL_MODE_LOWER, kN, factor.get(), kLda, work.get(), kN,
                          info.get()));
  EXPECT_EQ(info.Read()[0], 4);
}

// Q^T b, then the triangle on the host.
TEST_F(CusolverTest, QrSolves) {
  const Doubles a = Matrix(3);
  Device<double> factors(a), c(Product(a, false, kX)), tau(kN);
  Device<int> info(1);
  int room = 0, room_to_apply = 0;
  Expect(cusolverDnDgeqrf_bufferSize(handle_, kN, kN, factors.get(), kLda, &room));
  Expect(cusolverDnDormqr_bufferSize(handle_, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, kN, 1, kN,
                                     factors.get(), kLda, tau.get(), c.get(), kN, &room_to_apply));
  room = std::max(room, room_to_apply);
  Device<double> work(room);
  Expect(cusolverDnDgeqrf(handle_, kN, kN, factors.get(), kLda, tau.get(), work.get(), room,
                          info.get()));
  Expect(cusolverDnDormqr(handle_, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, kN, 1, kN, factors.get(), kLda,
                          tau.get(), c.get(), kN, work.get(), room, info.get()));
  EXPECT_EQ(info.Read()[0], 0);
  const Doubles r = factors.Read();
  Doubles x = c.Read();
  for (int row = kN - 1; row >= 0; --row) {
    for (int k = row + 1; k < kN; ++k) x[row] -= r[k * kLda + row] * x[k];
    x[row] /= r[row * kLda + row];
  }
  ExpectNear(x, kX);
}

TEST_F(CusolverTest, BadShapesAndSmallWorkSpacesAreInvalid) {
  int room = 0;
  EXPECT_EQ(cusolverDnDgetrf_bufferSize(handle_, kN, kN, nullptr, kN - 1, &room),
            CUSOLVER_STATUS_INVALID_VALUE);
  EXPECT_EQ(cusolverDnDgeqrf(handle_, kN, kN, nullptr, kLda, nullptr, nullptr, kN - 1, nullptr),
            CUSOLVER_STATUS_INVALID_VALUE);
  EXPECT_EQ(cusolverDnDgetrf_bufferSize(nullptr, kN, kN, nullptr, kN, &room),
            CUSOLVER_STATUS_NOT_INITIALIZED);
}

}  // namespace
}  // namespace spillway::simulator::dnn
