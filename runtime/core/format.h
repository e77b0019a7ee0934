#pragma once

#include <concepts>
#include <format>
#include <string>
#include <string_view>
#include <type_traits>

namespace cria {

// Numbers and texts: all that FormatArguments knows.
template <typename T>
concept Formattable = std::is_arithmetic_v<std::remove_cvref_t<T>> ||
                      std::convertible_to<const std::remove_cvref_t<T>&, std::string_view>;

// A text with replacement fields as std::format has them, checked when it is compiled. A field may
// have [[fill]align][0][width][.precision][type], of which the fill is one byte, the type is
// d, x, X, f or g, and the width and precision may be fields themselves.
template <Formattable... Args>
class FormatText {
 public:
  template <std::convertible_to<std::string_view> Text>
  consteval FormatText(const Text& text) : text_(std::format_string<Args...>(text).get()) {
    for (size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == ':' && i > 0 && IsFieldBegin(i)) CheckSpecification(i + 1);
    }
  }
  std::string_view get() const { return text_; }

 private:
  // Whether the field that ':' at `colon` belongs to begins just before it, after digits at most.
  consteval bool IsFieldBegin(size_t colon) const {
    size_t begin = colon - 1;
    while (begin > 0 && text_[begin] >= '0' && text_[begin] <= '9') --begin;
    size_t braces = 0;
    while (braces <= begin && text_[begin - braces] == '{') ++braces;
    return braces % 2 == 1;
  }
  consteval void CheckSpecification(size_t begin) const {
    const bool has_fill =
        begin + 1 < text_.size() &&
        (text_[begin + 1] == '<' || text_[begin + 1] == '>' || text_[begin + 1] == '^');
    size_t depth = 1;
    for (size_t i = begin + has_fill; depth > 0; ++i) {
      if (text_[i] == '{') ++depth;
      if (text_[i] == '}') --depth;
      if (!std::string_view("<>^0123456789.{}dxXfg").contains(text_[i])) NotSupported();
    }
  }
  // Not constexpr, so that calling it is an error of the compiler.
  static void NotSupported() {}

  std::string_view text_;
};

std::string FormatArguments(std::string_view text, std::format_args arguments);

// std::format of numbers and texts, without its 30 kB of code and Unicode tables. The width of a
// text is its number of code points.
template <Formattable... Args>
std::string Format(FormatText<std::type_identity_t<Args>...> text, Args&&... args) {
  return FormatArguments(text.get(), std::make_format_args(args...));
}

}  // namespace cria
