#include "cli/flags/command_line.h"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "cli/flags/foreign_options.h"
#include "cli/flags/nearest_name.h"
#include "core/format.h"

namespace cria::cli {
namespace {

constexpr size_t kLetter = 2;  // Characters of "-x".

template <typename Number>
bool ReadNumber(std::string_view text, Number& value) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stop == end;
}

template <typename Number>
std::string NumberText(Number value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// Parses numbers with commas between them.
Status ReadList(std::string_view text, std::vector<size_t>& values) {
  values.clear();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (!ReadNumber(text.substr(begin, end - begin), values.emplace_back())) {
      return WrongValue(text, "a list of whole numbers with commas between them");
    }
    begin = end + 1;
  }
  return {};
}

// Also true of a model file that does not exist, so that the command says so.
bool IsFilePath(const std::string& word) {
  std::error_code ignored;
  return !word.starts_with('-') && (word.ends_with(".cria") || word.starts_with("hf:") ||
                                    std::filesystem::exists(word, ignored));
}

}  // namespace

CommandLine::CommandLine(std::string name, std::string description)
    : name_(std::move(name)), description_(std::move(description)) {
  AddFlag("-h,--help", [] {}, "Print this help and exit");
}

Option& CommandLine::Add(std::string_view names, const char* metavar, Setter set,
                         std::string help) {
  return options_.emplace_back(names, metavar, std::move(help), std::move(set));
}

Option& CommandLine::AddFlag(std::string_view names, std::function<void()> set, std::string help) {
  return Add(
      names, "",
      [set = std::move(set)](std::string_view) -> Status {
        set();
        return {};
      },
      std::move(help));
}

Option& CommandLine::AddFlag(std::string_view names, bool& value, std::string help) {
  return AddFlag(names, [&value] { value = true; }, std::move(help));
}

Option& CommandLine::AddText(std::string_view names, std::string& value, std::string help) {
  return Add(
      names, "TEXT",
      [&value](std::string_view text) -> Status {
        value = text;
        return {};
      },
      std::move(help));
}

Option& CommandLine::AddText(std::string_view names, std::optional<std::string>& value,
                             std::string help) {
  return Add(
      names, "TEXT",
      [&value](std::string_view text) -> Status {
        value = text;
        return {};
      },
      std::move(help));
}

template <typename Number>
Option& CommandLine::AddNumber(std::string_view names, Number& value, std::string help, Number min,
                               Number max) {
  constexpr bool kIsWhole = std::integral<Number>;
  constexpr bool kIsSigned = !std::unsigned_integral<Number>;
  const auto set = [&value, min, max](std::string_view text) -> Status {
    if (ReadNumber(text, value) && value >= min && value <= max) return {};
    std::string expected = kIsWhole ? "a whole number" : "a number";
    using Limits = std::numeric_limits<Number>;
    if (max != Limits::max()) {
      expected += " from " + NumberText(min) + " to " + NumberText(max);
    } else if (!kIsSigned || min != Limits::lowest()) {
      expected += " of " + NumberText(min) + " or more";
    }
    return WrongValue(text, expected);
  };
  return Add(names,
             !kIsWhole   ? "FLOAT"
             : kIsSigned ? "INT"
                         : "UINT",
             set, std::move(help))
      .Default(NumberText(value));
}
template Option& CommandLine::AddNumber(std::string_view, float&, std::string, float, float);
template Option& CommandLine::AddNumber(std::string_view, double&, std::string, double, double);
template Option& CommandLine::AddNumber(std::string_view, std::int64_t&, std::string, std::int64_t,
                                        std::int64_t);
template Option& CommandLine::AddNumber(std::string_view, std::uint32_t&, std::string,
                                        std::uint32_t, std::uint32_t);
template Option& CommandLine::AddNumber(std::string_view, std::uint64_t&, std::string,
                                        std::uint64_t, std::uint64_t);

Option& CommandLine::AddList(std::string_view names, std::vector<size_t>& values,
                             std::string help) {
  std::string shown;
  for (const size_t value : values) shown += (shown.empty() ? "" : ",") + NumberText(value);
  Option& option = Add(
      names, "UINT", [&values](std::string_view text) { return ReadList(text, values); },
      std::move(help));
  option.is_list_ = true;
  return option.Default(std::move(shown));
}

Setter CommandLine::OneOf(std::vector<const char*> names, Choose choose) {
  return [names = std::move(names), choose = std::move(choose)](std::string_view text) -> Status {
    std::string known;
    for (size_t i = 0; i < names.size(); ++i) {
      if (text == names[i]) {
        choose(i);
        return {};
      }
      known += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
    }
    return WrongValue(text, known);
  };
}

