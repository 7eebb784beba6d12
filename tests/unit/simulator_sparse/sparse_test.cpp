// cuSPARSE against dense arithmetic on the host.
#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>

#include <memory>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

// Five rows with a full diagonal, sorted columns and an entry on both sides of it.
constexpr int kRows = 5, kCount = 13;
using Ints = std::vector<int>;
const Ints kOffsets = {0, 3, 5, 8, 10, 13};
const Ints kColumns = {0, 1, 4, 0, 1, 1, 2, 3, 2, 3, 0, 3, 4};
const Floats kValues = {4, 1, -1, 1, 5, 2, 6, 1, -2, 7, 1, 3, 8};
const Floats kX = {1, -2, 3, 0.5f, 2};

Floats DenseOf(const Floats& values) {
  Floats dense(kRows * kRows);
  for (int row = 0; row < kRows; ++row) {
    for (int i = kOffsets[row]; i < kOffsets[row + 1]; ++i)
      dense[row * kRows + kColumns[i]] = values[i];
  }
  return dense;
}

// alpha op(A) x + beta y.
Floats Product(const Floats& dense, bool transposed, const Floats& x, float alpha, float beta,
               const Floats& y) {
  Floats result(kRows);
  for (int row = 0; row < kRows; ++row) {
    float sum = 0;
    for (int column = 0; column < kRows; ++column)
      sum += dense[transposed ? column * kRows + row : row * kRows + column] * x[column];
    result[row] = alpha * sum + beta * y[row];
  }
  return result;
}

class CusparseTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_EQ(cusparseCreate(&handle_), CUSPARSE_STATUS_SUCCESS);
    offsets_ = std::make_unique<Device<int>>(kOffsets);
    columns_ = std::make_unique<Device<int>>(kColumns);
    values_ = std::make_unique<DeviceFloats>(kValues);
    x_ = std::make_unique<DeviceFloats>(kX);
    y_ = std::make_unique<DeviceFloats>(Floats(kRows, 1));
    Expect(cusparseCreateCsr(&matrix_, kRows, kRows, kCount, offsets_->get(), columns_->get(),
                             values_->get(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                             CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    Expect(cusparseCreateDnVec(&x_vector_, kRows, x_->get(), CUDA_R_32F));
    Expect(cusparseCreateDnVec(&y_vector_, kRows, y_->get(), CUDA_R_32F));
  }
  void TearDown() override {
    cusparseDestroyDnVec(x_vector_);
    cusparseDestroyDnVec(y_vector_);
    cusparseDestroySpMat(matrix_);
    cusparseDestroy(handle_);
  }

  void Expect(cusparseStatus_t status) {
    EXPECT_EQ(status, CUSPARSE_STATUS_SUCCESS) << cusparseGetErrorName(status);
  }

  void Multiply(cusparseOperation_t operation, cusparseSpMatDescr_t matrix, float alpha,
                float beta) {
    std::size_t buffer_bytes = 0;
    Expect(cusparseSpMV_bufferSize(handle_, operation, &alpha, matrix, x_vector_, &beta, y_vector_,
                                   CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &buffer_bytes));
    const DeviceBytes buffer(buffer_bytes);
    Expect(cusparseSpMV(handle_, operation, &alpha, matrix, x_vector_, &beta, y_vector_, CUDA_R_32F,
                        CUSPARSE_SPMV_ALG_DEFAULT, buffer.get()));
    cuCtxSynchronize();
  }

  // x = op(A's triangle)^-1 times the vector x.
  Floats SolveTriangle(cusparseFillMode_t fill, cusparseDiagType_t diagonal,
                       cusparseOperation_t operation) {
    Expect(cusparseSpMatSetAttribute(matrix_, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill));
    Expect(
        cusparseSpMatSetAttribute(matrix_, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal));
    const float alpha = 1;
    cusparseSpSVDescr_t state = nullptr;
    std::size_t buffer_bytes = 0;
    Expect(cusparseSpSV_createDescr(&state));
    Expect(cusparseSpSV_bufferSize(handle_, operation, &alpha, matrix_, x_vector_, y_vector_,
                                   CUDA_R_32F, CUSPARSE_SPSV_ALG_DEFAULT, state, &buffer_bytes));
    const DeviceBytes buffer(buffer_bytes);
    Expect(cusparseSpSV_analysis(handle_, operation, &alpha, matrix_, x_vector_, y_vector_,
                                 CUDA_R_32F, CUSPARSE_SPSV_ALG_DEFAULT, state, buffer.get()));
    Expect(cusparseSpSV_solve(handle_, operation, &alpha, matrix_, x_vector_, y_vector_, CUDA_R_32F,
                              CUSPARSE_SPSV_ALG_DEFAULT, state));
    Expect(cusparseSpSV_destroyDescr(state));
    return y_->Read();
  }

  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t x_vector_ = nullptr, y_vector_ = nullptr;
  std::unique_ptr<Device<int>> offsets_, columns_;
  std::unique_ptr<DeviceFloats> values_, x_, y_;
};

TEST_F(CusparseTest, MultipliesAVector) {
  Multiply(CUSPARSE_OPERATION_NON_TRANSPOSE, matrix_, 2, 0.5f);
  ExpectNear(y_->Read(), Product(DenseOf(kValues), false, kX, 2, 0.5f, Floats(kRows, 1)));
  Multiply(CUSPARSE_OPERATION_TRANSPOSE, matrix_, 1, 0);
  ExpectNear(y_->Read(), Product(DenseOf(kValues), true, kX, 1, 0, Floats(kRows)));
}

TEST_F(CusparseTest, CoordinatesFromOneGiveTheSameProduct) {
  std::vector<std::int64_t> rows, columns;
  for (int row = 0; row < kRows; ++row) {
    for (int i = kOffsets[row]; i < kOffsets[row + 1]; ++i) {
      rows.push_back(row + 1);
      columns.push_back(kColumns[i] + 1);
    }
  }
  const Device<std::int64_t> device_rows(rows), device_columns(columns);
  cusparseSpMatDescr_t matrix = nullptr;
  Expect(cusparseCreateCoo(&matrix, kRows, kRows, kCount, device_rows.get(), device_columns.get(),
                           values_->get(), CUSPARSE_INDEX_64I, CUSPARSE_INDEX_BASE_ONE,
                           CUDA_R_32F));
  Multiply(CUSPARSE_OPERATION_NON_TRANSPOSE, matrix, 1, 0);
  ExpectNear(y_->Read(), Product(DenseOf(kValues), false, kX, 1, 0, Floats(kRows)));
  Expect(cusparseDestroySpMat(matrix));
}

TEST_F(CusparseTest, MultipliesAMatrixInBothOrders) {
  const Floats b = Values(kRows * 2, 3);  // two columns, stored by column or by row
  const DeviceFloats device_b(b), c(kRows * 2);
  for (const cusparseOrder_t order : {CUSPARSE_ORDER_COL, CUSPARSE_ORDER_ROW}) {
    const bool by_column = order == CUSPARSE_ORDER_COL;
    cusparseDnMatDescr_t b_matrix = nullptr, c_matrix = nullptr;
    Expect(cusparseCreateDnMat(&b_matrix, kRows, 2, by_column ? kRows : 2, device_b.get(),
                               CUDA_R_32F, order));
    Expect(
        cusparseCreateDnMat(&c_matrix, kRows, 2, kRows, c.get(), CUDA_R_32F, CUSPARSE_ORDER_COL));
    const float alpha = 1, beta = 0;
    Expect(cusparseSpMM(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
                        &alpha, matrix_, b_matrix, &beta, c_matrix, CUDA_R_32F,
                        CUSPARSE_SPMM_ALG_DEFAULT, nullptr));
    const Floats result = c.Read();
    for (int column = 0; column < 2; ++column) {
      Floats x(kRows);
      for (int i = 0; i < kRows; ++i) x[i] = b[by_column ? column * kRows + i : i * 2 + column];
      ExpectNear(Floats(result.begin() + column * kRows, result.begin() + (column + 1) * kRows),
                 Product(DenseOf(kValues), false, x, 1, 0, Floats(kRows)));
    }
    cusparseDestroyDnMat(b_matrix);
    cusparseDestroyDnMat(c_matrix);
  }
}

TEST_F(CusparseTest, SolvesBothTrianglesPlainAndTransposed) {
  for (const bool lower : {true, false}) {
    for (const bool unit : {true, false}) {
      for (const bool transposed : {false, true}) {
        const Floats solution = SolveTriangle(
            lower ? CUSPARSE_FILL_MODE_LOWER : CUSPARSE_FILL_MODE_UPPER,
            unit ? CUSPARSE_DIAG_TYPE_UNIT : CUSPARSE_DIAG_TYPE_NON_UNIT,
            transposed ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE);
        Floats triangle = DenseOf(kValues);
        for (int i = 0; i < kRows * kRows; ++i) {
          const int row = i / kRows, column = i % kRows;
          if (lower ? column > row : column < row) triangle[i] = 0;
          if (row == column && unit) triangle[i] = 1;
        }
        ExpectNear(Product(triangle, transposed, solution, 1, 0, Floats(kRows)), kX);
      }
    }
  }
}

TEST_F(CusparseTest, IncompleteFactorsMultiplyToTheMatrixWhereItHasValues) {
  cusparseMatDescr_t description = nullptr;
  csrilu02Info_t info = nullptr;
  int buffer_bytes = 0;
  Expect(cusparseCreateMatDescr(&description));
  Expect(cusparseCreateCsrilu02Info(&info));
  Expect(cusparseScsrilu02_bufferSize(handle_, kRows, kCount, description, values_->get(),
                                      offsets_->get(), columns_->get(), info, &buffer_bytes));
  const DeviceBytes buffer(buffer_bytes);
  Expect(cusparseScsrilu02_analysis(handle_, kRows, kCount, description, values_->get(),
                                    offsets_->get(), columns_->get(), info,
                                    CUSPARSE_SOLVE_POLICY_USE_LEVEL, buffer.get()));
  Expect(cusparseScsrilu02(handle_, kRows, kCount, description, values_->get(), offsets_->get(),
                           columns_->get(), info, CUSPARSE_SOLVE_POLICY_USE_LEVEL, buffer.get()));
  int position = -2;
  Expect(cusparseXcsrilu02_zeroPivot(handle_, info, &position));
  EXPECT_EQ(position, -1);

  const Floats factors = DenseOf(values_->Read());
  const Floats matrix = DenseOf(kValues);
  for (int row = 0; row < kRows; ++row) {
    for (int i = kOffsets[row]; i < kOffsets[row + 1]; ++i) {
      const int column = kColumns[i];
      float sum = 0;
      for (int k = 0; k <= std::min(row, column); ++k)
        sum += (k == row ? 1 : factors[row * kRows + k]) * factors[k * kRows + column];
      EXPECT_NEAR(sum, matrix[row * kRows + column], 1e-5) << row << "," << column;
    }
  }
  cusparseDestroyCsrilu02Info(info);
  cusparseDestroyMatDescr(description);
}

TEST_F(CusparseTest, ReportsTheFirstZeroPivot) {
  cusparseMatDescr_t description = nullptr;
  csrilu02Info_t info = nullptr;
  Expect(cusparseCreateMatDescr(&description));
  Expect(cusparseCreateCsrilu02Info(&info));
  const Device<int> offsets(Ints{0, 2, 4}), columns(Ints{0, 1, 0, 1});
  const DeviceFloats values(Floats{1, 2, 2, 4});
  const DeviceBytes buffer(64);
  Expect(cusparseScsrilu02_analysis(handle_, 2, 4, description, values.get(), offsets.get(),
                                    columns.get(), info, CUSPARSE_SOLVE_POLICY_NO_LEVEL,
                                    buffer.get()));
  Expect(cusparseScsrilu02(handle_, 2, 4, description, values.get(), offsets.get(), columns.get(),
                           info, CUSPARSE_SOLVE_POLICY_NO_LEVEL, buffer.get()));
  int position = -1;
  EXPECT_EQ(cusparseXcsrilu02_zeroPivot(handle_, info, &position), CUSPARSE_STATUS_ZERO_PIVOT);
  EXPECT_EQ(position, 1);
  cusparseDestroyCsrilu02Info(info);
  cusparseDestroyMatDescr(description);
}

TEST_F(CusparseTest, ScattersAndGathers) {
  const Device<int> indices(Ints{3, 0});
  const DeviceFloats values(Floats{10, 20});
  cusparseSpVecDescr_t sparse = nullptr;
  Expect(cusparseCreateSpVec(&sparse, kRows, 2, indices.get(), values.get(), CUSPARSE_INDEX_32I,
                             CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  Expect(cusparseScatter(handle_, sparse, y_vector_));
  EXPECT_EQ(y_->Read(), (Floats{20, 1, 1, 10, 1}));
  Expect(cusparseGather(handle_, x_vector_, sparse));
  EXPECT_EQ(values.Read(), (Floats{0.5f, 1}));
  Expect(cusparseDestroySpVec(sparse));
}

TEST_F(CusparseTest, RefusesWhatItDoesNotSimulate) {
  cusparseSpMatDescr_t matrix = nullptr;
  Expect(cusparseCreateCsr(&matrix, kRows, kRows, kCount, offsets_->get(), columns_->get(),
                           values_->get(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                           CUSPARSE_INDEX_BASE_ZERO, CUDA_C_32F));
  const float alpha = 1, beta = 0;
  EXPECT_EQ(cusparseSpMV(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, matrix, x_vector_,
                         &beta, y_vector_, CUDA_C_32F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr),
            CUSPARSE_STATUS_NOT_SUPPORTED);
  Expect(cusparseDestroySpMat(matrix));
}

}  // namespace
}  // namespace spillway::simulator::dnn
