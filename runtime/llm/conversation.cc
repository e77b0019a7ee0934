#include "llm/conversation.h"

#include <utility>

namespace cria {

Result<StopReason> GenerateText(Session& session, Detokenizer& detokenizer, Sampler& sampler,
                                const GenerationOptions& options, const TextCallback& on_text) {
  const auto emit = [&](std::string_view text) {
    if (!text.empty()) on_text(text);
  };
  CRIA_ASSIGN_OR_RETURN(
      const StopReason reason,
      session.Generate(options, sampler, [&](int32_t id) { emit(detokenizer.Append(id)); }));
  emit(detokenizer.Flush());
  return reason;
}

Conversation::Conversation(Session& session, const Tokenizer& tokenizer,
                           ChatTemplateKind template_kind, std::string system_prompt)
    : session_(session),
      tokenizer_(tokenizer),
      template_kind_(template_kind),
      system_prompt_(std::move(system_prompt)) {
  Reset();
}

void Conversation::Reset() {
  messages_.clear();
  if (!system_prompt_.empty()) messages_.push_back({"system", system_prompt_});
}

Result<StopReason> Conversation::Reply(std::string_view user_text, const GenerationOptions& options,
                                       Sampler& sampler, const TextCallback& on_text) {
  messages_.push_back({"user", std::string(user_text)});
  std::string answer;
  const auto answer_message = [&]() -> Result<StopReason> {
    CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                          EncodeChat(tokenizer_, template_kind_, messages_,
                                     /*add_generation_prompt=*/true));
    CRIA_RETURN_IF_ERROR(session_.Prefill(tokens, options.cancel));
    Detokenizer detokenizer(tokenizer_);
    return GenerateText(session_, detokenizer, sampler, options, [&](std::string_view text) {
      answer += text;
      on_text(text);
    });
  };
  Result<StopReason> reason = answer_message();
  if (reason) {
    messages_.push_back({"assistant", std::move(answer)});
  } else {
    messages_.pop_back();
  }
  return reason;
}

}  // namespace cria
