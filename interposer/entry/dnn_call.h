// Declares a hook of cuDNN or cuBLAS: its signature and its documented use of memory.
//
// While the real function runs, its launches see the claims (call_claims.h). If a type, layout or
// descriptor is not understood, the memory counts as used in an unknown way: Note [Roles] in
// ledger/claims.h.
#pragma once

#include "interposer/dnn/backend_descriptors.h"
#include "interposer/entry/around.h"
#include "interposer/entry/dnn_abi.h"
#include "interposer/entry/dnn_library.h"

namespace spillway::entry {

// Compares with the bits of +0. Other values that equal zero make no claim.
bool IsZero(const void* scalar, std::size_t bytes);

class DnnCall {
 public:
  explicit DnnCall(const void* real);
  ~DnnCall();
  DnnCall(const DnnCall&) = delete;
  DnnCall& operator=(const DnnCall&) = delete;

  // There is a job, and no other library call is in progress on this thread.
  bool IsWanted() const { return is_wanted_; }

  // Sizes come from the descriptors of tensors, or of filters, which have no strides.
  void Reads(const void* data, dnn::Descriptor tensor);
  void Writes(void* data, dnn::Descriptor tensor, const void* beta);
  void Overwrites(void* data, dnn::Descriptor tensor);
  void ReadsFilter(const void* data, dnn::Descriptor filter);
  void WritesFilter(void* data, dnn::Descriptor filter, const void* beta);

  // Written bytes that do not influence the output, such as statistics.
  void Clobbers(void* data, dnn::Descriptor tensor);
  // The documentation promises bit-identical output for the same input.
  void MarkRepeatable() { claims_.MarkRepeatable(); }

  void ReadsBytes(const void* data, std::size_t bytes) { claims_.Reads(AddressOf(data), bytes); }
  void OverwritesBytes(void* data, std::size_t bytes) {
    claims_.Overwrites(AddressOf(data), bytes);
  }
  void UsesWorkspace(void* data, std::size_t bytes) {
    bytes ? claims_.Clobbers(AddressOf(data), bytes) : Touches(data);
  }
  void Touches(const void* data) { claims_.Touches(AddressOf(data)); }
  void Executes(dnn::Descriptor plan, dnn::Descriptor variant_pack) {
    dnn::BackendDescriptors::Instance().AddClaims(plan, variant_pack, &claims_);
  }

  // Null: the library has no such function.
  template <class Function>
  Function* Sibling(const char* name) const {
    return reinterpret_cast<Function*>(DnnSibling(real_, name));
  }

 private:
  struct Extent : dnn::TensorExtent {
    std::size_t scalar_bytes = 0;
  };
  Extent OfTensor(dnn::Descriptor tensor) const;
  Extent OfFilter(dnn::Descriptor filter) const;
  void Read(const void* data, const Extent& extent);
  void Write(void* data, const Extent& extent, bool blends);
  static CUdeviceptr AddressOf(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

  const void* const real_;
  const bool is_wanted_;
  interposer::Claims claims_;
  interposer::LibraryCall call_{&claims_};
};

template <class Function>
Function* RealDnn(Function* hook, const char* name, const void* caller) {
  return reinterpret_cast<Function*>(
      RealDnnFunction(name, reinterpret_cast<const void*>(hook), caller));
}

}  // namespace spillway::entry

#define SPILLWAY_DNN_HOOK(name, parameters, arguments, ...)                                     \
  SPILLWAY_DNN_FUNCTION name parameters {                                                       \
    auto* const real = ::spillway::entry::RealDnn(&::name, #name, __builtin_return_address(0)); \
    if (!real) return ::spillway::dnn::kNotInitialized;                                         \
    ::spillway::entry::DnnCall call(reinterpret_cast<const void*>(real));                       \
    if (call.IsWanted()) {                                                                      \
      __VA_ARGS__;                                                                              \
    }                                                                                           \
    return real arguments;                                                                      \
  }
