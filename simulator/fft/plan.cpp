#include "simulator/fft/plan.h"

#include <map>
#include <memory>
#include <mutex>

#include <cufftXt.h>

namespace spillway::simulator::fft {
namespace {

struct Plans {
  std::mutex mutex;
  int next = 1;                                        // guarded by mutex
  std::map<cufftHandle, std::unique_ptr<Plan>> plans;  // guarded by mutex
};

Plans& ThePlans() {
  static auto* const plans = new Plans;
  return *plans;
}

cufftResult Create(cufftHandle* handle) {
  if (handle == nullptr) return CUFFT_INVALID_VALUE;
  if (!dnn::EnsureContext()) return CUFFT_SETUP_FAILED;
  Plans& plans = ThePlans();
  const std::lock_guard lock(plans.mutex);
  *handle = plans.next++;
  auto plan = std::make_unique<Plan>();
  plan->allocates = true;
  plans.plans.emplace(*handle, std::move(plan));
  return CUFFT_SUCCESS;
}

struct Embedding {
  const std::int64_t* lengths;  // null: the dense layout
  std::int64_t stride, distance;
};

Layout EmbeddedLayout(const Shape& shape, const Embedding& embedding) {
  Layout layout = {};
  std::int64_t stride = embedding.stride;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    layout.strides[axis] = stride;
    stride *= embedding.lengths[axis];
  }
  layout.batch_stride = embedding.distance;
  return layout;
}

bool IsKnown(cufftType type) {
  return type == CUFFT_R2C || type == CUFFT_C2R || type == CUFFT_C2C || type == CUFFT_D2Z ||
         type == CUFFT_Z2D || type == CUFFT_Z2Z;
}

cufftResult Describe(int rank, const std::int64_t* lengths, const Embedding& input,
                     const Embedding& output, cufftType type, std::int64_t batch, Plan* plan) {
  if (rank < 1 || rank > kMostRank || lengths == nullptr) return CUFFT_INVALID_VALUE;
  if (!IsKnown(type)) return CUFFT_INVALID_TYPE;
  if (batch < 1) return CUFFT_INVALID_SIZE;
  plan->shape = {rank, {1, 1, 1}, batch};
  for (int axis = 0; axis < rank; ++axis) {
    if (lengths[axis] < 1) return CUFFT_INVALID_SIZE;
    plan->shape.lengths[axis] = lengths[axis];
  }
  plan->type = type;
  plan->is_basic = input.lengths == nullptr || output.lengths == nullptr;
  if (!plan->is_basic) {
    plan->input = EmbeddedLayout(plan->shape, input);
    plan->output = EmbeddedLayout(plan->shape, output);
  }
  // One complex copy of the data, about what the real library takes for such lengths.
  plan->work_bytes = plan->shape.Points() * batch * (IsDouble(type) ? 16 : 8);
  return CUFFT_SUCCESS;
}

cufftResult MakeWorkArea(Plan* plan) {
  if (!plan->allocates) return CUFFT_SUCCESS;
  CUdeviceptr address = 0;
  if (dnn::Driver()->MemAlloc(&address, plan->work_bytes) != CUDA_SUCCESS)
    return CUFFT_ALLOC_FAILED;
  plan->work_area = reinterpret_cast<void*>(address);
  return CUFFT_SUCCESS;
}

struct Wanted {
  int rank;
  const std::int64_t* lengths;
  Embedding input, output;
  cufftType type;
  std::int64_t batch;
};

cufftResult Make(cufftHandle handle, const Wanted& wanted, std::size_t* work_bytes) {
  Plan* const plan = Find(handle);
  if (plan == nullptr || plan->is_made) return CUFFT_INVALID_PLAN;
  cufftResult result = Describe(wanted.rank, wanted.lengths, wanted.input, wanted.output,
                                wanted.type, wanted.batch, plan);
  if (result == CUFFT_SUCCESS) result = MakeWorkArea(plan);
  if (result != CUFFT_SUCCESS) return result;
  plan->is_made = true;
  if (work_bytes != nullptr) *work_bytes = plan->work_bytes;
  return CUFFT_SUCCESS;
}

cufftResult Estimate(const Wanted& wanted, std::size_t* work_bytes) {
  Plan plan = {};
  const cufftResult result = Describe(wanted.rank, wanted.lengths, wanted.input, wanted.output,
                                      wanted.type, wanted.batch, &plan);
  if (work_bytes == nullptr) return CUFFT_INVALID_VALUE;
  if (result == CUFFT_SUCCESS) *work_bytes = plan.work_bytes;
  return result;
}

template <typename Int>
class Widened {
 public:
  Widened(int rank, const Int* values) : given_(values != nullptr) {
    for (int axis = 0; given_ && axis < rank && axis < kMostRank; ++axis)
      values_[axis] = values[axis];
  }
  const std::int64_t* get() const { return given_ ? values_ : nullptr; }

