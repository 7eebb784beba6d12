// Stream capture: work for a capturing stream becomes nodes of a graph instead of running.
//
// Streams and events share their capture. A capture owns its graph until it ends, unless the
// program provided it.
//
// Rules (cuda.h, cuStreamBeginCapture and cuThreadExchangeStreamCaptureMode; CUDA Programming
// Guide, "Stream Capture")
//  1. Work enqueued in a capturing stream is a node after the stream's current dependencies. Work
//     that cannot be a node is CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
//  2. A stream joins by waiting for an event of the capture. It must join the origin again.
//  3. Calls that might wait are refused while a capture forbids them to the calling thread.
//  4. The legacy stream cannot be used while a blocking stream of its context captures.
//  5. A refused call invalidates the captures that it disturbs. Until they end they answer
//     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED.
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
  bool brought;  // the program provided the graph
  bool valid = true;
  bool ended = false;
  std::set<Stream*> members = {};

  void Invalidate() { valid = false; }
};

CUstreamCaptureMode& ThreadCaptureMode();

void RefuseWhileCapturing(Call& call);
// Throws for a stream whose capture has no such node, and for an unusable stream (rules 1 and 4).
void RequireUncaptured(Call& call, const Stream& stream);
void RequireUncaptured(const Event& event);

bool IsCapturing(const Stream& stream);
GraphNode& AddCaptured(Call& call, Stream& stream, WorkRef work);

void CaptureRecord(Event& event, const Stream& stream);
// At least one of the two captures. Adds dependencies, or a member.
void CaptureWait(Call& call, Stream& stream, Event& event);

void BeginCapture(Call& call, Stream& stream, CUstreamCaptureMode mode, GraphRef graph,
                  bool brought, std::vector<GraphNode*> after);
// The capture ends even when this throws.
GraphRef EndCapture(Call& call, Stream& stream);
// Call it before the stream is destroyed. The capture goes on if the stream has joined the origin.
void ForgetInCaptures(Stream& stream);

}  // namespace spillway::simulator
