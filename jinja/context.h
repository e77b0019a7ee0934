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

// Limits for a template, which may be hostile.
struct Limits {
  size_t steps = 4'000'000;  // Evaluated nodes, and work that takes about as long as one.
  size_t memory_bytes = size_t{32} << 20;
  size_t output_bytes = size_t{4} << 20;
};

// Maximum depth of nested blocks, expressions, calls and values: each level takes some hundred
// bytes of the stack.
inline constexpr int kMaxDepth = 100;

// Returns the local time, for strftime_now().
using Clock = std::tm (*)();

// What parsing or rendering a template needs: memory that is freed as a whole, the limits, and the
// first error. Errors are sticky: functions go on after one with any values, and the next step
// checks failed(). So these functions return Value, not Result<Value>.
class Context {
 public:
  Context(const Limits& limits, Clock clock) : limits_(limits), clock_(clock) {}

  // The template, which must outlive the context.
  void set_source(std::string_view source) { source_ = source; }

  bool failed() const { return error_.has_value(); }
  // The first failure: one sentence with the line of the template that caused it.
  const Error& error() const { return *error_; }
  // Fails with the joined parts as the sentence. Only the first failure counts.
  void Fail(std::initializer_list<std::string_view> parts) { Fail(code_, parts); }
  void Fail(ErrorCode code, std::initializer_list<std::string_view> parts);
  // This one takes a whole sentence, because calls with it take fewer bytes.
  void Fail(const char* sentence);
  // The code of errors for which no code is given.
  void set_code(ErrorCode code) { code_ = code; }
  // Sets the position in the source to which later errors refer.
  void set_position(size_t position) { position_ = position; }

  // Counts steps against the limit.
  void Charge(size_t steps);
  // Counts work that reads this many bytes of text.
  void ChargeBytes(size_t bytes) { Charge(bytes / 16); }
  // Counts output bytes against the limit.
  void ChargeOutput(size_t bytes);

  std::tm Now() const { return time_ ? *time_ : clock_(); }
  // From now on, instead of the clock's time.
  void SetTime(const std::tm& time) { time_ = time; }

  // An array of `size` elements; empty after a failure.
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

  // One object. It always exists: beyond the limit, the context fails but still returns one.
  template <typename T>
  T* New(const T& value) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    return new (Allocate(sizeof(T))) T(value);
  }

 private:
  static constexpr size_t kAlignment = 8;

  // Returns null after a failure, unless few bytes are requested.
  void* Allocate(size_t bytes);
  void TooMuchMemory();

  std::string_view source_;
  Limits limits_;
  Clock clock_;
  std::optional<std::tm> time_;
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

// An array that grows, in the memory of a context. After a failure, added elements are lost.
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
