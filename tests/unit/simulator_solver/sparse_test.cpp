// cuSOLVER's sparse systems, in host and device memory, and orders of rows.
#include <cusolverSp.h>
#include <cusolverSp_LOWLEVEL_PREVIEW.h>
#include <cusparse.h>

#include <numeric>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

using Ints = std::vector<int>;
using Doubles = std::vector<double>;

// A grid of 4 x 4 points, each with its neighbours; offsets and columns count from `base`.
struct Grid {
  explicit Grid(int index_base) : base(index_base) {
    for (int row = 0; row < kN; ++row) {
      offsets.push_back(static_cast<int>(columns.size()) + base);
      for (int column = 0; column < kN; ++column) {
        const int across = std::abs(row % 4 - column % 4), down = std::abs(row / 4 - column / 4);
        if (across + down > 1) continue;
        columns.push_back(column + base);
        values.push_back(row == column ? 4.5 : -1);
      }
    }
    offsets.push_back(static_cast<int>(columns.size()) + base);
  }
  int count() const { return static_cast<int>(values.size()); }
  Doubles Times(const Doubles& x) const {
    Doubles b(kN);
    for (int row = 0; row < kN; ++row) {
      for (int i = offsets[row] - base; i < offsets[row + 1] - base; ++i)
        b[row] += values[i] * x[columns[i] - base];
    }
    return b;
  }

  static constexpr int kN = 16;
  int base;
  Ints offsets, columns;
  Doubles values;
};

class SparseSolverTest : public GpuTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_EQ(cusolverSpCreate(&handle_), CUSOLVER_STATUS_SUCCESS);
    ASSERT_EQ(cusparseCreateMatDescr(&description_), CUSPARSE_STATUS_SUCCESS);
    cusparseSetMatIndexBase(description_,
                            GetParam() ? CUSPARSE_INDEX_BASE_ONE : CUSPARSE_INDEX_BASE_ZERO);
    for (int i = 0; i < Grid::kN; ++i) x_.push_back(i % 5 - 1.5);
  }
  void TearDown() override {
    cusparseDestroyMatDescr(description_);
    EXPECT_EQ(cusolverSpDestroy(handle_), CUSOLVER_STATUS_SUCCESS);
  }

  template <class Solver>
  Doubles SolvedOnHost(Solver solver, int expected_singularity = -1) {
    const Doubles b = grid_.Times(x_);
    Doubles x(Grid::kN);
    int singularity = -2;
    EXPECT_EQ(solver(handle_, Grid::kN, grid_.count(), description_, grid_.values.data(),
                     grid_.offsets.data(), grid_.columns.data(), b.data(), 1e-12, 0, x.data(),
                     &singularity),
              CUSOLVER_STATUS_SUCCESS);
    EXPECT_EQ(singularity, expected_singularity);
    return x;
  }
  template <class Solver>
  Doubles SolvedOnDevice(Solver solver) {
    const Device<double> b(grid_.Times(x_)), values(grid_.values), x(Doubles(Grid::kN));
    const Device<int> offsets(grid_.offsets), columns(grid_.columns);
    int singularity = -2;
    EXPECT_EQ(solver(handle_, Grid::kN, grid_.count(), description_, values.get(), offsets.get(),
                     columns.get(), b.get(), 1e-12, 0, x.get(), &singularity),
              CUSOLVER_STATUS_SUCCESS);
    EXPECT_EQ(singularity, -1);
    return x.Read();
  }
  void ExpectX(const Doubles& x) {
    for (int i = 0; i < Grid::kN; ++i) EXPECT_NEAR(x[i], x_[i], 1e-9) << i;
  }

  Grid grid_{GetParam()};
  Doubles x_;
  cusolverSpHandle_t handle_ = nullptr;
  cusparseMatDescr_t description_ = nullptr;
};

TEST_P(SparseSolverTest, EveryMethodSolves) {
  ExpectX(SolvedOnHost(cusolverSpDcsrlsvluHost));
  ExpectX(SolvedOnHost(cusolverSpDcsrlsvqrHost));
  ExpectX(SolvedOnHost(cusolverSpDcsrlsvcholHost));
  ExpectX(SolvedOnDevice(cusolverSpDcsrlsvqr));
  ExpectX(SolvedOnDevice(cusolverSpDcsrlsvchol));
}

