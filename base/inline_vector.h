// A vector of trivially copyable items whose first N live inside it: no heap on the paths where N suffices.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace spillway::base {

template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() = default;
  ~InlineVector() {
    if (data_ != inline_) std::free(data_);
  }
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  void push_back(T item) {
    if (size_ == capacity_) Grow();
    data_[size_++] = item;
  }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  void Grow() {
    T* larger = static_cast<T*>(std::malloc(2 * capacity_ * sizeof(T)));
    if (!larger) std::abort();
    std::memcpy(larger, data_, size_ * sizeof(T));
    if (data_ != inline_) std::free(data_);
    data_ = larger;
    capacity_ *= 2;
  }

  T inline_[N];
  T* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = N;
};

}  // namespace spillway::base
