// Bytes from an untrusted source, read within their bounds and at any alignment.
//
// A value; the bytes belong to the caller. Any thread. A read beyond the end answers zero, a part
// beyond the end is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace spillway::base {

class ByteView {
 public:
  static constexpr std::size_t kUnknownBytes = SIZE_MAX;  // the data tells its own length

  ByteView() = default;
  ByteView(const void* data, std::size_t bytes)
      : data_(static_cast<const char*>(data)), bytes_(bytes) {}

  const char* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  std::string_view text() const { return {data_, bytes_}; }

  bool Holds(std::size_t offset, std::size_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }
  bool BeginsWith(std::string_view beginning) const {
    return Holds(0, beginning.size()) && text().substr(0, beginning.size()) == beginning;
  }
  template <class Value>
  Value Read(std::size_t offset) const {
    Value value{};
    if (Holds(offset, sizeof value)) std::memcpy(&value, data_ + offset, sizeof value);
    return value;
  }
  ByteView Part(std::size_t offset, std::size_t bytes) const {
    return Holds(offset, bytes) ? ByteView(data_ + offset, bytes) : ByteView();
  }
  // The characters up to the next zero byte; empty if there is none.
  std::string_view TextAt(std::size_t offset) const {
    if (offset >= bytes_) return {};
    const void* const end = std::memchr(data_ + offset, 0, bytes_ - offset);
    if (end == nullptr) return {};
    return {data_ + offset,
            static_cast<std::size_t>(static_cast<const char*>(end) - data_) - offset};
  }

 private:
  const char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace spillway::base
