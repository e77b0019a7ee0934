#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

// Stores the text of an option's value, or returns what is wrong with it.
using Setter = std::function<Status(std::string_view text)>;

// Returns an error of code kUsage: "TEXT" is not EXPECTED.
std::unexpected<Error> WrongValue(std::string_view text, std::string_view expected);

// Breaks a text of the help into lines, which end at the width of a terminal. All but the first are
// indented like the texts of options.
std::string WrapHelp(std::string_view text);

// One option of a command. Functions that return Option& configure it and can be chained.
class Option {
 public:
  // Names with commas between them, "-m,--model" or "-sys,--system-prompt"; a name without a dash
  // is a positional argument. `metavar` is empty for a flag, which no value follows.
  Option(std::string_view names, std::string metavar, std::string help, Setter set);

  Option& Required();
  // The value may stand without a name.
  Option& Positional();
  // The section of the help in which the option is listed.
  Option& Group(const char* group);
  Option& Metavar(const char* metavar);
  Option& Help(std::string help);
  // The value that the help shows as the default.
  Option& Default(std::string text);
  // The environment variable that is used if the option is not given.
  Option& Environment(const char* variable);
  // The option may be given several times; each value is stored, in their order.
  Option& Repeatable();
  // The two options must not be given together.
  Option& Excludes(const Option& other);

 private:
  friend class CommandLine;

  bool is_positional() const { return is_positional_; }
  bool has_name(std::string_view name) const;
  // The long name, which is the last one.
  const std::string& name() const { return names_.back(); }
  Status Take(std::string text);
  // Stores the given value; fails if it is missing or wrong.
  Status Store();
  Status StoreValue(const std::string& text) const;
  std::string HelpLine() const;

  std::vector<std::string> names_;
  std::string metavar_;
  std::string help_;
  Setter set_;
  std::string default_;
  std::string group_ = "Options";
  const char* environment_ = nullptr;
  std::vector<const Option*> excluded_;
  bool is_required_ = false;
  bool is_positional_;
  bool is_list_ = false;  // Several values with commas, and the option may be repeated.
  bool is_repeatable_ = false;
  std::vector<std::string> given_;
};

}  // namespace cria::cli
