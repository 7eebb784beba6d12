// Marks a stream's progress before a point that the program controls: awaited word, host function.
//
// Behind that point the stream cannot be queried. With a mark the memory of its earlier work may
// leave before the program acts.
#pragma once

#include "interposer/entry/around.h"
#include "interposer/entry/transfers.h"

namespace spillway::entry {

inline void MarkBeforeProgramWait(StreamName stream) {
  if (!VisibleWork::ProgramActsInStreams()) {
    VisibleWork::NoteProgramActsInStreams();
    EndRecords();  // of launches that only experiments describe: host functions need no call
  }
  if (interposer::IsCapturing(stream)) return;
  ForEachJob([stream](JobMemory* job) { job->streams().AboutToWait(stream); });
}

}  // namespace spillway::entry
