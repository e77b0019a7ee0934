#include "cli/chat/chat_commands.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cli/chat/chat_settings.h"
#include "cli/chat/exported_chat.h"
#include "cli/flags/nearest_name.h"
#include "cli/input/prompt_source.h"
#include "cli/input/text_file.h"
#include "cli/report.h"
#include "cli/terminal/block_drawing.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/tell.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "llm/random_seed.h"

namespace cria::cli {

struct ChatCommands::Command {
  std::vector<const char*> names;
  const char* argument;  // How the help shows it; "" for none.
  bool needs_argument;
  const char* help;
  Result<Next> (*run)(ChatCommands& commands, const std::string& argument);
};

namespace {

// The word before the first space, and what follows it.
std::pair<std::string_view, std::string_view> SplitWord(std::string_view text) {
  const size_t space = std::min(text.find(' '), text.size());
  std::string_view rest = text.substr(space);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  rest = rest.substr(0, rest.find_last_not_of(' ') + 1);
  return {text.substr(0, space), rest};
}

// "~" at the beginning of a path is the home folder, as in a shell.
std::string WithHome(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

}  // namespace

const std::vector<ChatCommands::Command>& ChatCommands::All() {
  using Self = ChatCommands;
  using Text = const std::string;
  static const std::vector<Command> commands = {
      {{"/help", "/?"},
       "",
       false,
       "this list",
       [](Self&, Text&) -> Result<Next> {
         for (const Command& command : All()) {
           std::string usage = command.names.front();
           if (*command.argument != '\0') usage += Format(" {}", command.argument);
           std::fprintf(stderr, "%-21s %s\n", usage.c_str(), command.help);
         }
         Tell(
             "Tab completes a command. Alt-Enter, or \\ at the end of a line, goes on with the\n"
             "message on the next line; \"\"\" begins and ends a message of several lines. A\n"
             "space before a slash sends the line as a message. Ctrl-C stops an answer, drops\n"
             "what is typed, or leaves if nothing is typed.");
         return Next::kGoOn;
       }},
      {{"/regen"},
       "",
       false,
       "answer the last message once more",
       [](Self&, Text&) -> Result<Next> { return Next::kAnswerAgain; }},
      {{"/retry"},
       "",
       false,
       "answer the last message once more, with another seed",
       [](Self& self, Text&) -> Result<Next> {
         CRIA_RETURN_IF_ERROR(self.ChooseSeed());
         return Next::kAnswerAgain;
       }},
      {{"/undo"},
       "",
       false,
       "forget the last message and its answer",
       [](Self& self, Text&) -> Result<Next> {
         CRIA_RETURN_IF_ERROR(self.chat_.DropLastTurn());
         Tell("(the last turn is forgotten)");
         return Next::kGoOn;
       }},
      {{"/reset", "/clear"},
       "",
       false,
       "begin a new conversation",
       [](Self& self, Text&) -> Result<Next> {
         self.chat_.Reset();
         Tell("(forgotten)");
         return Next::kGoOn;
       }},
      {{"/system"},
       "[TEXT]",
       false,
       "print the system prompt, or set it; \"\" removes it",
       [](Self& self, Text& text) -> Result<Next> {
         if (text.empty()) {
           const std::string now = self.chat_.system_prompt();
           Tell(now.empty() ? "(there is no system prompt)" : now);
           return Next::kGoOn;
         }
         CRIA_RETURN_IF_ERROR(self.chat_.SetSystemPrompt(text == "\"\"" ? "" : text));
         Tell("(holds from the next message on)");
         return Next::kGoOn;
       }},
      {{"/set"},
       "[OPTION VALUE]",
       false,
       "change an option, as in /set temp 0.5, or list the options",
       [](Self& self, Text& words) -> Result<Next> {
         CRIA_RETURN_IF_ERROR(self.Set(words));
         return Next::kGoOn;
       }},
      {{"/show"},
       "",
       false,
       "the model, the system prompt and the options",
       [](Self& self, Text&) -> Result<Next> {
         self.Show();
         return Next::kGoOn;
       }},
      {{"/tokens"},
       "",
       false,
       "how many tokens the conversation takes",
       [](Self& self, Text&) -> Result<Next> {
         self.ShowTokens();
         return Next::kGoOn;
       }},
      {{"/stats"},
       "",
       false,
       "speed of the last answer, the memory in use, and the processor's heat",
       [](Self& self, Text&) -> Result<Next> {
         Tell(self.chat_.StatsText());
         Tell(MemoryUsageLine(self.chat_.engine().memory_plan()));
         self.DrawStats();
         const std::string processor = ProcessorLine(platform::ReadProcessorState());
         if (!processor.empty()) Tell(processor);
         return Next::kGoOn;
       }},
      {{"/read"},
       "FILE",
       true,
       "put a text file before the next message",
       [](Self& self, Text& path) -> Result<Next> {
         CRIA_RETURN_IF_ERROR(self.ReadFile(WithHome(path)));
         return Next::kGoOn;
       }},
      {{"/export"},
       "FILE",
       true,
       "write the conversation as Markdown, or for --messages if FILE ends with .json",
       [](Self& self, Text& file) -> Result<Next> {
         const std::string path = WithHome(file);
         CRIA_RETURN_IF_ERROR(ExportMessages(self.chat_.conversation().messages(), path));
         Tell(Format("({} messages are written into {})",
                     self.chat_.conversation().messages().size(), Printable(path)));
         return Next::kGoOn;
       }},
      {{"/model"},
       "[NAME]",
       false,
       "print the model, or go on with another one",
       [](Self& self, Text& name) -> Result<Next> {
         if (name.empty()) {
           Tell(self.ModelText());
           return Next::kGoOn;
         }
         self.model_name_ = WithHome(name);
         return Next::kOtherModel;
       }},
      {{"/save"},
       "FILE",
       true,
       "keep the conversation and its KV cache in a file",
       [](Self& self, Text& file) -> Result<Next> {
         const std::string path = WithHome(file);
         CRIA_RETURN_IF_ERROR(self.chat_.SaveTo(path));
         Tell(Format("(saved; /load {} or --session {} goes on from it)", Printable(path),
                     Printable(path)));
         return Next::kGoOn;
       }},
      {{"/load"},
       "FILE",
       true,
       "go on with the conversation of such a file",
       [](Self& self, Text& path) -> Result<Next> {
         CRIA_RETURN_IF_ERROR(self.chat_.LoadFrom(WithHome(path)));
         return Next::kGoOn;
       }},
      {{"/exit", "/quit", "/bye"},
       "",
       false,
       "leave (also Ctrl-D)",
       [](Self&, Text&) -> Result<Next> { return Next::kLeave; }},
  };
  return commands;
}

bool ChatCommands::IsCommand(std::string_view text) {
  return text.starts_with('/') && !text.contains('\n');
}

Result<ChatCommands::Next> ChatCommands::Run(std::string_view text) {
  const auto [name, argument] = SplitWord(text);
  const auto found = std::ranges::find_if(
      All(), [&](const Command& command) { return std::ranges::contains(command.names, name); });
  if (found == All().end()) {
    std::vector<std::string> names;
    for (const Command& command : All()) {
      names.insert(names.end(), command.names.begin(), command.names.end());
    }
    return Fail(ErrorCode::kUsage,
                Format("there is no command {}{}; /help lists them, and a space before the slash "
                       "sends it as a message",
                       name, NearestName(name, names)));
  }
  if (found->needs_argument && argument.empty()) {
    return Fail(ErrorCode::kUsage, Format("{} needs the name of a file", name));
  }
  if (*found->argument == '\0' && !argument.empty()) {
    return Fail(ErrorCode::kUsage,
                Format("{} takes nothing after it; a space before the slash sends the line as a "
                       "message",
                       name));
  }
  return found->run(*this, std::string(argument));
}

std::vector<std::string> ChatCommands::Complete(std::string_view beginning) {
  std::vector<std::string> words;
  constexpr std::string_view kSet = "/set ";
  if (beginning.starts_with(kSet)) {
    for (const std::string& option : ChatSettingNames())
      words.push_back(std::string(kSet) + option);
  } else if (beginning.starts_with('/')) {
    for (const Command& command : All()) words.emplace_back(command.names.front());
  }
  std::erase_if(words, [&](const std::string& word) { return !word.starts_with(beginning); });
  return words;
}

Status ChatCommands::Set(std::string_view words) {
  const auto [word, value] = SplitWord(words);
  const std::string_view name = FullSettingName(word);
  if (!name.empty()) CRIA_RETURN_IF_ERROR(ChangeChatSetting(chat_, name, value));
  for (const ChatSetting& setting : ChatSettings(chat_.options())) {
    if (name.empty() || setting.name == name) Tell(Format("{} {}", setting.name, setting.value));
  }
  return {};
}

Status ChatCommands::ReadFile(const std::string& path) {
  const TextBound bound = PromptBound(chat_.engine());
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, bound));
  if (ValidUtf8Prefix(text) != text.size()) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: is no text in UTF-8", path));
  }
  if (files_.size() + text.size() > bound.max_bytes) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{}: has, with the files before it, more than the {} bytes that {}", path,
                       bound.max_bytes, bound.reason));
  }
  files_ += text;
  if (!files_.empty() && !files_.ends_with('\n')) files_ += '\n';
  Tell(Format("({} of {} go before the next message)", FormatBytes(text.size()), Printable(path)));
  return {};
}

