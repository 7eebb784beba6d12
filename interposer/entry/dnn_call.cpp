#include "interposer/entry/dnn_call.h"

#include <algorithm>
#include <array>

namespace spillway::entry {
namespace {

bool IsAnyJob() {
  int place = 0;
  return interposer::Jobs().Next(&place) != nullptr;
}

}  // namespace

bool IsZero(const void* scalar, std::size_t bytes) {
  constexpr std::array<unsigned char, 8> kZero{};
  const auto* const first = static_cast<const unsigned char*>(scalar);
  return scalar && bytes > 0 && bytes <= kZero.size() &&
         std::equal(first, first + bytes, kZero.begin());
}

DnnCall::DnnCall(const void* real)
    : descriptors_(real), is_wanted_(!library_call && !ForwardsEverything() && IsAnyJob()) {
  if (is_wanted_) library_call = &call_;
}

DnnCall::~DnnCall() {
  if (!is_wanted_) return;
  library_call = nullptr;
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return;
  if (call_.job) call_.job->proofs().CallEnded(call_);
  if (claims_.scratch_call())
    interposer::ForEachJob([this](JobMemory* job) { job->calls().LibraryCallEnded(claims_); });
}

void DnnCall::Read(const void* data, const Extent& extent) {
  extent.bytes ? ReadsBytes(data, extent.bytes) : Touches(data);
}

void DnnCall::Write(void* data, const Extent& extent, bool blends) {
  extent.bytes&& extent.leaves_no_gap && !blends ? OverwritesBytes(data, extent.bytes)
                                                 : Touches(data);
}

void DnnCall::Reads(const void* data, dnn::Descriptor tensor) {
  if (data) Read(data, descriptors_.OfTensor(tensor));
}

void DnnCall::Writes(void* data, dnn::Descriptor tensor, const void* beta) {
  if (!data) return;
  const Extent extent = descriptors_.OfTensor(tensor);
  Write(data, extent, !IsZero(beta, extent.scalar_bytes));
}

void DnnCall::Overwrites(void* data, dnn::Descriptor tensor) {
  if (data) Write(data, descriptors_.OfTensor(tensor), false);
}

void DnnCall::Clobbers(void* data, dnn::Descriptor tensor) {
  if (!data) return;
  const Extent extent = descriptors_.OfTensor(tensor);
  extent.bytes ? claims_.Clobbers(AddressOf(data), extent.bytes) : Touches(data);
}

void DnnCall::ReadsFilter(const void* data, dnn::Descriptor filter) {
  if (data) Read(data, descriptors_.OfFilter(filter));
}

void DnnCall::WritesFilter(void* data, dnn::Descriptor filter, const void* beta) {
  if (!data) return;
  const Extent extent = descriptors_.OfFilter(filter);
  Write(data, extent, !IsZero(beta, extent.scalar_bytes));
}

}  // namespace spillway::entry
