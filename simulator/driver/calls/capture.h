// Stream capture: while it lasts, what a program puts into a stream becomes nodes of a graph
// instead of work.
//
// Called by every function that enqueues, waits, asks or allocates, under the engine's mutex.
// Ownership: streams and events share their capture; a capture owns its graph until it is ended,
// unless the program brought the graph.
//
// Rules (cuda.h, cuStreamBeginCapture and cuThreadExchangeStreamCaptureMode; CUDA Programming
// Guide, "Stream Capture")
//  1. Work enqueued in a capturing stream is a node after the stream's current dependencies. What
//  cannot be a node is
//     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
//  2. A stream joins by waiting for an event that was recorded in the capture; it must be joined to
//  the origin again.
//  3. Calls that might wait are refused while a capture forbids them to the calling thread.
//  4. The legacy stream cannot be used while a blocking stream of its context captures.
//  5. A refused call invalidates the captures it disturbs: all they answer from then on is
//     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, until they are ended.
#pragma once

#include <set>

#include "simulator/driver/calls/graph.h"

namespace spillway::simulator {

struct Capture {
  std::uint64_t id;
  CUstreamCaptureMode mode;
  Stream* origin;
  std::uint64_t thread;
  GraphRef graph;
  bool brought;  // the graph is the program's
  bool valid = true;
  bool ended = false;
  std::set<Stream*> members = {};

  void Invalidate() { valid = false; }
};

// The calling thread's mode.
CUstreamCaptureMode& ThreadCaptureMode();

// For calls that might wait or allocate: throws while a capture forbids them to this thread (rule
// 3).
void RefuseWhileCapturing(Call& call);
// For calls on a stream that cannot be nodes and on streams that cannot be used (rules 1 and 4).
void RequireUncaptured(Call& call, const Stream& stream);
// For calls that look at an event from outside: CUDA_ERROR_CAPTURED_EVENT if it was last recorded
// in a capture.
void RequireUncaptured(const Event& event);

// True if `stream` captures; throws if its capture is invalid.
bool IsCapturing(const Stream& stream);
// Adds a node after what the stream has captured so far.
GraphNode& AddCaptured(Call& call, Stream& stream, WorkRef work);

void CaptureRecord(Event& event, const Stream& stream);
// A wait between a stream and an event of which at least one is in a capture: adds dependencies, or
// a member.
void CaptureWait(Call& call, Stream& stream, Event& event);

void BeginCapture(Call& call, Stream& stream, CUstreamCaptureMode mode, GraphRef graph,
                  bool brought, std::vector<GraphNode*> after);
// Ends the capture that `stream` began; throws if it was broken, and ends it all the same.
GraphRef EndCapture(Call& call, Stream& stream);
// A stream or an event that a capture knows goes away.
void ForgetInCaptures(Stream& stream);

}  // namespace spillway::simulator
