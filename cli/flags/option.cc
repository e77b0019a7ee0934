#include "cli/flags/option.h"

#include <algorithm>
#include <cstdlib>

#include "core/format.h"

namespace cria::cli {
namespace {

// The column of the help text.
constexpr size_t kHelpColumn = 30;
constexpr size_t kHelpWidth = 80;

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t comma; (comma = text.find(',')) != text.npos; text.remove_prefix(comma + 1)) {
    parts.emplace_back(text.substr(0, comma));
  }
  parts.emplace_back(text);
  return parts;
}

}  // namespace

std::string WrapHelp(std::string_view text) {
  std::string wrapped;
  size_t column = kHelpColumn;  // Where the next word begins.
  while (!text.empty()) {
    // A line that begins with a dash would look like that of an option.
    size_t end = text.find(' ');
    while (end != text.npos && text.substr(end + 1).starts_with('-')) end = text.find(' ', end + 1);
    const std::string_view word = text.substr(0, end);
    if (column + word.size() > kHelpWidth && column > kHelpColumn) {
      wrapped += '\n' + std::string(kHelpColumn, ' ');
      column = kHelpColumn;
    }
    if (column > kHelpColumn) wrapped += ' ';
    wrapped += word;
    column += word.size() + 1;
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return wrapped;
}

std::unexpected<Error> WrongValue(std::string_view text, std::string_view expected) {
  return Fail(ErrorCode::kUsage, Format("\"{}\" is not {}", text, expected));
}

Option::Option(std::string_view names, std::string metavar, std::string help, Setter set)
    : names_(SplitAtCommas(names)),
      metavar_(std::move(metavar)),
      help_(std::move(help)),
      set_(std::move(set)),
      is_positional_(!names_.front().starts_with('-')) {}

Option& Option::Required() {
  is_required_ = true;
  return *this;
}

Option& Option::Positional() {
  is_positional_ = true;
  return *this;
}

Option& Option::Group(const char* group) {
  group_ = group;
  return *this;
}

Option& Option::Metavar(const char* metavar) {
  metavar_ = metavar;
  return *this;
}

Option& Option::Help(std::string help) {
  help_ = std::move(help);
  return *this;
}

Option& Option::Default(std::string text) {
  default_ = std::move(text);
  return *this;
}

Option& Option::Environment(const char* variable) {
  environment_ = variable;
  return *this;
}

Option& Option::Repeatable() {
  is_repeatable_ = true;
  return *this;
}

Option& Option::Excludes(const Option& other) {
  excluded_.push_back(&other);
  return *this;
}

bool Option::has_name(std::string_view name) const { return std::ranges::contains(names_, name); }

Status Option::Take(std::string text) {
  if (given_.empty() || is_repeatable_) {
    given_.push_back(std::move(text));
  } else if (is_list_) {
    given_.front() += ',' + text;
  } else if (!metavar_.empty()) {
    return Fail(ErrorCode::kUsage, Format("{} is given more than once", name()));
  }
  return {};
}

Status Option::StoreValue(const std::string& text) const {
  return set_(text).transform_error([&](const Error& error) {
    return Error(ErrorCode::kUsage, Format("{}: {}", name(), error.message()));
  });
}

Status Option::Store() {
  for (const Option* other : excluded_) {
    if (!given_.empty() && !other->given_.empty()) {
      return Fail(ErrorCode::kUsage, Format("{} and {} exclude each other", name(), other->name()));
    }
  }
  for (const std::string& text : given_) CRIA_RETURN_IF_ERROR(StoreValue(text));
  if (!given_.empty()) return {};
  const char* stand_in = environment_ == nullptr ? nullptr : std::getenv(environment_);
  if (stand_in != nullptr && *stand_in != '\0') return StoreValue(stand_in);
  if (is_required_) return Fail(ErrorCode::kUsage, Format("{} is missing", name()));
  return {};
}

std::string Option::HelpLine() const {
  std::string line = "  ";
  for (const std::string& name : names_) {
    if (&name != &names_.front()) line += ',';
    line += name;
  }
  if (!metavar_.empty() && !(is_positional() && names_.size() == 1)) line += ' ' + metavar_;
  if (is_list_) line += ",...";
  if (!default_.empty()) line += " [" + default_ + ']';
  if (is_required_) line += " (required)";
  if (line.size() + 1 > kHelpColumn) {
    line += '\n' + std::string(kHelpColumn, ' ');
  } else {
    line.resize(kHelpColumn, ' ');
  }
  return line + WrapHelp(help_) + '\n';
}

}  // namespace cria::cli
