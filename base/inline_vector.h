// A vector of trivially copyable items that stores the first N inline, without heap.
//
// Hooks build about twenty for each launch. So an empty one writes to no item, and its capacity and
// size are one word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

namespace spillway::base {

template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() : data_(inline_) {}
  ~InlineVector() { Release(); }
  InlineVector(const InlineVector& other) : InlineVector() { *this = other; }
  InlineVector(InlineVector&& other) noexcept : InlineVector() {
    *this = static_cast<InlineVector&&>(other);
  }
  InlineVector& operator=(const InlineVector& other) {
    if (this == &other) return *this;
    clear();
    for (const T& item : other) push_back(item);
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this == &other) return *this;
    if (!other.IsOnHeap()) return *this = other;
    Release();
    data_ = other.data_;
    size_ = other.size_;
    capacity_ = other.capacity_;
    other.data_ = other.inline_;
    other.size_ = 0;
    other.capacity_ = N;
    return *this;
  }

  void push_back(T item) {
    if (size_ == capacity_) Grow();
    data_[size_++] = item;
  }
  // Writes the item's members where they stay.
  template <class... Members>
  void emplace_back(Members... members) {
    if (size_ == capacity_) Grow();
    new (&data_[size_++]) T{members...};
  }
  void clear() { size_ = 0; }
  void Truncate(size_t size) { size_ = static_cast<std::uint32_t>(size); }
  // The other items keep their order.
  template <class Gone>
  void EraseIf(Gone gone) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < size_; ++i) {
      const T item = data_[i];
      if (!gone(item)) data_[kept++] = item;
    }
    size_ = kept;
  }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  bool IsOnHeap() const { return capacity_ != N; }
  void Release() {
    if (IsOnHeap()) std::free(data_);
  }
  [[gnu::noinline, gnu::cold]] void Grow() {
    T* larger = static_cast<T*>(std::malloc(2 * size_t{capacity_} * sizeof(T)));
    if (!larger) std::abort();
    std::memcpy(larger, data_, size_ * sizeof(T));
    Release();
    data_ = larger;
    capacity_ *= 2;
  }

  union {
    T inline_[N];
  };
  T* data_;
  std::uint32_t capacity_ = N;
  std::uint32_t size_ = 0;
};

}  // namespace spillway::base
