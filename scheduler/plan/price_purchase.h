// Buys link time for a copy from the cheapest segments of a growing window. Reuses its memory; one
// thread. See Note [Segments] in price_lives.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "scheduler/plan/price_lives.h"

namespace spillway::scheduler::prices {

class Purchase {
 public:
  void Restart(double bytes) {
    wanted_ = bytes;
    bought_ = cost_ = 0;
    parts_.clear();
  }

  void Offer(double price, double bytes, size_t segment) {
    if (bought_ >= wanted_ && price >= parts_.front().price) return;
    bytes = std::min(bytes, wanted_);
    if (bytes <= 0) return;
    parts_.push_back({price, bytes, segment});
    std::push_heap(parts_.begin(), parts_.end());
    bought_ += bytes;
    cost_ += price * bytes;
    while (bought_ > wanted_) GiveBackDearest();
  }

  double cost() const { return bought_ < wanted_ ? kNever : cost_; }

  void AddTo(std::vector<double>& bytes_by_segment) const {
    for (const Part& part : parts_) bytes_by_segment[part.segment] += part.bytes;
  }

 private:
  struct Part {
    double price, bytes;
    size_t segment;
    bool operator<(const Part& other) const { return price < other.price; }
  };

  void GiveBackDearest() {
    Part& dearest = parts_.front();
    const double surplus = bought_ - wanted_;
    if (dearest.bytes > surplus) {
      dearest.bytes -= surplus;
      cost_ -= surplus * dearest.price;
      bought_ = wanted_;
      return;
    }
    bought_ -= dearest.bytes;
    cost_ -= dearest.bytes * dearest.price;
    std::pop_heap(parts_.begin(), parts_.end());
    parts_.pop_back();
  }

  double wanted_ = 0, bought_ = 0, cost_ = 0;
  std::vector<Part> parts_;  // max-heap by price
};

}  // namespace spillway::scheduler::prices
