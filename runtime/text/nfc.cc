#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/utf8.h"

namespace cria {
namespace {

// The first UTF-8 byte of U+0300, the lowest code point that normalizing changes or moves.
constexpr uint8_t kLowestAffectedByte = 0xCC;

// Whether the code point is normalized and never composes with one before it, so that a text may be
// split before it: Han ideographs and Hangul syllables. There are more such code points, but these
// are common in text and need no table.
bool BeginsAnew(char32_t code_point) {
  return code_point < 0x300 || (code_point >= 0x3400 && code_point <= 0x9FFF) ||
         (code_point >= 0xAC00 && code_point <= 0xD7A3);
}

// 0 if the code point is not a mark.
uint8_t CombiningClass(int32_t code_point) {
  return static_cast<uint8_t>(utf8proc_get_property(code_point)->combining_class);
}

class Normalizer {
 public:
  // Appends the normalization form of `text`, which must be valid UTF-8, to `normalized`.
  void Append(std::string_view text, std::string* normalized) {
    code_points_.clear();
    while (!text.empty()) {
      const size_t size_bytes = FirstUtf8Character(text).size_bytes;
      Decompose(static_cast<int32_t>(CodePoint(text, size_bytes)));
      text.remove_prefix(size_bytes);
    }
    SortMarks();
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the values are flags.
    constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const auto num_composed = utf8proc_normalize_utf32(
        code_points_.data(), static_cast<utf8proc_ssize_t>(code_points_.size()), kOptions);
    for (utf8proc_ssize_t i = 0; i < num_composed; ++i) {
      std::array<uint8_t, kMaxUtf8Bytes> bytes;
      const auto size_bytes =
          utf8proc_encode_char(code_points_[static_cast<size_t>(i)], bytes.data());
      normalized->append(reinterpret_cast<const char*>(bytes.data()),
                         static_cast<size_t>(size_bytes));
    }
  }

 private:
  void Decompose(int32_t code_point) {
    // The longest canonical decomposition has four code points.
    std::array<int32_t, 4> parts;
    const auto num_parts = utf8proc_decompose_char(code_point, parts.data(), parts.size(),
                                                   UTF8PROC_DECOMPOSE, nullptr);
    for (utf8proc_ssize_t i = 0; i < num_parts; ++i) {
      code_points_.push_back(parts[static_cast<size_t>(i)]);
    }
  }

  void SortMarks() {
    size_t begin = 0;
    bool is_sorted = true;
    uint8_t last_class = 0;
    for (size_t i = 0; i <= code_points_.size(); ++i) {
      const uint8_t mark_class = i < code_points_.size() ? CombiningClass(code_points_[i]) : 0;
      if (mark_class == 0) {
        if (!is_sorted) SortByClass(std::span(code_points_).subspan(begin, i - begin));
        begin = i + 1;
        is_sorted = true;
      } else if (mark_class < last_class) {
        is_sorted = false;
      }
      last_class = mark_class;
    }
  }

  // A counting sort, so that a long run does not take quadratic time, as in utf8proc_decompose.
  void SortByClass(std::span<int32_t> marks) {
    std::array<size_t, 256> places{};
    for (const int32_t mark : marks) ++places[CombiningClass(mark)];
    size_t end = 0;
    for (size_t& place : places) end += std::exchange(place, end);
    unsorted_.assign(marks.begin(), marks.end());
    for (const int32_t mark : unsorted_) marks[places[CombiningClass(mark)]++] = mark;
  }

  std::vector<int32_t> code_points_;
  std::vector<int32_t> unsorted_;
};

}  // namespace

std::string NormalizeToNfc(std::string text) {
  const auto is_affected = [](char c) { return static_cast<uint8_t>(c) >= kLowestAffectedByte; };
  if (std::ranges::none_of(text, is_affected)) return text;

  Normalizer normalizer;
  std::string normalized;
  const std::string_view whole = text;
  size_t copied = 0;  // Up to here, `normalized` is complete.
  size_t begin = 0;   // The text from here on does not depend on the text before.
  bool may_change = false;
  for (size_t position = 0; position <= whole.size();) {
    const std::string_view rest = whole.substr(position);
    const Utf8Character character =
        rest.empty() ? Utf8Character{Utf8State::kInvalid, 1} : FirstUtf8Character(rest);
    const bool is_valid = character.state == Utf8State::kValid;
    const size_t next = position + character.size_bytes;
    if (is_valid && !BeginsAnew(CodePoint(rest, character.size_bytes))) {
      may_change = true;
      position = next;
      continue;
    }
    if (may_change) {
      normalized += whole.substr(copied, begin - copied);
      normalizer.Append(whole.substr(begin, position - begin), &normalized);
      copied = position;
      may_change = false;
    }
    begin = is_valid ? position : next;
    position = next;
  }
  if (copied == 0) return text;
  return normalized += whole.substr(copied);
}

}  // namespace cria
