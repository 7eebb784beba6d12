// cuBLAS' transfers, batched LU factorisation and triangular solutions, against their definitions.
#include <cublas_v2.h>

#include <memory>
#include <vector>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

class CublasBatchTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override { cublasDestroy(handle_); }
  cublasHandle_t handle_ = nullptr;
};

TEST_F(CublasBatchTest, TransfersVectorsWithStepsAndKeepTheGaps) {
  const Device<float> device(Floats(12, -1.0f));
  const Floats values = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_EQ(cublasSetVector(4, sizeof(float), values.data(), 2, device.get(), 3),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(device.Read(), (Floats{1, -1, -1, 3, -1, -1, 5, -1, -1, 7, -1, -1}));

  Floats back(4);
  ASSERT_EQ(cublasGetVector(4, sizeof(float), device.get(), 3, back.data(), 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(back, (Floats{1, 3, 5, 7}));
  EXPECT_EQ(cublasSetVector(4, sizeof(float), values.data(), 0, device.get(), 1),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(CublasBatchTest, TransfersDenseVectors) {
  const Device<float> device(100);
  const Floats values = Values(100, 8);
  Floats back(100);
  ASSERT_EQ(cublasSetVector(100, sizeof(float), values.data(), 1, device.get(), 1),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasGetVector(100, sizeof(float), device.get(), 1, back.data(), 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(back, values);
}

TEST_F(CublasBatchTest, TransfersPartsOfMatrices) {
  const Device<double> device(std::vector<double>(4 * 3, -1.0));
  const std::vector<double> values = {1, 2, 0, 3, 4, 0, 5, 6, 0};
  ASSERT_EQ(cublasSetMatrix(2, 3, sizeof(double), values.data(), 3, device.get(), 4),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(device.Read(), (std::vector<double>{1, 2, -1, -1, 3, 4, -1, -1, 5, 6, -1, -1}));

  std::vector<double> back(6);
  ASSERT_EQ(
      cublasGetMatrixAsync(2, 3, sizeof(double), device.get(), 4, back.data(), 2, CU_STREAM_LEGACY),
      CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(CU_STREAM_LEGACY), CUDA_SUCCESS);
  EXPECT_EQ(back, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(cublasSetMatrix(5, 3, sizeof(double), values.data(), 5, device.get(), 4),
            CUBLAS_STATUS_INVALID_VALUE);
}

// Three matrices of edge kEdge, in device memory with a leading dimension of their own.
constexpr int kEdge = 6, kLead = 8, kCount = 3;

template <typename Real>
struct Batch {
  explicit Batch(int seed) : values(kCount) {
    for (int i = 0; i < kCount; ++i) {
      const Floats random = Values(kLead * kEdge, seed + i);
      values[i].assign(random.begin(), random.end());
      matrices.emplace_back(std::make_unique<Device<Real>>(values[i]));
      addresses.push_back(matrices.back()->get());
    }
    pointers = std::make_unique<Device<Real*>>(addresses);
  }
  std::vector<std::vector<Real>> values;
  std::vector<std::unique_ptr<Device<Real>>> matrices;
  std::vector<Real*> addresses;
  std::unique_ptr<Device<Real*>> pointers;
};

double Product(const std::vector<double>& a, const std::vector<double>& b, int row, int column,
               bool turned) {
  double sum = 0;
  for (int k = 0; k < kEdge; ++k)
    sum += (turned ? a[row * kLead + k] : a[k * kLead + row]) * b[column * kLead + k];
  return sum;
}

TEST_F(CublasBatchTest, InverseTimesMatrixIsTheIdentity) {
  Batch<double> a(1), inverse(20);
  const Device<int> pivots(kCount * kEdge), info(kCount);
  ASSERT_EQ(cublasDgetrfBatched(handle_, kEdge, a.pointers->get(), kLead, pivots.get(), info.get(),
                                kCount),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasDgetriBatched(handle_, kEdge, a.pointers->get(), kLead, pivots.get(),
                                inverse.pointers->get(), kLead, info.get(), kCount),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(info.Read(), std::vector<int>(kCount));
  for (int i = 0; i < kCount; ++i) {
    const std::vector<double> result = inverse.matrices[i]->Read();
    for (int row = 0; row < kEdge; ++row) {
      for (int column = 0; column < kEdge; ++column)
        EXPECT_NEAR(Product(a.values[i], result, row, column, false), row == column, 1e-10);
    }
    EXPECT_EQ(result[kEdge], inverse.values[i][kEdge]);  // the gap below the matrix
  }
}

TEST_F(CublasBatchTest, SolvesPlainAndTransposedSystems) {
  for (const cublasOperation_t operation : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    Batch<double> a(1), b(40);
    const Device<int> pivots(kCount * kEdge), info(kCount);
    int host_info = -1;
    ASSERT_EQ(cublasDgetrfBatched(handle_, kEdge, a.pointers->get(), kLead, pivots.get(),
                                  info.get(), kCount),
              CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasDgetrsBatched(handle_, operation, kEdge, 2, a.pointers->get(), kLead,
                                  pivots.get(), b.pointers->get(), kLead, &host_info, kCount),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(host_info, 0);
    for (int i = 0; i < kCount; ++i) {
      const std::vector<double> x = b.matrices[i]->Read();
      for (int row = 0; row < kEdge; ++row) {
        for (int column = 0; column < 2; ++column)
          EXPECT_NEAR(Product(a.values[i], x, row, column, operation == CUBLAS_OP_T),
                      b.values[i][column * kLead + row], 1e-10);
      }
    }
  }
}

TEST_F(CublasBatchTest, FactorisationReportsASingularMatrix) {
  const Device<float> matrix(Floats{1, 2, 2, 4});
  const Device<float*> pointers(std::vector<float*>{matrix.get()});
  const Device<int> pivots(2), info(1);
  ASSERT_EQ(cublasSgetrfBatched(handle_, 2, pointers.get(), 2, pivots.get(), info.get(), 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(info.Read()[0], 2);
  EXPECT_EQ(pivots.Read(), (std::vector<int>{2, 2}));
}

TEST_F(CublasBatchTest, SolvesTriangularSystems) {
  // L X = 2 B with L = [[2, 0], [1, 4]] and B = [[2, 6], [9, 11]]: X = [[2, 6], [4, 4]].
  const Device<float> a(Floats{2, 1, 99, 4}), b(Floats{2, 9, 6, 11});
  const float alpha = 2;
  ASSERT_EQ(cublasStrsm(handle_, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                        CUBLAS_DIAG_NON_UNIT, 2, 2, &alpha, a.get(), 2, b.get(), 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(b.Read(), (Floats{2, 4, 6, 4}));
}

TEST_F(CublasBatchTest, SolvesABatchOfTriangularSystems) {
  const Device<double> a(std::vector<double>{2, 0, 1, 4});
  const Device<double> first(std::vector<double>{5, 4}), second(std::vector<double>{2, 0});
  const Device<double*> matrices(std::vector<double*>{a.get(), a.get()});
  const Device<double*> sides(std::vector<double*>{first.get(), second.get()});
  const double alpha = 1;
  ASSERT_EQ(
      cublasDtrsmBatched(handle_, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                         CUBLAS_DIAG_NON_UNIT, 2, 1, &alpha, matrices.get(), 2, sides.get(), 2, 2),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(first.Read(), (std::vector<double>{2, 1}));
  EXPECT_EQ(second.Read(), (std::vector<double>{1, 0}));
}

}  // namespace
}  // namespace spillway::simulator::dnn
