#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria::cli {

// Stores what the text of an option says, or tells what is wrong with it.
using Setter = std::function<Status(std::string_view text)>;

// "\"text\" is not expected", an error of usage.
std::unexpected<Error> NotWhat(std::string_view text, std::string_view expected);

// One option of a command. The functions that return it describe it further, one behind the other.
class Option {
 public:
  // Names with commas between them, "-m,--model" or "-sys,--system-prompt"; one without a dash
  // stands by its place. `metavar` is empty for a flag, which no value follows.
  Option(std::string_view names, std::string metavar, std::string help, Setter set);

  Option& Required();
  // The section of the help that it stands in.
  Option& Group(const char* group);
  Option& Metavar(const char* metavar);
  Option& Help(std::string help);
  // What the help shows as the value where none is given.
  Option& Default(std::string text);
  // The variable of the environment that counts where the option is not given.
  Option& Environment(const char* variable);
  // Is not to be given together with the other.
  Option& Excludes(const Option& other);

 private:
  friend class CommandLine;

  bool is_positional() const;
  bool has_name(std::string_view name) const;
  // The long name, which comes last.
  const std::string& name() const { return names_.back(); }
  Status Take(std::string text);
  // Stores what was given, unless that is missing or wrong.
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
  bool is_list_ = false;  // Values with commas between them, and the option several times.
  std::vector<std::string> given_;
};

}  // namespace cria::cli
