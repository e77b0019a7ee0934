#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/options.h"
#include "cli/flags/template_options.h"
#include "cli/input/messages_file.h"
#include "cli/input/reasoning.h"
#include "cli/terminal/printable.h"
#include "cli/terminal/terminal.h"
#include "model/model_file.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cria::cli {
namespace {

struct TemplateArguments {
  std::string model_path;
  std::string messages_path;
  std::string system_prompt;
  std::string prompt;
  TemplateOptions chat_template;
  bool no_generation_prompt = false;
  bool json = false;
};

// A rendered conversation.
struct RenderedChat {
  std::string text;
  std::vector<int32_t> tokens;
};

Result<std::vector<ChatMessage>> MessagesFor(const TemplateArguments& options,
                                             const ChatTemplate& chat_template) {
  std::vector<ChatMessage> messages;
  if (!options.messages_path.empty()) {
    CRIA_ASSIGN_OR_RETURN(messages, ReadMessagesFile(options.messages_path, chat_template));
  } else if (options.prompt.empty()) {
    messages = {{"user", "Hello!"},
                {"assistant", "Hello! How can I help you?"},
                {"user", "What is a cria?"}};
  }
  if (!options.system_prompt.empty()) {
    if (!messages.empty() &&
        (messages.front().role == "system" || messages.front().role == "developer")) {
      return Fail(ErrorCode::kUsage,
                  options.messages_path + ": begins with a system prompt; leave out -sys");
    }
    messages.insert(messages.begin(), {"system", options.system_prompt});
  }
  if (!options.prompt.empty()) messages.push_back({"user", options.prompt});
  return messages;
}

void PrintRenderingAsJson(const RenderedChat& chat, const ChatTemplate& chat_template,
                          const Tokenizer& tokenizer, bool opens_reasoning) {
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
  for (const int32_t id : chat.tokens) {
    tokens.push_back({{"id", id}, {"text", tokenizer.Piece(id)}});
  }
  const std::string_view variable = ThinkingVariable(chat_template);
  const nlohmann::ordered_json json = {
      {"text", chat.text},
      {"num_tokens", chat.tokens.size()},
      {"tokens", std::move(tokens)},
      {"thinking_variable", variable.empty() ? nlohmann::ordered_json() : variable},
      {"opens_reasoning", opens_reasoning}};
  // A token may have a part of a character.
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  std::puts(json.dump(2, ' ', /*ensure_ascii=*/false, kReplace).c_str());
}

// The text for a terminal, which it must not drive, and the tokens.
void PrintForTerminal(const RenderedChat& chat, const Tokenizer& tokenizer) {
  for (std::string_view rest = chat.text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    std::puts(Printable(line).c_str());
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  std::printf("\n%zu tokens:\n", chat.tokens.size());
  for (const int32_t id : chat.tokens) {
    std::printf("%6d '%s'\n", id, Printable(tokenizer.Piece(id)).c_str());
  }
}

Status RenderTemplate(const TemplateArguments& options) {
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::OpenVocabulary(options.model_path));
  CRIA_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Create(file.vocabulary()));
  const ChatTemplate chat_template(file.chat_template_source(), file.vocabulary(), file.path());
  CRIA_ASSIGN_OR_RETURN(const std::vector<ChatMessage> messages,
                        MessagesFor(options, chat_template));
  CRIA_ASSIGN_OR_RETURN(const std::string variables,
                        VariablesFor(chat_template, options.chat_template));
  const RenderOptions rendering = {.add_generation_prompt = !options.no_generation_prompt,
                                   .variables = variables,
                                   .time = chat_template.options().clock()};
  RenderedChat chat;
  CRIA_ASSIGN_OR_RETURN(const std::vector<ChatSegment> segments,
                        chat_template.Render(messages, rendering));
  for (const ChatSegment& segment : segments) chat.text += segment.text;
  if (file.chat_template_source().empty()) {
    std::fputs("cria: this model has no chat template: the contents of the messages are joined\n",
               stderr);
  }
  if (!options.json && !IsTerminal(stdout)) {
    std::fwrite(chat.text.data(), 1, chat.text.size(), stdout);
    return {};
  }
  CRIA_ASSIGN_OR_RETURN(chat.tokens, chat_template.Encode(tokenizer, messages, rendering));
  if (options.json) {
    PrintRenderingAsJson(chat, chat_template, tokenizer,
                         OpensReasoning(chat_template, messages, variables));
  } else {
    PrintForTerminal(chat, tokenizer);
  }
  return {};
}

}  // namespace

void AddTemplateCommand(CommandLine& program) {
  auto options = std::make_shared<TemplateArguments>();
  CommandLine& command = program.AddCommand(
      "template", "Show a conversation as the model's chat template writes it, and its tokens");
  AddModelOption(command, options->model_path);
  command
      .AddText("--messages", options->messages_path,
               "A JSON file with the messages; without it and -p, an example is shown")
      .Metavar("FILE");
  command.AddText("-sys,--system-prompt", options->system_prompt, "A system prompt to begin with");
  command.AddText("-p,--prompt", options->prompt, "A message of the user to end with");
  command.AddFlag("--no-generation-prompt", options->no_generation_prompt,
                  "Do not begin an answer");
  command.AddFlag("--json", options->json,
                  "Print JSON with the text and its tokens; by default, tokens are shown only at a "
                  "terminal, and a pipe or file gets the text alone");
  AddTemplateOptions(command, options->chat_template);
  command.SetAction([options] { return RenderTemplate(*options); });
}

}  // namespace cria::cli
