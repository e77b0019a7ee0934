#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/flags/option.h"
#include "cria/error.h"

namespace cria::cli {

// Options that are bound to variables, which hold the defaults and must outlive this object; and
// commands, which have options of their own. Arguments are parsed by getopt_long_only; a name
// behind two dashes may be abbreviated if it stays unique, and letters behind one dash are never
// joined. Values are stored in the order in which the options were added.
class CommandLine {
 public:
  CommandLine(std::string name, std::string description);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Option& AddFlag(std::string_view names, std::function<void()> set, std::string help);
  Option& AddFlag(std::string_view names, bool& value, std::string help);
  Option& AddText(std::string_view names, std::string& value, std::string help);
  // Absent: the option is not given.
  Option& AddText(std::string_view names, std::optional<std::string>& value, std::string help);
  // For the number types that command_line.cc instantiates. The default is shown in the help.
  template <typename Number>
  Option& AddNumber(std::string_view names, Number& value, std::string help,
                    Number min = std::numeric_limits<Number>::lowest(),
                    Number max = std::numeric_limits<Number>::max());
  Option& AddList(std::string_view names, std::vector<size_t>& values, std::string help);
  // The value must be one of these names.
  template <typename T>
  Option& AddChoice(std::string_view names, T& value,
                    std::vector<std::pair<const char*, T>> choices, std::string help);
  Option& Add(std::string_view names, const char* metavar, Setter set, std::string help);

  // The option with this name, which must exist.
  Option& option(std::string_view name);
  void RemoveOption(std::string_view name);

  // `action` is called if the command is chosen.
  CommandLine& AddCommand(const char* name, const char* description);
  // The command that is meant if the first argument is no command, but the path of a file.
  void SetCommandOfFiles(const char* name) { command_of_files_ = name; }
  void SetAction(std::function<Status()> action) { action_ = std::move(action); }
  void SetVersion(std::string version);

  // The options that were given, as words of a command line, except the option `excluded`.
  std::vector<std::string> GivenWords(std::string_view excluded) const;

  // Parses and stores the arguments. Wrong arguments are kUsage.
  Status Read(std::span<const std::string> arguments);
  // Parses and stores the arguments and calls the chosen action, or prints the help or the version
  // if they ask for it. Wrong arguments are kUsage.
  Status Run(std::span<const std::string> arguments);

 private:
  using Choose = std::function<void(size_t index)>;
  Setter OneOf(std::vector<const char*> names, Choose choose);
  Option* Find(std::string_view name);
  // The command with this name; null if there is none.
  CommandLine* FindCommand(std::string_view name) const;
  // Whether getopt may read this word as an option.
  Status CheckName(std::string_view word);
  std::unexpected<Error> NoSuchOption(std::string_view name) const;
  Status TakePositional(const std::string& argument);
  Status TakeAll(std::span<const std::string> arguments);
  Status Store();
  std::string HelpText() const;

  std::string name_;
  std::string description_;
  std::string version_;
  std::list<Option> options_;
  std::vector<std::unique_ptr<CommandLine>> commands_;
  const char* command_of_files_ = nullptr;
  std::function<Status()> action_;
};

template <typename T>
Option& CommandLine::AddChoice(std::string_view names, T& value,
                               std::vector<std::pair<const char*, T>> choices, std::string help) {
  std::vector<const char*> words;
  words.reserve(choices.size());
  for (const auto& choice : choices) words.push_back(choice.first);
  return Add(names, "NAME",
             OneOf(std::move(words), [&value, choices = std::move(choices)](
                                         size_t index) { value = choices[index].second; }),
             std::move(help));
}

}  // namespace cria::cli
