#include <algorithm>
#include <cstring>
#include <limits>

#include "simulator/dnn/cublas/product.h"
#include "simulator/dnn/cublaslt/descriptors.h"
#include "simulator/dnn/cublaslt/epilogue.h"

namespace spillway::simulator::dnn {
namespace {

enum Place { kA, kB, kC, kD, kBias, kAux, kAlpha, kBeta, kWorkspace, kPlaces };

struct MatmulOperation {
  static constexpr char kName[] = "cublaslt_matmul";
  static constexpr int kOperands = kPlaces;
  GemmProblem problem;  // its c is D
  Matrix c;
  Epilogue epilogue;
  std::uint64_t workspace_bytes;

  static char* Item(const Matrix& matrix, void* base, std::int64_t index) {
    return static_cast<char*>(base) + index * matrix.batch_stride * matrix.ElementBytes();
  }

  void Run(void* const* operands) const {
    MarkWorkspace(operands[kWorkspace], workspace_bytes);
    const double alpha = problem.alpha.Get(operands[kAlpha]);
    const double beta = problem.beta.Get(operands[kBeta]);
    for (std::int64_t i = 0; i < problem.batch_count; ++i) RunItem(operands, i, alpha, beta);
  }

  void RunItem(void* const* operands, std::int64_t i, double alpha, double beta) const {
    const GemmProblem& p = problem;
    void* const a = Item(p.a, operands[kA], i);
    void* const b = Item(p.b, operands[kB], i);
    void* const from = operands[kC] != nullptr ? Item(c, operands[kC], i) : nullptr;
    void* const to = Item(p.c, operands[kD], i);
    if (p.c.number == Number::kDouble) return RunDouble(alpha, beta, a, b, from, to);
    Scratch dense(p.m * p.n);
    GemmProblem inner = p;
    inner.c = {Number::kFloat, 0, p.m, p.n, std::max<std::int64_t>(p.m, 1), 0};
    if (beta != 0) Load(from, dense.data());
    Multiply(inner, alpha, beta, a, b, dense.data());
    Finish(operands, i, a, b, dense.data());
    Store(dense.data(), to);
  }

  void RunDouble(double alpha, double beta, const void* a, const void* b, const void* from,
                 void* to) const {
    const GemmProblem& p = problem;
    for (std::int64_t column = 0; beta != 0 && from != to && column < p.n; ++column) {
      std::memcpy(static_cast<double*>(to) + column * p.c.leading,
                  static_cast<const double*>(from) + column * c.leading, p.m * sizeof(double));
    }
    Multiply(p, alpha, beta, a, b, to);
  }

  void Load(const void* from, float* dense) const {
    for (std::int64_t column = 0; column < problem.n; ++column) {
      for (std::int64_t row = 0; row < problem.m; ++row) {
        const auto at = (column * c.leading + row) * c.ElementBytes();
        dense[column * problem.m + row] =
            static_cast<float>(ReadNumber(c.number, static_cast<const char*>(from) + at));
      }
    }
  }

  void Store(const float* dense, void* to) const {
    const Matrix& d = problem.c;
    for (std::int64_t column = 0; column < problem.n; ++column) {
      for (std::int64_t row = 0; row < problem.m; ++row) {
        const auto at = (column * d.leading + row) * d.ElementBytes();
        WriteNumber(d.number, static_cast<double>(dense[column * problem.m + row]),
                    static_cast<char*>(to) + at);
      }
    }
  }

  void Finish(void* const* operands, std::int64_t i, const void* a, const void* b,
              float* dense) const {
    char* const bias =
        static_cast<char*>(operands[kBias]) +
        (operands[kBias] ? i * epilogue.bias_stride * NumberBytes(epilogue.bias_number) : 0);
    const std::int64_t aux_offset =
        epilogue.AuxIsBits() ? i * epilogue.aux_stride / 8
                             : i * epilogue.aux_stride * NumberBytes(epilogue.aux_number);
    char* const aux = static_cast<char*>(operands[kAux]) + (operands[kAux] ? aux_offset : 0);
    Apply(epilogue, dense, problem.m, problem.n, bias, aux);
    if (epilogue.bias == Bias::kGradientOfA) SumOverK(problem.a, a, !problem.a.transposed, bias);
    if (epilogue.bias == Bias::kGradientOfB) SumOverK(problem.b, b, problem.b.transposed, bias);
  }

