// cuDNN's legacy queries for a convolution's algorithms: answers hide what cannot run within the
// budget (dnn/workspace_offers.h).
//
// The three directions have results of one layout
// (cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t of cudnn_cnn.h, identical in cuDNN 7 to 9).
// Results come in the order of their times. The library is asked for all of them: behind those that
// the program asked for may be one that fits.
#include <stdio.h>

#include <algorithm>
#include <iterator>

#include "interposer/dnn/other_algorithms.h"
#include "interposer/dnn/workspace_offers.h"
#include "interposer/entry/around.h"
#include "interposer/entry/dnn_descriptors.h"
#include "interposer/entry/workspace_room.h"

using spillway::dnn::Descriptor;
using spillway::dnn::Handle;
using spillway::dnn::Performance;

namespace spillway::entry {
namespace {

using dnn::kSucceeded;

constexpr int kMostAlgorithms = 16;  // no direction has more than 8

struct Convolution {
  const char* direction;
  Descriptor x, w, y;
};

// A result's list as the program gave it.
struct Results {
  int requested;
  int* returned;
  Performance* first;
};

std::uint64_t KindOf(const Performance& result) {
  return static_cast<std::uint64_t>(result.determinism) << 32 |
         static_cast<std::uint32_t>(result.math_type);
}

dnn::WorkspaceOffer OfferOf(const Performance& result) {
  return {DeviceBytesOf(result.memory), KindOf(result), result.status == kSucceeded};
}

dnn::OperationMemory MemoryOf(const Convolution& convolution, const dnn::WorkspaceBounds& bounds,
                              const void* real) {
  const DnnDescriptors descriptors(real);
  const std::size_t operand_bytes = DeviceBytesOf(descriptors.OfTensor(convolution.x).bytes) +
                                    DeviceBytesOf(descriptors.OfFilter(convolution.w).bytes) +
                                    DeviceBytesOf(descriptors.OfTensor(convolution.y).bytes);
  return {operand_bytes, bounds};
}

// The first choice of a program without preferences, if it is hidden.
void NoteIfFirstIsHidden(const Convolution& convolution, const Performance* all, int count,
                         const std::vector<bool>& hidden, const void* real) {
  if (count == 0 || !hidden[0]) return;
  const auto is_substitute = [&](int i) {
    return !hidden[static_cast<std::size_t>(i)] && all[i].status == kSucceeded &&
           KindOf(all[i]) == KindOf(all[0]);
  };
  int substitute = 1;
  while (!is_substitute(substitute)) ++substitute;
  dnn::OtherAlgorithm other{.operation = {},
                            .first_choice_bytes = all[0].memory,
                            .offered_bytes = all[substitute].memory};
  const DnnDescriptors descriptors(real);
  char x[DnnDescriptors::kMostText], w[DnnDescriptors::kMostText];
  descriptors.PrintTensor(convolution.x, x);
  descriptors.PrintFilter(convolution.w, w);
  snprintf(other.operation, sizeof other.operation, "%s of %s by %s", convolution.direction, x, w);
  dnn::NoteOtherAlgorithm(other);
}

// `ask(requested, returned, results)` is the library's call.
template <class Ask>
dnn::Status Offer(const Convolution& convolution, const Results& results, const void* real,
                  Ask ask) {
  const std::optional<dnn::WorkspaceBounds> bounds =
      library_call || ForwardsEverything() ? std::nullopt : BoundsOfWorkspaces();
  const bool is_sound = results.requested > 0 && results.returned && results.first;
  if (!bounds || !is_sound) return ask(results.requested, results.returned, results.first);
  Performance all[kMostAlgorithms];
  int count = 0;
  if (const dnn::Status status = ask(kMostAlgorithms, &count, all); status != kSucceeded)
    return status;
  count = std::clamp(count, 0, kMostAlgorithms);
  dnn::WorkspaceOffer offers[kMostAlgorithms];
  std::transform(all, all + count, offers, OfferOf);
  const std::vector<bool> hidden = dnn::HiddenOffers({offers, static_cast<std::size_t>(count)},
                                                     MemoryOf(convolution, *bounds, real));
  NoteIfFirstIsHidden(convolution, all, count, hidden, real);
  int given = 0;
  for (int i = 0; i < count && given < results.requested; ++i) {
    if (!hidden[static_cast<std::size_t>(i)]) results.first[given++] = all[i];
  }
  *results.returned = given;
  return kSucceeded;
}

}  // namespace
}  // namespace spillway::entry

using spillway::entry::RealDnn;

