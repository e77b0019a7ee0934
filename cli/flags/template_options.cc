#include "cli/flags/template_options.h"

#include <string_view>

#include "text/chat_template.h"

namespace cria::cli {

void AddTemplateOptions(CommandLine& command, TemplateOptions& options) {
  const char* group = "Chat template";
  command
      .Add(
          "--chat-template-kwargs", "JSON",
          [&options](std::string_view text) -> Status {
            CRIA_RETURN_IF_ERROR(CheckTemplateVariables(text));
            options.variables = text;
            return {};
          },
          "Variables for the chat template: a JSON object, such as {\"enable_thinking\": false}")
      .Group(group);
  command
      .AddChoice("--think", options.thinking,
                 {{"off", Thinking::kOff}, {"on", Thinking::kOn}, {"hide", Thinking::kHide}},
                 "Whether the model thinks before it answers: off, on, or hide: think, but do not "
                 "print it")
      .Group(group);
}

}  // namespace cria::cli