 private:
  bool given_;
  std::int64_t values_[kMostRank] = {};
};

template <typename Int, typename Use>
cufftResult WithMany(int rank, const Int* lengths, const Int* input, Int input_stride,
                     Int input_distance, const Int* output, Int output_stride, Int output_distance,
                     cufftType type, Int batch, Use use) {
  const Widened<Int> wide(rank, lengths), wide_input(rank, input), wide_output(rank, output);
  return use(Wanted{rank,
                    wide.get(),
                    {wide_input.get(), input_stride, input_distance},
                    {wide_output.get(), output_stride, output_distance},
                    type,
                    batch});
}

template <typename Use>
cufftResult WithDense(std::initializer_list<std::int64_t> lengths, cufftType type,
                      std::int64_t batch, Use use) {
  return use(Wanted{static_cast<int>(lengths.size()), lengths.begin(), {}, {}, type, batch});
}

// Half precision is not simulated.
bool TypeOf(cudaDataType input, cudaDataType output, cufftType* type) {
  struct Known {
    cudaDataType input, output;
    cufftType type;
  };
  constexpr Known kKnown[] = {
      {CUDA_R_32F, CUDA_C_32F, CUFFT_R2C}, {CUDA_C_32F, CUDA_R_32F, CUFFT_C2R},
      {CUDA_C_32F, CUDA_C_32F, CUFFT_C2C}, {CUDA_R_64F, CUDA_C_64F, CUFFT_D2Z},
      {CUDA_C_64F, CUDA_R_64F, CUFFT_Z2D}, {CUDA_C_64F, CUDA_C_64F, CUFFT_Z2Z}};
  for (const Known& known : kKnown) {
    if (known.input != input || known.output != output) continue;
    *type = known.type;
    return true;
  }
  return false;
}

template <typename MakeIt>
cufftResult CreateAndMake(cufftHandle* handle, MakeIt make) {
  const cufftResult created = Create(handle);
  if (created != CUFFT_SUCCESS) return created;
  const cufftResult made = make(*handle);
  if (made != CUFFT_SUCCESS) cufftDestroy(*handle);
  return made;
}

}  // namespace

std::int64_t Shape::Points() const { return lengths[0] * lengths[1] * lengths[2]; }

Layout DenseLayout(const Shape& shape, bool is_real, bool is_half, bool in_place) {
  const std::int64_t last = shape.lengths[shape.rank - 1];
  std::int64_t row = is_half ? last / 2 + 1 : last;
  if (is_real && in_place) row = 2 * (last / 2 + 1);
  Layout layout = {};
  std::int64_t stride = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    layout.strides[axis] = stride;
    stride *= axis == shape.rank - 1 ? row : shape.lengths[axis];
  }
  layout.batch_stride = stride;
  return layout;
}

std::uint64_t ExtentElements(const Shape& shape, const Layout& layout, bool is_half) {
  std::int64_t last = (shape.batch - 1) * layout.batch_stride;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const bool halved = is_half && axis == shape.rank - 1;
    const std::int64_t length = halved ? shape.lengths[axis] / 2 + 1 : shape.lengths[axis];
    last += (length - 1) * layout.strides[axis];
  }
  return last + 1;
}

