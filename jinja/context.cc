#include "jinja/context.h"

#include <algorithm>

#include "core/quotable.h"

namespace cria::jinja {
namespace {

constexpr size_t kBlockBytes = size_t{16} << 10;
// New may allocate objects of this size beyond the limit.
constexpr size_t kSmallBytes = 128;

// Parts of a sentence may come from a template or a message, so they are shortened and put on one
// line.
void AddPart(std::string_view part, std::string* sentence) {
  // One byte more than is shown, so that Quotable marks where a longer part is cut.
  std::string line(part.substr(0, kMaxQuotedBytes + 1));
  std::ranges::replace_if(line, [](unsigned char byte) { return byte < ' '; }, ' ');
  *sentence += Quotable(line);
}

}  // namespace

void Context::Fail(ErrorCode code, std::initializer_list<std::string_view> parts) {
  if (failed()) return;
  const auto before = source_.substr(0, position_);
  std::string sentence = "The chat template, line ";
  sentence += std::to_string(1 + std::ranges::count(before, '\n'));
  sentence += ": ";
  for (const std::string_view part : parts) AddPart(part, &sentence);
  error_.emplace(code, std::move(sentence));
}

void Context::Fail(const char* sentence) { Fail({std::string_view(sentence)}); }

void Context::Charge(size_t steps) {
  if (steps <= limits_.steps - steps_) {
    steps_ += steps;
    return;
  }
  Fail(ErrorCode::kOutOfRange, {"rendering takes too long"});
}

void Context::ChargeOutput(size_t bytes) {
  if (bytes <= limits_.output_bytes - output_bytes_) {
    output_bytes_ += bytes;
    return;
  }
  Fail(ErrorCode::kOutOfRange, {"it writes too much text"});
}

void Context::TooMuchMemory() { Fail(ErrorCode::kOutOfRange, {"rendering takes too much memory"}); }

void* Context::Allocate(size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > limits_.memory_bytes - std::min(used_bytes_, limits_.memory_bytes)) TooMuchMemory();
  if (failed() && bytes > kSmallBytes) return nullptr;
  used_bytes_ += bytes;
  if (bytes > left_bytes_) {
    const size_t block_bytes = std::max(bytes, kBlockBytes);
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block_bytes));
    next_ = blocks_.back().get();
    left_bytes_ = block_bytes;
  }
  std::byte* memory = next_;
  next_ += bytes;
  left_bytes_ -= bytes;
  return memory;
}

}  // namespace cria::jinja
