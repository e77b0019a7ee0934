#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cria/error.h"

namespace cria::jinja {

// What a template, which nobody vouches for, may take.
struct Limits {
  size_t steps = 4'000'000;  // Nodes evaluated, and what takes about as long.
  size_t memory_bytes = size_t{32} << 20;
  size_t output_bytes = size_t{4} << 20;
};

// How deep a template may nest, its blocks, expressions, calls and values: each level takes some
// hundred bytes of the stack.
inline constexpr int kMaxDepth = 100;

// The present time, for strftime_now().
using Clock = std::tm (*)();

// What parsing and rendering one template share: memory that is given back as a whole, the limits,
// and the first error. Functions go on after an error with whatever values they have, and find it
// out by failed() at the next step; so that none of them needs a result of two kinds.
class Context {
 public:
  Context(const Limits& limits, Clock clock) : limits_(limits), clock_(clock) {}

  // The template, which must outlive the context.
  void set_source(std::string_view source) { source_ = source; }

  bool failed() const { return error_.has_value(); }
  // Of the first failure: one sentence with the line that was at work.
  const Error& error() const { return *error_; }
  // The parts of the sentence, joined. Only the first failure counts.
  void Fail(std::initializer_list<std::string_view> parts) { Fail(code_, parts); }
  void Fail(ErrorCode code, std::initializer_list<std::string_view> parts);
  // The code of errors that are not given one.
  void set_code(ErrorCode code) { code_ = code; }
  // Where in the source an error would be from now on.
  void set_position(size_t position) { position_ = position; }

  // Counts work.
  void Charge(size_t steps);
  // Counts work that goes through text.
  void ChargeBytes(size_t bytes) { Charge(bytes / 16); }
  // Counts text that is written.
  void ChargeOutput(size_t bytes);

  std::tm Now() const { return clock_(); }

  // An array of `size`, or, as a failure, of none.
  template <typename T>
  std::span<T> Array(size_t size) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    if (size > limits_.memory_bytes / sizeof(T)) return TooMuchMemory(), std::span<T>();
    void* memory = Allocate(size * sizeof(T));
    if (failed()) return {};
    T* first = static_cast<T*>(memory);
    for (size_t i = 0; i < size; ++i) new (first + i) T();
    return {first, size};
  }

  // One object. There always is one, even beyond the limit, which then is a failure.
  template <typename T>
  T* New(const T& value) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    return new (Allocate(sizeof(T))) T(value);
  }

 private:
  static constexpr size_t kAlignment = 8;

  // Null after a failure, unless few bytes are wanted.
  void* Allocate(size_t bytes);
  void TooMuchMemory();

  std::string_view source_;
  Limits limits_;
  Clock clock_;
  ErrorCode code_ = ErrorCode::kInvalidFile;
  size_t position_ = 0;
  size_t steps_ = 0;
  size_t output_bytes_ = 0;
  size_t used_bytes_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  size_t left_bytes_ = 0;
  std::optional<Error> error_;
};

// An array that grows, in the memory of a context. What is added after a failure is lost.
template <typename T>
class Growing {
 public:
  explicit Growing(Context& context) : context_(&context) {}

  void Add(const T& item) {
    if (size_ == storage_.size()) Grow();
    if (size_ < storage_.size()) storage_[size_++] = item;
  }
  size_t size() const { return size_; }
  std::span<T> items() const { return storage_.first(size_); }

 private:
  void Grow() {
    const std::span<T> larger = context_->Array<T>(size_ < 4 ? 4 : 2 * size_);
    if (larger.empty()) return;
    for (size_t i = 0; i < size_; ++i) larger[i] = storage_[i];
    storage_ = larger;
  }

  Context* context_;
  std::span<T> storage_;
  size_t size_ = 0;
};

}  // namespace cria::jinja