Plan* Find(cufftHandle handle) {
  Plans& plans = ThePlans();
  const std::lock_guard lock(plans.mutex);
  const auto found = plans.plans.find(handle);
  return found == plans.plans.end() ? nullptr : found->second.get();
}

}  // namespace spillway::simulator::fft

using namespace spillway::simulator::fft;
namespace dnn = spillway::simulator::dnn;

extern "C" {

cufftResult cufftCreate(cufftHandle* handle) { return Create(handle); }

// A pending transform may still use the work area; freeing it waits as cuMemFree does.
cufftResult cufftDestroy(cufftHandle handle) {
  Plans& plans = ThePlans();
  std::unique_ptr<Plan> plan;
  {
    const std::lock_guard lock(plans.mutex);
    const auto found = plans.plans.find(handle);
    if (found == plans.plans.end()) return CUFFT_INVALID_PLAN;
    plan = std::move(found->second);
    plans.plans.erase(found);
  }
  if (plan->allocates && plan->work_area != nullptr)
    dnn::Driver()->MemFree(reinterpret_cast<CUdeviceptr>(plan->work_area));
  return CUFFT_SUCCESS;
}

cufftResult cufftMakePlan1d(cufftHandle plan, int x, cufftType type, int batch, size_t* bytes) {
  return WithDense({x}, type, batch, [&](const Wanted& w) { return Make(plan, w, bytes); });
}
cufftResult cufftMakePlan2d(cufftHandle plan, int x, int y, cufftType type, size_t* bytes) {
  return WithDense({x, y}, type, 1, [&](const Wanted& w) { return Make(plan, w, bytes); });
}
cufftResult cufftMakePlan3d(cufftHandle plan, int x, int y, int z, cufftType type, size_t* bytes) {
  return WithDense({x, y, z}, type, 1, [&](const Wanted& w) { return Make(plan, w, bytes); });
}
cufftResult cufftPlan1d(cufftHandle* plan, int x, cufftType type, int batch) {
  return CreateAndMake(
      plan, [&](cufftHandle made) { return cufftMakePlan1d(made, x, type, batch, nullptr); });
}
cufftResult cufftPlan2d(cufftHandle* plan, int x, int y, cufftType type) {
  return CreateAndMake(
      plan, [&](cufftHandle made) { return cufftMakePlan2d(made, x, y, type, nullptr); });
}
cufftResult cufftPlan3d(cufftHandle* plan, int x, int y, int z, cufftType type) {
  return CreateAndMake(
      plan, [&](cufftHandle made) { return cufftMakePlan3d(made, x, y, z, type, nullptr); });
}

#define SPILLWAY_FFT_ESTIMATES(name, first, ...)                                  \
  cufftResult cufftEstimate##name(__VA_ARGS__, size_t* bytes) {                   \
    return WithDense(first, [&](const Wanted& w) { return Estimate(w, bytes); }); \
  }                                                                               \
  cufftResult cufftGetSize##name(cufftHandle, __VA_ARGS__, size_t* bytes) {       \
    return WithDense(first, [&](const Wanted& w) { return Estimate(w, bytes); }); \
  }
#define SPILLWAY_FFT_ONE {x}, type, batch
#define SPILLWAY_FFT_TWO {x, y}, type, 1
#define SPILLWAY_FFT_THREE {x, y, z}, type, 1
SPILLWAY_FFT_ESTIMATES(1d, SPILLWAY_FFT_ONE, int x, cufftType type, int batch)
SPILLWAY_FFT_ESTIMATES(2d, SPILLWAY_FFT_TWO, int x, int y, cufftType type)
SPILLWAY_FFT_ESTIMATES(3d, SPILLWAY_FFT_THREE, int x, int y, int z, cufftType type)
#undef SPILLWAY_FFT_ESTIMATES
#undef SPILLWAY_FFT_ONE
#undef SPILLWAY_FFT_TWO
#undef SPILLWAY_FFT_THREE

