#include "cli/chat/interactive_chat.h"

#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "cli/chat/chat_commands.h"
#include "cli/chat/line_editor.h"
#include "cli/chat/message_reader.h"
#include "cli/input/prompt_source.h"
#include "cli/remedy.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/tell.h"
#include "core/format.h"
#include "core/platform.h"

namespace cria::cli {
namespace {

// The file with what was typed in earlier chats; makes its folder.
Result<std::string> HistoryPath() {
  const std::string folder = platform::StateFolder();
  if (folder.empty()) return Fail(ErrorCode::kIo, "HOME is not set");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(ErrorCode::kIo,
                Format("{}: cannot make this folder: {}", folder, std::strerror(errno)));
  }
  return folder + "/history";
}

Status KeepHistory(LineEditor& editor) {
  CRIA_ASSIGN_OR_RETURN(const std::string path, HistoryPath());
  return editor.KeepHistory(path);
}

void PrintError(const Error& error, const char* advice = "") {
  Tell(Format("({}{})", Printable(Sentence(error)), advice));
}

// After an error of one message, such as one that does not fit the context, the chat goes on. Any
// other error would happen again with the next message.
Status GoOnAfter(const Result<StopReason>& reason) {
  if (reason) return {};
  if (!Chat::IsOfOneMessage(reason.error())) return std::unexpected(reason.error());
  PrintError(reason.error());
  return {};
}

// While an object exists, Ctrl-C has no effect except where an answer or a line is waited for: it
// must not end the program if it comes a moment too late.
class InterruptsIgnored {
 public:
  InterruptsIgnored() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &before_);
  }
  ~InterruptsIgnored() { sigaction(SIGINT, &before_, nullptr); }
  InterruptsIgnored(const InterruptsIgnored&) = delete;
  InterruptsIgnored& operator=(const InterruptsIgnored&) = delete;

 private:
  struct sigaction before_ = {};
};

}  // namespace

Result<std::optional<std::string>> ChatAtTerminal(Chat& chat, const InteractiveOptions& options,
                                                  std::string& files) {
  const InterruptsIgnored interrupts_ignored;
  LineEditor editor(ChatCommands::Complete);
  if (options.keep_history) {
    const Status kept = KeepHistory(editor);
    if (!kept) PrintError(kept.error(), "; what is typed is not kept, as with --no-history");
  }
  MessageReader reader(editor, PromptBound(chat.engine()));
  ChatCommands commands(chat, files);
  while (const std::optional<std::string> text = reader.Next()) {
    if (text->find_first_not_of(" \t\n") == text->npos) continue;
    if (!ChatCommands::IsCommand(*text)) {
      CRIA_RETURN_IF_ERROR(GoOnAfter(chat.AnswerTo(commands.WithFiles(*text), options.style)));
      if (options.is_single_turn) break;
      continue;
    }
    const auto next = commands.Run(*text);
    if (!next) {
      PrintError(next.error());
    } else if (*next == ChatCommands::Next::kAnswerAgain) {
      CRIA_RETURN_IF_ERROR(GoOnAfter(chat.AnswerAgain(options.style)));
    } else if (*next == ChatCommands::Next::kOtherModel) {
      return commands.model_name();
    } else if (*next == ChatCommands::Next::kLeave) {
      break;
    }
  }
  return std::nullopt;
}

}  // namespace cria::cli
