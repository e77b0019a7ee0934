#include "core/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace cria {
namespace {

struct Specification {
  char fill = ' ';
  char align = '\0';  // '<', '>' or '^'; none: numbers to the right, texts to the left.
  bool has_zeros = false;
  size_t width = 0;
  std::optional<size_t> precision;
  char type = '\0';
};

size_t CountCodePoints(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

std::string_view FirstCodePoints(std::string_view text, size_t count) {
  size_t end = 0;
  while (end < text.size() && CountCodePoints(text.substr(0, end + 1)) <= count) ++end;
  return text.substr(0, end);
}

// Reads a text whose fields FormatText has checked.
class Formatter {
 public:
  Formatter(std::string_view text, const std::format_args& arguments)
      : text_(text), arguments_(arguments) {}

  std::string Run() {
    while (position_ < text_.size()) {
      const char next = text_[position_++];
      if (next == '{' && text_[position_] != '{') {
        AppendField();
        continue;
      }
      result_ += next;
      if (next == '{' || next == '}') ++position_;  // It is there twice.
    }
    return std::move(result_);
  }

 private:
  using Argument = std::basic_format_arg<std::format_context>;

  bool Take(char wanted) {
    if (text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  std::optional<size_t> TakeNumber() {
    size_t number = 0;
    const char* const begin = text_.data() + position_;
    const char* const end = std::from_chars(begin, text_.data() + text_.size(), number).ptr;
    if (end == begin) return std::nullopt;
    position_ += static_cast<size_t>(end - begin);
    return number;
  }

  // The argument of a field whose '{' is taken.
  Argument TakeArgument() { return arguments_.get(TakeNumber().value_or(next_argument_++)); }

  size_t TakeSize() {
    if (!Take('{')) return TakeNumber().value_or(0);
    const Argument argument = TakeArgument();
    Take('}');
    return std::visit_format_arg(
        [](auto value) -> size_t {
          if constexpr (std::is_integral_v<decltype(value)>) return static_cast<size_t>(value);
          return 0;
        },
        argument);
  }

  Specification TakeSpecification() {
    Specification specification;
    if (!Take(':')) return specification;
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^'; };
    if (is_align(text_[position_ + 1])) specification.fill = text_[position_++];
    if (is_align(text_[position_])) specification.align = text_[position_++];
    specification.has_zeros = Take('0');
    specification.width = TakeSize();
    if (Take('.')) specification.precision = TakeSize();
    if (text_[position_] != '}') specification.type = text_[position_++];
    return specification;
  }

  void AppendField() {
    const Argument argument = TakeArgument();
    const Specification specification = TakeSpecification();
    Take('}');
    std::visit_format_arg([&](auto value) { AppendValue(value, specification); }, argument);
  }

  template <typename T>
  void AppendValue(T value, const Specification& specification) {
    if constexpr (std::is_same_v<T, bool>) {
      if (specification.type == '\0') return AppendText(value ? "true" : "false", specification);
      AppendInteger(static_cast<uint64_t>(value), specification);
    } else if constexpr (std::is_same_v<T, char>) {
      if (specification.type == '\0') return AppendText({&value, 1}, specification);
      AppendInteger(static_cast<int64_t>(value), specification);
    } else if constexpr (std::is_same_v<T, std::string_view> || std::is_same_v<T, const char*>) {
      AppendText(value, specification);
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      AppendInteger(static_cast<int64_t>(value), specification);
    } else if constexpr (std::is_integral_v<T>) {
      AppendInteger(static_cast<uint64_t>(value), specification);
    } else if constexpr (std::is_same_v<T, float>) {
      AppendReal(value, specification);
    } else if constexpr (std::is_floating_point_v<T>) {
      AppendReal(static_cast<double>(value), specification);
    }
  }

  void AppendText(std::string_view text, const Specification& specification) {
    if (specification.precision) text = FirstCodePoints(text, *specification.precision);
    Pad(text, '<', specification);
  }

  template <typename T>
  void AppendInteger(T value, const Specification& specification) {
    std::array<char, 24> digits;
    const bool is_hexadecimal = specification.type == 'x' || specification.type == 'X';
    char* const end =
        std::to_chars(digits.data(), digits.data() + digits.size(), value, is_hexadecimal ? 16 : 10)
            .ptr;
    if (specification.type == 'X') {
      std::transform(digits.data(), end, digits.data(),
                     [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
    }
    AppendNumber({digits.data(), end}, specification);
  }

  // Separate for float and double, whose shortest digits differ.
  template <typename T>
  void AppendReal(T value, const Specification& specification) {
    constexpr size_t kMostPrecision = 100;  // More digits than that are left out.
    std::array<char, std::numeric_limits<double>::max_exponent10 + kMostPrecision + 8> digits;
    char* const begin = digits.data();
    char* const end = begin + digits.size();
    const bool has_form = specification.type != '\0' || specification.precision;
    const auto form =
        specification.type == 'f' ? std::chars_format::fixed : std::chars_format::general;
    const size_t precision = std::min(specification.precision.value_or(6), kMostPrecision);
    const char* const written =
        (has_form ? std::to_chars(begin, end, value, form, static_cast<int>(precision))
                  : std::to_chars(begin, end, value))
            .ptr;
    AppendNumber({begin, written}, specification);
  }

  void AppendNumber(std::string_view number, Specification specification) {
    const bool is_finite = !number.ends_with("inf") && !number.ends_with("nan");
    if (specification.has_zeros && specification.align == '\0' && is_finite) {
      if (number.front() == '-') {
        result_ += '-';
        number.remove_prefix(1);
        specification.width -= specification.width > 0;
      }
      specification.fill = '0';
    }
    Pad(number, '>', specification);
  }

  void Pad(std::string_view text, char usual_align, const Specification& specification) {
    const size_t length = CountCodePoints(text);
    const size_t missing = specification.width > length ? specification.width - length : 0;
    const char align = specification.align == '\0' ? usual_align : specification.align;
    const size_t before = align == '<' ? 0 : align == '>' ? missing : missing / 2;
    result_.append(before, specification.fill);
    result_ += text;
    result_.append(missing - before, specification.fill);
  }

  const std::string_view text_;
  const std::format_args& arguments_;
  size_t position_ = 0;
  size_t next_argument_ = 0;
  std::string result_;
};

}  // namespace

std::string FormatArguments(std::string_view text, std::format_args arguments) {
  return Formatter(text, arguments).Run();
}

}  // namespace cria