#define SPILLWAY_FFT_MANY(Int)                                                           \
  int rank, Int *lengths, Int *input, Int input_stride, Int input_distance, Int *output, \
      Int output_stride, Int output_distance, cufftType type, Int batch
#define SPILLWAY_FFT_PASS                                                                     \
  rank, lengths, input, input_stride, input_distance, output, output_stride, output_distance, \
      type, batch
cufftResult cufftMakePlanMany(cufftHandle plan, SPILLWAY_FFT_MANY(int), size_t* bytes) {
  return WithMany<int>(SPILLWAY_FFT_PASS,
                       [&](const Wanted& wanted) { return Make(plan, wanted, bytes); });
}
cufftResult cufftMakePlanMany64(cufftHandle plan, SPILLWAY_FFT_MANY(long long int), size_t* bytes) {
  return WithMany<long long>(SPILLWAY_FFT_PASS,
                             [&](const Wanted& wanted) { return Make(plan, wanted, bytes); });
}
cufftResult cufftPlanMany(cufftHandle* plan, SPILLWAY_FFT_MANY(int)) {
  return CreateAndMake(
      plan, [&](cufftHandle made) { return cufftMakePlanMany(made, SPILLWAY_FFT_PASS, nullptr); });
}
cufftResult cufftEstimateMany(SPILLWAY_FFT_MANY(int), size_t* bytes) {
  return WithMany<int>(SPILLWAY_FFT_PASS,
                       [&](const Wanted& wanted) { return Estimate(wanted, bytes); });
}
cufftResult cufftGetSizeMany(cufftHandle, SPILLWAY_FFT_MANY(int), size_t* bytes) {
  return cufftEstimateMany(SPILLWAY_FFT_PASS, bytes);
}
cufftResult cufftGetSizeMany64(cufftHandle, SPILLWAY_FFT_MANY(long long int), size_t* bytes) {
  return WithMany<long long>(SPILLWAY_FFT_PASS,
                             [&](const Wanted& wanted) { return Estimate(wanted, bytes); });
}
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int* lengths,
                                long long int* input, long long int input_stride,
                                long long int input_distance, cudaDataType input_type,
                                long long int* output, long long int output_stride,
                                long long int output_distance, cudaDataType output_type,
                                long long int batch, size_t* bytes, cudaDataType) {
  cufftType type;
  if (!TypeOf(input_type, output_type, &type)) return CUFFT_NOT_SUPPORTED;
  return cufftMakePlanMany64(plan, SPILLWAY_FFT_PASS, bytes);
}
#undef SPILLWAY_FFT_MANY
#undef SPILLWAY_FFT_PASS

cufftResult cufftGetSize(cufftHandle handle, size_t* bytes) {
  const Plan* const plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (bytes == nullptr) return CUFFT_INVALID_VALUE;
  *bytes = plan->work_bytes;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  Plan* const plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}
// As documented, only before the plan is made.
cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocates) {
  Plan* const plan = Find(handle);
  if (plan == nullptr || plan->is_made) return CUFFT_INVALID_PLAN;
  plan->allocates = allocates != 0;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetWorkArea(cufftHandle handle, void* work_area) {
  Plan* const plan = Find(handle);
  if (plan == nullptr || !plan->is_made) return CUFFT_INVALID_PLAN;
  if (plan->allocates) dnn::Driver()->MemFree(reinterpret_cast<CUdeviceptr>(plan->work_area));
  plan->allocates = false;
  plan->work_area = work_area;
  return CUFFT_SUCCESS;
}

cufftResult cufftGetVersion(int* version) {
  if (version == nullptr) return CUFFT_INVALID_VALUE;
  *version = CUFFT_VERSION;
  return CUFFT_SUCCESS;
}
cufftResult cufftGetProperty(libraryPropertyType type, int* value) {
  const int parts[] = {CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) return CUFFT_INVALID_VALUE;
  *value = parts[type];
  return CUFFT_SUCCESS;
}

}  // extern "C"