  void SumOverK(const Matrix& matrix, const void* data, bool of_rows, char* bias) const {
    const std::int64_t outer = of_rows ? matrix.rows : matrix.columns;
    for (std::int64_t i = 0; i < outer; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < problem.k; ++k) {
        const std::int64_t at = of_rows ? k * matrix.leading + i : i * matrix.leading + k;
        sum +=
            ReadNumber(matrix.number, static_cast<const char*>(data) + at * matrix.ElementBytes());
      }
      WriteNumber(epilogue.bias_number, sum, bias + i * NumberBytes(epilogue.bias_number));
    }
  }
};

Matrix MatrixOf(const Layout& layout, std::int32_t transpose) {
  return {NumberOf(static_cast<cudaDataType_t>(layout.type)),
          transpose != CUBLAS_OP_N,
          static_cast<std::int64_t>(layout.rows),
          static_cast<std::int64_t>(layout.columns),
          layout.leading,
          layout.batch_stride};
}

struct Layouts {
  const Layout& a;
  const Layout& b;
  const Layout& c;
  const Layout& d;
};

bool LayoutIsSimulated(const Layout& layout) {
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();  // OpenBLAS counts in int
  return layout.order == CUBLASLT_ORDER_COL && layout.plane_offset == 0 && layout.batch_mode == 0 &&
         layout.rows <= kMost && layout.columns <= kMost && layout.batch_stride >= 0 &&
         NumberOf(static_cast<cudaDataType_t>(layout.type)) != Number::kUnsupported;
}

bool ShapesMatch(const MatmulSettings& settings, const Layouts& layouts) {
  const bool a_turned = settings.transpose_a != CUBLAS_OP_N;
  const bool b_turned = settings.transpose_b != CUBLAS_OP_N;
  const auto& [a, b, c, d] = layouts;
  const auto fits = [batch_count = layouts.d.batch_count](const Layout& layout) {
    return layout.leading >= static_cast<std::int64_t>(layout.rows) && layout.leading > 0 &&
           layout.batch_count == batch_count;
  };
  return (a_turned ? a.columns : a.rows) == d.rows &&
         (b_turned ? b.rows : b.columns) == d.columns &&
         (a_turned ? a.rows : a.columns) == (b_turned ? b.columns : b.rows) && c.rows == d.rows &&
         c.columns == d.columns && fits(a) && fits(b) && fits(c) && fits(d);
}

bool TypesAreSimulated(const MatmulSettings& settings, const Layouts& layouts) {
  const auto number = [](std::uint32_t type) {
    return NumberOf(static_cast<cudaDataType_t>(type));
  };
  const Number scale = number(static_cast<std::uint32_t>(settings.scale_type));
  const bool is_double = number(layouts.d.type) == Number::kDouble;
  for (const Layout* layout : {&layouts.a, &layouts.b, &layouts.c}) {
    if ((number(layout->type) == Number::kDouble) != is_double) return false;
  }
  return number(layouts.a.type) == number(layouts.b.type) &&
         (is_double ? scale == Number::kDouble : scale == Number::kFloat || scale == Number::kHalf);
}

// These would change the result.
bool SettingsAreSimulated(const MatmulSettings& settings) {
  const auto* const scales = settings.scales;
  return settings.pointer_mode <= CUBLASLT_POINTER_MODE_DEVICE &&
         settings.transpose_c == CUBLAS_OP_N && settings.fill_mode == CUBLAS_FILL_MODE_FULL &&
         !scales[0] && !scales[1] && !scales[2] && !scales[3];
}

bool EpilogueIsSimulated(const MatmulSettings& settings, const Layouts& layouts,
                         Epilogue* epilogue) {
  if (!EpilogueOf(settings.epilogue, epilogue)) return false;
  const auto type = [&](std::int32_t given) {
    return NumberOf(
        static_cast<cudaDataType_t>(given < 0 ? static_cast<std::int32_t>(layouts.d.type) : given));
  };
  epilogue->bias_number = type(settings.bias_type);
  epilogue->aux_number = type(settings.aux_type);
  epilogue->aux_leading = settings.aux_leading;
  epilogue->bias_stride = settings.bias_stride;
  epilogue->aux_stride = settings.aux_stride;
  const bool is_plain = settings.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  const bool is_double = type(-1) == Number::kDouble;
  return epilogue->bias_number != Number::kUnsupported &&
         epilogue->aux_number != Number::kUnsupported && (is_plain || !is_double);
}

cublasStatus_t Check(const MatmulSettings& settings, const Layouts& layouts, Epilogue* epilogue) {
  for (const Layout* layout : {&layouts.a, &layouts.b, &layouts.c, &layouts.d}) {
    if (!LayoutIsSimulated(*layout)) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (!ShapesMatch(settings, layouts)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool simulated = TypesAreSimulated(settings, layouts) && SettingsAreSimulated(settings) &&
                         EpilogueIsSimulated(settings, layouts, epilogue);
  if (!simulated) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool aux_fits =
      !epilogue->has_aux || epilogue->aux_leading >= static_cast<std::int64_t>(layouts.d.rows);
  return aux_fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

struct Call {
  const void* alpha;
  const void* a;
  const void* b;
  const void* beta;
  const void* c;
  void* d;
  void* workspace;
};

std::uint64_t BiasBytes(const MatmulOperation& operation) {
  const Epilogue& e = operation.epilogue;
  if (e.bias == Bias::kNone) return 0;
  const GemmProblem& p = operation.problem;
  const std::int64_t length = e.bias == Bias::kGradientOfB ? p.n : p.m;
  return ((p.batch_count - 1) * e.bias_stride + length) * NumberBytes(e.bias_number);
}

std::uint64_t AllAuxBytes(const MatmulOperation& operation) {
  const Epilogue& e = operation.epilogue;
  if (!e.has_aux) return 0;
  const GemmProblem& p = operation.problem;
  const std::int64_t stride_bytes =
      e.AuxIsBits() ? e.aux_stride / 8 : e.aux_stride * NumberBytes(e.aux_number);
  return (p.batch_count - 1) * stride_bytes + AuxBytes(e, p.m, p.n);
}

Operand OperandC(const MatmulOperation& operation, const Call& call) {
  const bool unread = IsKnownZero(operation.problem.beta);
  return Reads(unread ? nullptr : call.c, BatchBytes(operation.c, operation.problem.batch_count));
}

Operand OperandD(const MatmulOperation& operation, const Call& call) {
  const std::uint64_t bytes = BatchBytes(operation.problem.c, operation.problem.batch_count);
  const bool in_place = call.c == call.d && !IsKnownZero(operation.problem.beta);
  return in_place ? Updates(call.d, bytes) : Writes(call.d, bytes);
}

cublasStatus_t Launch(const MatmulOperation& operation, const MatmulSettings& settings,
                      const Call& call, CUstream stream) {
  const GemmProblem& p = operation.problem;
  const Epilogue& e = operation.epilogue;
  void* const bias = e.bias == Bias::kNone ? nullptr : settings.bias;
  void* const aux = e.has_aux ? settings.aux : nullptr;
  const CUresult result = Enqueue(
      stream, operation,
      {Reads(call.a, BatchBytes(p.a, p.batch_count)), Reads(call.b, BatchBytes(p.b, p.batch_count)),
       OperandC(operation, call), OperandD(operation, call),
       e.WritesBias() ? Writes(bias, BiasBytes(operation)) : Reads(bias, BiasBytes(operation)),
       e.ReadsAux() ? Reads(aux, AllAuxBytes(operation)) : Writes(aux, AllAuxBytes(operation)),
       ScalarOperand(p.alpha, call.alpha), ScalarOperand(p.beta, call.beta),
       Writes(call.workspace, operation.workspace_bytes)},
      Flops(p));
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

MatmulOperation OperationOf(const MatmulSettings& settings, const Layouts& layouts,
                            const Call& call, const Epilogue& epilogue) {
  const bool on_device = settings.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  const Number scale = NumberOf(static_cast<cudaDataType_t>(settings.scale_type));
  const Matrix a = MatrixOf(layouts.a, settings.transpose_a);
  MatmulOperation operation = {};
  operation.problem = {static_cast<std::int64_t>(layouts.d.rows),
                       static_cast<std::int64_t>(layouts.d.columns),
                       a.transposed ? a.rows : a.columns,
                       a,
                       MatrixOf(layouts.b, settings.transpose_b),
                       MatrixOf(layouts.d, CUBLAS_OP_N),
                       ScalarArgument(on_device, scale, call.alpha),
                       ScalarArgument(on_device, scale, call.beta),
                       layouts.d.batch_count};
  operation.c = MatrixOf(layouts.c, CUBLAS_OP_N);
  operation.epilogue = epilogue;
  return operation;
}

struct Algorithm {
  std::uint64_t workspace_bytes;
};

constexpr std::uint64_t kUsefulWorkspaceBytes = 4u << 20;

cublasStatus_t Matmul(const MatmulSettings& settings, const Layouts& layouts, const Call& call,
                      const cublasLtMatmulAlgo_t* algorithm, std::size_t workspace_bytes,
                      CUstream stream) {
  Epilogue epilogue;
  const cublasStatus_t status = Check(settings, layouts, &epilogue);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const bool complete = call.a && call.b && call.d && call.alpha && call.beta &&
                        (epilogue.bias == Bias::kNone || settings.bias) &&
                        (!epilogue.has_aux || settings.aux);
  if (!complete) return CUBLAS_STATUS_INVALID_VALUE;
  MatmulOperation operation = OperationOf(settings, layouts, call, epilogue);
  if (!IsKnownZero(operation.problem.beta) && !call.c) return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm chosen = {std::min<std::uint64_t>(workspace_bytes, kUsefulWorkspaceBytes)};
  if (algorithm) std::memcpy(&chosen, algorithm->data, sizeof chosen);
  if (chosen.workspace_bytes > workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  operation.workspace_bytes = call.workspace ? chosen.workspace_bytes : 0;
  if (operation.problem.m == 0 || operation.problem.n == 0 || operation.problem.batch_count == 0)
    return CUBLAS_STATUS_SUCCESS;
  return Launch(operation, settings, call, stream);
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

// One algorithm, with a workspace as a real one for large shapes takes.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t settings,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (!handle || !settings || !a || !b || !c || !d || !preference || wanted < 1 || !results ||
      !found) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *found = 0;
  Epilogue epilogue;
  const cublasStatus_t status = Check(Of(settings), {Of(a), Of(b), Of(c), Of(d)}, &epilogue);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  results[0] = {};
  const Algorithm chosen = {std::min(Of(preference).workspace_bytes, kUsefulWorkspaceBytes)};
  std::memcpy(results[0].algo.data, &chosen, sizeof chosen);
  results[0].workspaceSize = chosen.workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t settings,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (!handle || !EnsureContext()) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!settings || !a_layout || !b_layout || !c_layout || !d_layout)
    return CUBLAS_STATUS_INVALID_VALUE;
  return Matmul(Of(settings), {Of(a_layout), Of(b_layout), Of(c_layout), Of(d_layout)},
                {alpha, a, b, beta, c, d, workspace}, algorithm, workspace_bytes, stream);
}

}  // extern "C"
