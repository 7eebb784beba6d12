// Marks a stream's progress before a point that the program controls: awaited word, host function.
//
// Behind that point the stream cannot be queried. With a mark the memory of its earlier work may
// leave before the program acts.
#pragma once

#include "interposer/entry/around.h"
#include "interposer/entry/transfers.h"

namespace spillway::entry {

// An error where the program must not act.
inline CUresult MarkBeforeProgramWait(StreamName stream) {
  VisibleWork::NoteProgramActsInStreams();
  if (const CUresult ended = EndRecordsOfVisibleWork(); ended != CUDA_SUCCESS) return ended;
  if (interposer::IsCapturing(stream)) return CUDA_SUCCESS;
  ForEachJob([stream](JobMemory* job) { job->streams().AboutToWait(stream); });
  return CUDA_SUCCESS;
}

}  // namespace spillway::entry