TEST_P(SparseSolverTest, AnUnsymmetricSystemIsSolved) {
  for (int i = 0; i < grid_.count(); i += 3) grid_.values[i] += 0.25 * (i % 4);
  ExpectX(SolvedOnHost(cusolverSpDcsrlsvluHost));
  ExpectX(SolvedOnDevice(cusolverSpDcsrlsvqr));
}

TEST_P(SparseSolverTest, ASingularSystemIsNamedAndLeftUnsolved) {
  for (double& value : grid_.values) value = 0;
  EXPECT_EQ(SolvedOnHost(cusolverSpDcsrlsvluHost, 0), Doubles(Grid::kN));
  EXPECT_EQ(SolvedOnHost(cusolverSpDcsrlsvcholHost, 0), Doubles(Grid::kN));
}

// The steps that programs take one by one. The factors are used twice.
TEST_P(SparseSolverTest, QrSolvesStepByStep) {
  const int n = Grid::kN, count = grid_.count();
  const Device<double> b(grid_.Times(x_)), values(grid_.values), x(Doubles(Grid::kN));
  const Device<int> offsets(grid_.offsets), columns(grid_.columns);
  csrqrInfo_t info = nullptr;
  ASSERT_EQ(cusolverSpCreateCsrqrInfo(&info), CUSOLVER_STATUS_SUCCESS);
  EXPECT_EQ(cusolverSpDcsrqrSolve(handle_, n, n, b.get(), x.get(), info, nullptr),
            CUSOLVER_STATUS_INVALID_VALUE);
  EXPECT_EQ(cusolverSpXcsrqrAnalysis(handle_, n, n, count, description_, offsets.get(),
                                     columns.get(), info),
            CUSOLVER_STATUS_SUCCESS);
  EXPECT_EQ(cusolverSpDcsrqrSetup(handle_, n, n, count, description_, values.get(), offsets.get(),
                                  columns.get(), 0, info),
            CUSOLVER_STATUS_SUCCESS);
  EXPECT_EQ(cusolverSpDcsrqrFactor(handle_, n, n, count, nullptr, nullptr, info, nullptr),
            CUSOLVER_STATUS_SUCCESS);
  int position = 0;
  EXPECT_EQ(cusolverSpDcsrqrZeroPivot(handle_, info, 1e-12, &position), CUSOLVER_STATUS_SUCCESS);
  EXPECT_EQ(position, -1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cusolverSpDcsrqrSolve(handle_, n, n, b.get(), x.get(), info, nullptr),
              CUSOLVER_STATUS_SUCCESS);
    ExpectX(x.Read());
  }
  EXPECT_EQ(cusolverSpDestroyCsrqrInfo(info), CUSOLVER_STATUS_SUCCESS);
}

TEST_P(SparseSolverTest, CholeskyNamesAnIndefiniteMatrixStepByStep) {
  const int n = Grid::kN, count = grid_.count();
  for (const bool is_definite : {true, false}) {
    if (!is_definite) grid_.values[0] = -4.5;
    const Device<double> b(grid_.Times(x_)), values(grid_.values), x(Doubles(Grid::kN));
    const Device<int> offsets(grid_.offsets), columns(grid_.columns);
    csrcholInfo_t info = nullptr;
    ASSERT_EQ(cusolverSpCreateCsrcholInfo(&info), CUSOLVER_STATUS_SUCCESS);
    EXPECT_EQ(cusolverSpXcsrcholAnalysis(handle_, n, count, description_, offsets.get(),
                                         columns.get(), info),
              CUSOLVER_STATUS_SUCCESS);
    EXPECT_EQ(cusolverSpDcsrcholFactor(handle_, n, count, description_, values.get(), offsets.get(),
                                       columns.get(), info, nullptr),
              CUSOLVER_STATUS_SUCCESS);
    int position = -2;
    EXPECT_EQ(cusolverSpDcsrcholZeroPivot(handle_, info, 1e-12, &position),
              CUSOLVER_STATUS_SUCCESS);
    EXPECT_EQ(position >= 0, !is_definite);
    if (is_definite) {
      EXPECT_EQ(cusolverSpDcsrcholSolve(handle_, n, b.get(), x.get(), info, nullptr),
                CUSOLVER_STATUS_SUCCESS);
      ExpectX(x.Read());
    }
    EXPECT_EQ(cusolverSpDestroyCsrcholInfo(info), CUSOLVER_STATUS_SUCCESS);
  }
}