std::string ChatCommands::WithFiles(std::string message) {
  if (files_.empty()) return message;
  return std::exchange(files_, {}) + "\n" + message;
}

Status ChatCommands::ChooseSeed() {
  SamplerOptions sampler = chat_.options().sampler;
  if (sampler.temperature == 0.0f) {
    return Fail(ErrorCode::kUsage,
                "the temperature is 0, so that every seed gives the same answer; /set temp 0.8 "
                "changes it");
  }
  sampler.seed = RandomSeed();
  CRIA_RETURN_IF_ERROR(chat_.SetSampler(sampler));
  Tell(Format("(seed {})", sampler.seed));
  return {};
}

std::string ChatCommands::ModelText() const {
  return Format("{} ({})", Printable(chat_.engine().file().name()),
                Printable(chat_.options().model_path));
}

void ChatCommands::Show() const {
  Tell(Format("model          {}", ModelText()));
  Tell(Format("context        {} of {} tokens", chat_.session().tokens().size(),
              chat_.session().context_tokens()));
  Tell(Format("messages       {}", chat_.conversation().messages().size()));
  const std::string system = chat_.system_prompt();
  Tell(Format("system prompt  {}", system.empty() ? "none" : system));
  for (const ChatSetting& setting : ChatSettings(chat_.options())) {
    Tell(Format("{} {}", (setting.name + std::string(14, ' ')).substr(0, 14), setting.value));
  }
}

void ChatCommands::ShowTokens() const {
  const size_t used = chat_.conversation().NumTokensInContext();
  const size_t context = chat_.session().context_tokens();
  Tell(Format("{} messages take {} of {} tokens; {} are free",
              chat_.conversation().messages().size(), used, context,
              context - std::min(used, context)));
}

void ChatCommands::DrawStats() const {
  if (!IsTerminal(stderr)) return;
  constexpr size_t kWidth = 24;
  const platform::MemoryUsage usage = platform::ReadMemoryUsage();
  const uint64_t peak = chat_.engine().memory_plan().peak_bytes();
  Tell(Format("memory: {}  █ private, ▒ mapped, of {} planned",
              PartsBar(usage.private_bytes, usage.file_mapped_bytes, peak, kWidth),
              FormatBytes(peak)));
  const std::span<const double> speeds = chat_.speeds();
  if (speeds.size() < 2) return;
  const auto [slowest, fastest] = std::ranges::minmax(speeds);
  Tell(Format("speed: {}  the last {} answers, {:.1f} to {:.1f} tok/s", Sparkline(speeds),
              speeds.size(), slowest, fastest));
}

}  // namespace cria::cli
