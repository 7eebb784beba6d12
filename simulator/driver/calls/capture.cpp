#include "simulator/driver/calls/capture.h"

#include <algorithm>

namespace spillway::simulator {
namespace {

[[noreturn]] void Break(Capture& capture, CUresult code) {
  capture.Invalidate();
  throw Failure{code};
}

void RequireValid(const Capture& capture) {
  Require(capture.valid && !capture.ended, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

void AddDependencies(Stream& stream, const std::vector<GraphNode*>& nodes) {
  for (GraphNode* node : nodes) {
    auto& known = stream.capture_after;
    if (std::find(known.begin(), known.end(), node) == known.end()) known.push_back(node);
  }
}

void Join(Stream& stream, const std::shared_ptr<Capture>& capture) {
  stream.capture = capture;
  stream.capture_after.clear();
  capture->members.insert(&stream);
}

bool IsJoined(const Capture& capture, const Stream& member) {
  const std::set<const GraphNode*> before = AncestorsOf(capture.origin->capture_after);
  return std::all_of(member.capture_after.begin(), member.capture_after.end(),
                     [&](const GraphNode* node) { return before.contains(node); });
}

bool IsJoined(const Capture& capture) {
  return std::all_of(capture.members.begin(), capture.members.end(),
                     [&](const Stream* member) { return IsJoined(capture, *member); });
}

void Leave(Stream& stream) {
  stream.capture = nullptr;
  stream.capture_after.clear();
}

void End(Call& call, Capture& capture) {
  for (Stream* member : capture.members) Leave(*member);
  capture.members.clear();
  capture.ended = true;
  std::erase_if(call.sim.graphs.captures,
                [&](const auto& other) { return other.get() == &capture; });
}

Capture* BlockingCaptureIn(Call& call, const Context& context) {
  for (const auto& capture : call.sim.graphs.captures) {
    for (const Stream* member : capture->members) {
      if (member->blocking && member->context == &context) return capture.get();
    }
  }
  return nullptr;
}

}  // namespace

CUstreamCaptureMode& ThreadCaptureMode() {
  static thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

void RefuseWhileCapturing(Call& call) {
  const CUstreamCaptureMode mode = ThreadCaptureMode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  bool refused = false;
  for (const auto& capture : call.sim.graphs.captures) {
    const bool own =
        capture->thread == ThreadNumber() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool global =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !global) continue;
    capture->Invalidate();
    refused = true;
  }
  Require(!refused, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void RequireUncaptured(Call& call, const Stream& stream) {
  if (stream.capture != nullptr) {
    RequireValid(*stream.capture);
    Break(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  if (!stream.legacy) return;
  if (Capture* const other = BlockingCaptureIn(call, *stream.context)) {
    Break(*other, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
}

void RequireUncaptured(const Event& event) {
  if (event.capture == nullptr) return;
  if (!event.capture->ended) event.capture->Invalidate();
  throw Failure{CUDA_ERROR_CAPTURED_EVENT};
}

bool IsCapturing(const Stream& stream) {
  if (stream.capture == nullptr) return false;
  RequireValid(*stream.capture);
  return true;
}

GraphNode& AddCaptured(Call& call, Stream& stream, WorkRef work) {
  (void)call;
  RequireValid(*stream.capture);
  GraphNode& node = stream.capture->graph->Add(std::move(work), stream.capture_after);
  stream.capture_after = {&node};
  return node;
}

void CaptureRecord(Event& event, const Stream& stream) {
  RequireValid(*stream.capture);
  event.capture = stream.capture;
  event.captured_after = stream.capture_after;
  event.recorded = nullptr;
}

void CaptureWait(Call& call, Stream& stream, Event& event) {
  if (stream.capture != nullptr) RequireValid(*stream.capture);
  if (event.capture == nullptr) {
    if (event.recorded != nullptr) Break(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    return;
  }
  if (event.capture->ended) {
    if (stream.capture != nullptr) stream.capture->Invalidate();
    throw Failure{CUDA_ERROR_CAPTURED_EVENT};
  }
  RequireValid(*event.capture);
  if (stream.capture == nullptr) {
    if (stream.legacy) Break(*event.capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    Join(stream, event.capture);
  } else if (stream.capture != event.capture) {
    stream.capture->Invalidate();
    Break(*event.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  (void)call;
  AddDependencies(stream, event.captured_after);
}

void BeginCapture(Call& call, Stream& stream, CUstreamCaptureMode mode, GraphRef graph,
                  bool brought, std::vector<GraphNode*> after) {
  Require(!stream.legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  Require(stream.capture == nullptr, CUDA_ERROR_ILLEGAL_STATE);
  const auto capture = std::make_shared<Capture>(
      Capture{call.sim.next_id++, mode, &stream, ThreadNumber(), std::move(graph), brought});
  Join(stream, capture);
  stream.capture_after = std::move(after);
  call.sim.graphs.captures.push_back(capture);
}

GraphRef EndCapture(Call& call, Stream& stream) {
  Require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture->origin != &stream) Break(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  Require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == ThreadNumber(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  const bool valid = capture->valid;
  const bool joined = valid && IsJoined(*capture);
  End(call, *capture);
  Require(valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  Require(joined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  return std::move(capture->graph);
}

void ForgetInCaptures(Stream& stream) {
  if (stream.capture == nullptr) return;
  Capture& capture = *stream.capture;
  const bool has_joined = capture.origin != &stream && IsJoined(capture, stream);
  if (!has_joined) capture.Invalidate();
  capture.members.erase(&stream);
  if (capture.origin == &stream) {
    for (Stream* member : capture.members) Leave(*member);
    capture.members.clear();
    capture.ended = true;
  }
  Leave(stream);
}

}  // namespace spillway::simulator