Option& CommandLine::option(std::string_view name) { return *Find(name); }

void CommandLine::RemoveOption(std::string_view name) {
  std::erase_if(options_, [&](const Option& option) { return option.has_name(name); });
}

void CommandLine::SetVersion(std::string version) {
  version_ = std::move(version);
  AddFlag("--version", [] {}, "Print the version and exit");
}

CommandLine& CommandLine::AddCommand(const char* name, const char* description) {
  commands_.push_back(std::make_unique<CommandLine>(name_ + ' ' + name, description));
  return *commands_.back();
}

Option* CommandLine::Find(std::string_view name) {
  const auto found =
      std::ranges::find_if(options_, [&](const Option& option) { return option.has_name(name); });
  return found == options_.end() ? nullptr : &*found;
}

CommandLine* CommandLine::FindCommand(std::string_view name) const {
  for (const auto& command : commands_) {
    if (std::string_view(command->name_).substr(name_.size() + 1) == name) return command.get();
  }
  return nullptr;
}

Status CommandLine::TakePositional(const std::string& argument) {
  for (Option& option : options_) {
    if (option.is_positional() && (option.given_.empty() || option.is_repeatable_)) {
      return option.Take(argument);
    }
  }
  if (commands_.empty()) {
    return Fail(ErrorCode::kUsage, Format("\"{}\" is one argument too many", argument));
  }
  std::vector<std::string> names;
  names.reserve(commands_.size());
  for (const auto& command : commands_) names.push_back(command->name_.substr(name_.size() + 1));
  return Fail(ErrorCode::kUsage,
              Format("there is no command \"{}\"{}", argument, NearestName(argument, names)));
}

std::unexpected<Error> CommandLine::NoSuchOption(std::string_view name) const {
  std::vector<std::string> names;
  for (const Option& option : options_) {
    std::ranges::copy_if(option.names_, std::back_inserter(names), [](const std::string& known) {
      return known.starts_with('-') && known.size() > kLetter;
    });
  }
  return Fail(ErrorCode::kUsage, Format("there is no option {}{}", name, NearestName(name, names)));
}

Status CommandLine::CheckName(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const bool has_one_dash = !word.starts_with("--");
  const auto is_known = [&](const Option& option) {
    return std::ranges::any_of(option.names_, [&](const std::string& known) {
      return known == name || (has_one_dash && known.size() > kLetter && known.ends_with(name) &&
                               known.size() == name.size() + 1);
    });
  };
  if (std::ranges::any_of(options_, is_known)) return {};
  if (const std::string_view advice = InPlaceOfForeignOption(name); !advice.empty()) {
    return Fail(ErrorCode::kUsage, Format("there is no option {} here: {}", name, advice));
  }
  if (!has_one_dash || word.size() <= kLetter) return {};
  // A value may follow a letter, but a word may not: -fa is no file, and -hf asks for no help.
  const Option* const option = Find(word.substr(0, kLetter));
  const char next = word[kLetter];
  const bool is_word = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
  if (option != nullptr && !option->metavar_.empty() && !is_word) return {};
  return NoSuchOption(name);
}

