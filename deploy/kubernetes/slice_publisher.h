// Keeps the node's ResourceSlice at the API server as the driver offers it.
//
// Run belongs to one thread; Offer and Stop may be called on any other.
//
// Invariants
//  1. A change by anybody else is undone: kubelet deletes a driver's slices when it starts.
//  2. A server that leaves out fields it does not know is asked once, not again and again.
//  3. The pool's generation grows with each change.
//  4. Against somebody who undoes its changes again and again, it writes at growing intervals.
//     It lists again at growing intervals where each watch ends at once. A new offer waits for
//     none of them.
// Never deletes the slice at the end: the next driver takes it over, and kubelet deletes it if none
// comes.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/kubernetes/api_client.h"
#include "deploy/kubernetes/node_devices.h"
#include "deploy/kubernetes/resource_slice.h"

namespace spillway::kubernetes {

class SlicePublisher {
 public:
  using Warn = std::function<void(const std::string& text)>;
  SlicePublisher(ApiClient* api, std::string node, Warn warn);

  struct Offered {
    std::vector<Gpu> gpus;
    std::vector<Taint> taints;
    bool operator==(const Offered&) const = default;
  };
  void Offer(Offered offered);
  void Run();  // until Stop
  void Stop();

 private:
  enum class Then { kWatch, kAgain };
  base::Result<Then> Round();
  base::Result<std::string> Wanted();
  base::Result<Then> Reconcile(const std::string& list, const std::string& wanted);
  base::Result<Then> Write(const base::Result<ApiAnswer>& answer, const std::string& wanted,
                           const char* what);
  base::Status WatchFrom(const std::string& version);
  void WaitAfter(const base::Result<Then>& done);
  void WaitMs(int64_t pause_ms);

  // constant after construction
  ApiClient& api_;
  const std::string node_;
  const Warn warn_;

  // Run's alone
  std::string sent_, stored_;  // the last written specification, and what the server made of it
  std::string last_warning_;
  int failures_ = 0, repeats_ = 0;  // in a row; of writing the same
  int short_watches_ = 0;           // in a row
  int64_t last_write_ns_ = 0;
  bool is_whole_ = true;

  // guarded by mutex_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Offered> offered_;
  uint64_t offers_ = 0, taken_ = 0;
  uint64_t begun_ = 0;  // of the offers, those before the current round
  bool is_stopped_ = false;
};

}  // namespace spillway::kubernetes
