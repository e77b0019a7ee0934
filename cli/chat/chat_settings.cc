#include "cli/chat/chat_settings.h"

#include <algorithm>
#include <optional>

#include "cli/flags/command_line.h"
#include "cli/flags/generation_options.h"
#include "cli/flags/nearest_name.h"
#include "cli/flags/options.h"
#include "cli/flags/template_options.h"
#include "core/format.h"

namespace cria::cli {

namespace {

const char* ThinkingName(Thinking thinking) {
  switch (thinking) {
    case Thinking::kOff:
      return "off";
    case Thinking::kOn:
      return "on";
    case Thinking::kHide:
      return "hide";
    case Thinking::kDefault:
      break;
  }
  return "as the model's template has it";
}

}  // namespace

std::vector<ChatSetting> ChatSettings(const ChatOptions& options) {
  const SamplerOptions& sampler = options.sampler;
  return {{"temp", Format("{}", sampler.temperature)},
          {"top-k", Format("{}", sampler.top_k)},
          {"typical", Format("{}", sampler.typical_p)},
          {"top-p", Format("{}", sampler.top_p)},
          {"min-p", Format("{}", sampler.min_p)},
          {"xtc-probability", Format("{}", sampler.xtc_probability)},
          {"xtc-threshold", Format("{}", sampler.xtc_threshold)},
          {"repeat-penalty", Format("{}", sampler.repeat_penalty)},
          {"presence-penalty", Format("{}", sampler.presence_penalty)},
          {"frequency-penalty", Format("{}", sampler.frequency_penalty)},
          {"repeat-last-n", LastNText(sampler.repeat_last_n)},
          {"dry-multiplier", Format("{}", sampler.dry.multiplier)},
          {"dry-base", Format("{}", sampler.dry.base)},
          {"dry-allowed-length", Format("{}", sampler.dry.allowed_length)},
          {"dry-penalty-last-n", LastNText(sampler.dry.last_n)},
          {"seed", Format("{}", sampler.seed)},
          {"predict", options.max_tokens == 0 ? "-1" : Format("{}", options.max_tokens)},
          {"context-full", WhenFullName(options.when_full)},
          {"think", ThinkingName(options.chat_template.thinking)},
          {"figures", options.shows_figures ? "on" : "off"}};
}

std::string_view FullSettingName(std::string_view name) {
  return name == "n" ? "predict" : name == "s" ? "seed" : name;
}

std::vector<std::string> ChatSettingNames() {
  std::vector<std::string> names;
  for (const ChatSetting& setting : ChatSettings({})) names.push_back(setting.name);
  return names;
}

Status ChangeChatSetting(Chat& chat, std::string_view name, std::string_view value) {
  const std::vector<std::string> names = ChatSettingNames();
  if (!std::ranges::contains(names, name)) {
    return Fail(ErrorCode::kUsage,
                Format("there is no option {}{}; /set lists them", name, NearestName(name, names)));
  }
  if (value.empty()) return {};
  SamplerOptions sampler = chat.options().sampler;
  size_t max_tokens = chat.options().max_tokens;
  std::optional<WhenFull> when_full = chat.options().when_full;
  // The value is read as on the command line.
  CommandLine flags("/set", "");
  const uint64_t seed = sampler.seed;
  AddSamplerOptions(flags, sampler);
  sampler.seed = seed;  // The options begin with a new one.
  AddPredictOption(flags, max_tokens, "");
  AddConversationFullOption(flags, when_full);
  TemplateOptions chat_template = chat.options().chat_template;
  AddTemplateOptions(flags, chat_template);
  bool shows_figures = chat.options().shows_figures;
  flags.AddChoice("--figures", shows_figures, {{"on", true}, {"off", false}}, "");
  const std::string dashes = "--";
  CRIA_RETURN_IF_ERROR(flags.Read(std::vector{dashes + std::string(name), std::string(value)})
                           .transform_error([&](const Error& error) {
                             return Error(error.code(), error.message().substr(dashes.size()));
                           }));
  CRIA_RETURN_IF_ERROR(chat.SetSampler(sampler));
  CRIA_RETURN_IF_ERROR(chat.SetThinking(chat_template.thinking));
  chat.SetMaxTokens(max_tokens);
  chat.SetShowsFigures(shows_figures);
  chat.SetWhenFull(*when_full);
  return {};
}

}  // namespace cria::cli