Status CommandLine::TakeAll(std::span<const std::string> arguments) {
  // getopt_long_only returns these numbers for long options; smaller ones are letters.
  constexpr int kFirstLong = 256;
  // '-': arguments that are not options are returned in their places; ':': a missing value has a
  // result of its own.
  std::string letters = "-:";
  std::vector<struct ::option> long_names;
  std::vector<Option*> long_options;
  for (Option& option : options_) {
    option.given_.clear();
    const int value = option.metavar_.empty() ? no_argument : required_argument;
    for (const std::string& name : option.names_) {
      if (!name.starts_with('-')) continue;
      if (name.size() == 2) {
        letters += name[1];
        if (value == required_argument) letters += ':';
      } else {
        const int number = kFirstLong + static_cast<int>(long_options.size());
        long_names.push_back({&name[name.find_first_not_of('-')], value, nullptr, number});
        long_options.push_back(&option);
      }
    }
  }
  long_names.push_back({});
  const auto option_of = [&](int found) {
    return found < kFirstLong ? Find(std::string{'-', static_cast<char>(found)})
                              : long_options[static_cast<size_t>(found - kFirstLong)];
  };

  // getopt_long_only takes non-const pointers, but does not change the strings.
  std::vector<char*> words = {name_.data()};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  const int num_words = static_cast<int>(words.size());
  words.push_back(nullptr);
  opterr = 0;
  optind = 0;  // Makes glibc's getopt start again.
  for (;;) {
    // Before the first call, optind is 0. Then it is always that of a word, because no letters are
    // joined.
    const char* const next = words[static_cast<size_t>(std::max(optind, 1))];
    if (next != nullptr && *next == '-' && std::string_view(next) != "-" &&
        std::string_view(next) != "--") {
      CRIA_RETURN_IF_ERROR(CheckName(next));
    }
    const int found =
        getopt_long_only(num_words, words.data(), letters.c_str(), long_names.data(), nullptr);
    if (found == -1) break;
    if (found == 1) {
      CRIA_RETURN_IF_ERROR(TakePositional(optarg));
    } else if (found == ':') {
      return Fail(ErrorCode::kUsage, Format("{} needs a value", option_of(optopt)->name()));
    } else if (found == '?' && optopt >= kFirstLong) {
      return Fail(ErrorCode::kUsage, option_of(optopt)->name() + " takes no value");
    } else if (found == '?') {
      const std::string_view word = words[static_cast<size_t>(optind) - 1];
      return NoSuchOption(optopt == 0 ? word.substr(0, word.find('='))
                                      : std::string{'-', static_cast<char>(optopt)});
    } else {
      CRIA_RETURN_IF_ERROR(option_of(found)->Take(optarg == nullptr ? "" : optarg));
    }
  }
  for (; optind < num_words; ++optind) {
    CRIA_RETURN_IF_ERROR(TakePositional(words[static_cast<size_t>(optind)]));
  }
  return {};
}

Status CommandLine::Store() {
  for (Option& option : options_) CRIA_RETURN_IF_ERROR(option.Store());
  return {};
}

std::vector<std::string> CommandLine::GivenWords(std::string_view excluded) const {
  std::vector<std::string> words;
  for (const Option& option : options_) {
    if (option.has_name(excluded)) continue;
    for (const std::string& text : option.given_) {
      words.push_back(option.name());
      if (!option.metavar_.empty()) words.push_back(text);
    }
  }
  return words;
}

std::string CommandLine::HelpText() const {
  std::string text = Format("{}\nUsage: {} [OPTIONS]", description_, name_);
  std::vector<std::string> groups;
  for (const Option& option : options_) {
    if (option.is_positional()) {
      const bool has_flag = option.names_.front().starts_with('-');
      const std::string& name = has_flag ? option.metavar_ : option.names_.front();
      const char* const more = option.is_repeatable_ ? "…" : "";
      text += option.is_required_ ? ' ' + name + more : Format(" [{}{}]", name, more);
    }
    if (!std::ranges::contains(groups, option.group_)) groups.push_back(option.group_);
  }
  // If the program does something without a command, that is a separate line of usage.
  if (!commands_.empty()) text += action_ ? Format("\n       {} SUBCOMMAND", name_) : " SUBCOMMAND";
  text += '\n';
  for (const std::string& group : groups) {
    text += Format("\n{}:\n", group);
    for (const Option& option : options_) {
      if (option.group_ == group) text += option.HelpLine();
    }
  }
  if (!commands_.empty()) text += "\nSubcommands:\n";
  for (const auto& command : commands_) {
    text += Format("  {:<28}{}\n", command->name_.substr(name_.size() + 1),
                   WrapHelp(command->description_));
  }
  return text;
}

Status CommandLine::Read(std::span<const std::string> arguments) {
  CRIA_RETURN_IF_ERROR(TakeAll(arguments));
  return Store();
}

Status CommandLine::Run(std::span<const std::string> arguments) {
  if (!arguments.empty()) {
    if (CommandLine* const command = FindCommand(arguments.front())) {
      return command->Run(arguments.subspan(1));
    }
    if (command_of_files_ != nullptr && IsFilePath(arguments.front())) {
      return FindCommand(command_of_files_)->Run(arguments);
    }
  }
  Status done = TakeAll(arguments);
  if (done && !Find("--help")->given_.empty()) {
    std::fputs(HelpText().c_str(), stdout);
    return {};
  }
  if (const Option* version = Find("--version"); done && version && !version->given_.empty()) {
    std::printf("%s\n", version_.c_str());
    return {};
  }
  if (done) done = Store();
  if (done && !action_) done = Fail(ErrorCode::kUsage, "no command is given");
  if (done) return action_();
  return Fail(ErrorCode::kUsage, Format("{}; see {} --help", done.error().message(), name_));
}

}  // namespace cria::cli