TEST_P(SparseSolverTest, HostFactorsSolveAShiftedMatrix) {
  const int n = Grid::kN, count = grid_.count();
  Doubles b = grid_.Times(x_), x(n);
  for (int i = 0; i < n; ++i) b[i] -= 0.5 * x_[i];  // (A - 0.5 I) x
  csrqrInfoHost_t info = nullptr;
  ASSERT_EQ(cusolverSpCreateCsrqrInfoHost(&info), CUSOLVER_STATUS_SUCCESS);
  EXPECT_EQ(cusolverSpXcsrqrAnalysisHost(handle_, n, n, count, description_, grid_.offsets.data(),
                                         grid_.columns.data(), info),
            CUSOLVER_STATUS_SUCCESS);
  EXPECT_EQ(cusolverSpDcsrqrSetupHost(handle_, n, n, count, description_, grid_.values.data(),
                                      grid_.offsets.data(), grid_.columns.data(), 0.5, info),
            CUSOLVER_STATUS_SUCCESS);
  EXPECT_EQ(cusolverSpDcsrqrFactorHost(handle_, n, n, count, b.data(), x.data(), info, nullptr),
            CUSOLVER_STATUS_SUCCESS);
  ExpectX(x);
  EXPECT_EQ(cusolverSpDestroyCsrqrInfoHost(info), CUSOLVER_STATUS_SUCCESS);
}

TEST_P(SparseSolverTest, AnOrderIsAPermutationAndAMatrixFollowsIt) {
  Ints order(Grid::kN), map(grid_.count());
  EXPECT_EQ(cusolverSpXcsrsymrcmHost(handle_, Grid::kN, grid_.count(), description_,
                                     grid_.offsets.data(), grid_.columns.data(), order.data()),
            CUSOLVER_STATUS_SUCCESS);
  Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  Ints all(Grid::kN);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);

  Grid moved = grid_;
  std::iota(map.begin(), map.end(), 0);
  EXPECT_EQ(cusolverSpXcsrpermHost(handle_, Grid::kN, Grid::kN, grid_.count(), description_,
                                   moved.offsets.data(), moved.columns.data(), order.data(),
                                   order.data(), map.data(), nullptr),
            CUSOLVER_STATUS_SUCCESS);
  Doubles moved_x(Grid::kN);
  for (int i = 0; i < Grid::kN; ++i) moved_x[i] = x_[order[i]];
  for (int i = 0; i < grid_.count(); ++i) moved.values[i] = grid_.values[map[i]];
  const Doubles b = grid_.Times(x_), moved_b = moved.Times(moved_x);
  for (int i = 0; i < Grid::kN; ++i) EXPECT_DOUBLE_EQ(moved_b[i], b[order[i]]);
}

TEST_P(SparseSolverTest, SymmetryIsOfThePattern) {
  int is_symmetric = -1;
  const auto ask = [&] {
    EXPECT_EQ(cusolverSpXcsrissymHost(handle_, Grid::kN, grid_.count(), description_,
                                      grid_.offsets.data(), grid_.offsets.data() + 1,
                                      grid_.columns.data(), &is_symmetric),
              CUSOLVER_STATUS_SUCCESS);
    return is_symmetric;
  };
  EXPECT_EQ(ask(), 1);
  grid_.columns[1] = 15 + grid_.base;
  EXPECT_EQ(ask(), 0);
}

INSTANTIATE_TEST_SUITE_P(Bases, SparseSolverTest, testing::Values(0, 1));

}  // namespace
}  // namespace spillway::simulator::dnn