// A query's hook: `...` is the library's call, with its own `requested`, `returned` and `results`.
#define SPILLWAY_ALGORITHM_HOOK(name, direction, parameters, x, w, y, ...)                        \
  SPILLWAY_DNN_FUNCTION name parameters {                                                         \
    auto* const real = RealDnn(&::name, #name, __builtin_return_address(0));                      \
    if (!real) return ::spillway::dnn::kNotInitialized;                                           \
    const auto ask = [&](int wanted, int* count, Performance* into) { return real __VA_ARGS__; }; \
    return ::spillway::entry::Offer({direction, x, w, y}, {requested, returned, results},         \
                                    reinterpret_cast<const void*>(real), ask);                    \
  }

SPILLWAY_ALGORITHM_HOOK(cudnnGetConvolutionForwardAlgorithm_v7, "forward convolution",
                        (Handle handle, Descriptor x_is, Descriptor w_is, Descriptor convolution,
                         Descriptor y_is, int requested, int* returned, Performance* results),
                        x_is, w_is, y_is,
                        (handle, x_is, w_is, convolution, y_is, wanted, count, into))
SPILLWAY_ALGORITHM_HOOK(cudnnGetConvolutionBackwardDataAlgorithm_v7, "data gradient",
                        (Handle handle, Descriptor w_is, Descriptor dy_is, Descriptor convolution,
                         Descriptor dx_is, int requested, int* returned, Performance* results),
                        dx_is, w_is, dy_is,
                        (handle, w_is, dy_is, convolution, dx_is, wanted, count, into))
SPILLWAY_ALGORITHM_HOOK(cudnnGetConvolutionBackwardFilterAlgorithm_v7, "filter gradient",
                        (Handle handle, Descriptor x_is, Descriptor dy_is, Descriptor convolution,
                         Descriptor dw_is, int requested, int* returned, Performance* results),
                        x_is, dw_is, dy_is,
                        (handle, x_is, dy_is, convolution, dw_is, wanted, count, into))
SPILLWAY_ALGORITHM_HOOK(cudnnFindConvolutionForwardAlgorithm, "forward convolution",
                        (Handle handle, Descriptor x_is, Descriptor w_is, Descriptor convolution,
                         Descriptor y_is, int requested, int* returned, Performance* results),
                        x_is, w_is, y_is,
                        (handle, x_is, w_is, convolution, y_is, wanted, count, into))
SPILLWAY_ALGORITHM_HOOK(cudnnFindConvolutionBackwardDataAlgorithm, "data gradient",
                        (Handle handle, Descriptor w_is, Descriptor dy_is, Descriptor convolution,
                         Descriptor dx_is, int requested, int* returned, Performance* results),
                        dx_is, w_is, dy_is,
                        (handle, w_is, dy_is, convolution, dx_is, wanted, count, into))
SPILLWAY_ALGORITHM_HOOK(cudnnFindConvolutionBackwardFilterAlgorithm, "filter gradient",
                        (Handle handle, Descriptor x_is, Descriptor dy_is, Descriptor convolution,
                         Descriptor dw_is, int requested, int* returned, Performance* results),
                        x_is, dw_is, dy_is,
                        (handle, x_is, dy_is, convolution, dw_is, wanted, count, into))
SPILLWAY_ALGORITHM_HOOK(cudnnFindConvolutionForwardAlgorithmEx, "forward convolution",
                        (Handle handle, Descriptor x_is, const void* x, Descriptor w_is,
                         const void* w, Descriptor convolution, Descriptor y_is, void* y,
                         int requested, int* returned, Performance* results, void* workspace,
                         size_t workspace_bytes),
                        x_is, w_is, y_is,
                        (handle, x_is, x, w_is, w, convolution, y_is, y, wanted, count, into,
                         workspace, workspace_bytes))
SPILLWAY_ALGORITHM_HOOK(cudnnFindConvolutionBackwardDataAlgorithmEx, "data gradient",
                        (Handle handle, Descriptor w_is, const void* w, Descriptor dy_is,
                         const void* dy, Descriptor convolution, Descriptor dx_is, void* dx,
                         int requested, int* returned, Performance* results, void* workspace,
                         size_t workspace_bytes),
                        dx_is, w_is, dy_is,
                        (handle, w_is, w, dy_is, dy, convolution, dx_is, dx, wanted, count, into,
                         workspace, workspace_bytes))
SPILLWAY_ALGORITHM_HOOK(cudnnFindConvolutionBackwardFilterAlgorithmEx, "filter gradient",
                        (Handle handle, Descriptor x_is, const void* x, Descriptor dy_is,
                         const void* dy, Descriptor convolution, Descriptor dw_is, void* dw,
                         int requested, int* returned, Performance* results, void* workspace,
                         size_t workspace_bytes),
                        x_is, dw_is, dy_is,
                        (handle, x_is, x, dy_is, dy, convolution, dw_is, dw, wanted, count, into,
                         workspace, workspace_bytes))
