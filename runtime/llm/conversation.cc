#include "llm/conversation.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cria {
namespace {

size_t CommonBeginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string TextOf(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  Detokenizer detokenizer(tokenizer);
  std::string text;
  for (const int32_t token : tokens) text += detokenizer.Append(token);
  text += detokenizer.Flush();
  return text;
}

}  // namespace

Conversation::Conversation(Session& session, const Tokenizer& tokenizer,
                           const ChatTemplate& chat_template, std::string system_prompt,
                           WhenFull when_full)
    : session_(session),
      tokenizer_(tokenizer),
      chat_template_(chat_template),
      system_prompt_(std::move(system_prompt)),
      when_full_(when_full) {
  Reset();
}

void Conversation::Reset() {
  messages_.clear();
  if (!system_prompt_.empty()) messages_.push_back({"system", system_prompt_});
  has_forgotten_ = false;
}

Result<StopReason> Conversation::Reply(std::string_view user_text, const GenerationOptions& options,
                                       Sampler& sampler, const TextCallback& on_text) {
  messages_.push_back({"user", std::string(user_text)});
  reserve_ = std::max<size_t>(session_.context_tokens() / 4, 1);
  if (options.max_tokens != 0) reserve_ = std::min(reserve_, options.max_tokens);
  cut_ = Cut::kNothing;
  GenerationOptions generation = options;
  if (when_full_ == WhenFull::kShift) {
    generation.make_room = [this, &options] { return MakeRoomInAnswer(options.cancel); };
  }
  std::string answer;
  const auto answer_message = [&]() -> Result<StopReason> {
    CRIA_RETURN_IF_ERROR(ReadQuestion(options.cancel));
    Detokenizer detokenizer(tokenizer_);
    return GenerateText(session_, detokenizer, sampler, generation, [&](std::string_view text) {
      answer += text;
      on_text(text);
    });
  };
  Result<StopReason> reason = answer_message();
  if (reason) {
    if (cut_ == Cut::kAnswer) {
      answer = TextOf(tokenizer_, session_.tokens().subspan(prompt_.size()));
    }
    messages_.push_back({"assistant", std::move(answer)});
  } else {
    messages_.pop_back();
  }
  return reason;
}

// Rendering fails beyond this number. With kShift, the history may be longer than the context,
// since the oldest turns are left out; each of its bytes becomes at most three tokens, by
// normalization.
size_t Conversation::MaxRenderedTokens() const {
  const size_t context = session_.context_tokens();
  if (when_full_ != WhenFull::kShift) return context;
  constexpr size_t kMaxContexts = 4;
  constexpr size_t kMaxTokensOfByte = 3;
  size_t history_bytes = 0;
  for (const ChatMessage& message : std::span(messages_).first(messages_.size() - 1)) {
    history_bytes += message.content.size();
  }
  return kMaxContexts * context + kMaxTokensOfByte * history_bytes;
}

Result<Conversation::Rendering> Conversation::Render(size_t left_out) const {
  std::vector<ChatMessage> messages = messages_;
  const auto oldest = messages.begin() + static_cast<ptrdiff_t>(num_system_messages());
  messages.erase(oldest, oldest + static_cast<ptrdiff_t>(2 * left_out));
  CRIA_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                        EncodeChat(tokenizer_, chat_template_, messages,
                                   /*add_generation_prompt=*/true, MaxRenderedTokens()));
  return Rendering{left_out, std::move(tokens)};
}

Result<Conversation::Rendering> Conversation::RenderWithin(size_t max_tokens) const {
  size_t too_few = 0;
  CRIA_ASSIGN_OR_RETURN(Rendering enough, Render(OldTurns()));
  while (enough.left_out > too_few + 1) {
    CRIA_ASSIGN_OR_RETURN(Rendering middle, Render(std::midpoint(too_few, enough.left_out)));
    if (middle.tokens.size() <= max_tokens) {
      enough = std::move(middle);
    } else {
      too_few = middle.left_out;
    }
  }
  return enough;
}

Status Conversation::ReadQuestion(const std::atomic<bool>* cancel) {
  CRIA_ASSIGN_OR_RETURN(Rendering rendering, Render(0));
  prompt_ = rendering.tokens;
  const size_t context = session_.context_tokens();
  if (when_full_ == WhenFull::kShift && OldTurns() > 0 &&
      rendering.tokens.size() + reserve_ > context) {
    CRIA_ASSIGN_OR_RETURN(rendering, RenderWithin(context - reserve_));
    CRIA_RETURN_IF_ERROR(DropLeftOut(rendering.tokens));
  }
  CRIA_RETURN_IF_ERROR(session_.Prefill(rendering.tokens, cancel));
  Forget(std::move(rendering));
  return {};
}

Status Conversation::MakeRoomInAnswer(const std::atomic<bool>* cancel) {
  if (OldTurns() == 0) return CutTurn();
  const auto answer = session_.tokens().subspan(prompt_.size());
  const size_t wanted = reserve_ + answer.size();
  const size_t context = session_.context_tokens();
  CRIA_ASSIGN_OR_RETURN(Rendering shorter, RenderWithin(context - std::min(wanted, context)));
  CRIA_ASSIGN_OR_RETURN(const bool dropped, DropLeftOut(shorter.tokens));
  if (!dropped) {
    std::vector<int32_t> tokens = shorter.tokens;
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    CRIA_RETURN_IF_ERROR(session_.Prefill(tokens, cancel));
  }
  Forget(std::move(shorter));
  return {};
}

// Makes room if the context has only the system prompt, one question and its answer.
Status Conversation::CutTurn() {
  const size_t context = session_.context_tokens();
  size_t keep = prompt_.size();
  if (context - keep >= reserve_) {
    if (cut_ == Cut::kNothing) cut_ = Cut::kAnswer;
  } else {
    // The part before the question: it is the same with an empty question.
    std::vector<ChatMessage> messages(
        messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(num_system_messages()));
    messages.push_back({"user", ""});
    CRIA_ASSIGN_OR_RETURN(
        const std::vector<int32_t> without_question,
        EncodeChat(tokenizer_, chat_template_, messages, /*add_generation_prompt=*/false));
    keep = CommonBeginning(prompt_, without_question);
    // The system prompt leaves too little room: the answer ends here.
    if (context - keep < reserve_) return {};
    prompt_.resize(keep);
    cut_ = Cut::kQuestion;
  }
  has_forgotten_ = true;
  return session_.DropHalfBehind(keep);
}

// If `shorter` is the prompt without one range of tokens, and the session's context has that range,
// drops it there. Returns whether it did.
Result<bool> Conversation::DropLeftOut(std::span<const int32_t> shorter) {
  const auto prompt = std::span<const int32_t>(prompt_);
  if (shorter.size() >= prompt.size()) return false;
  const size_t first = CommonBeginning(prompt, shorter);
  const size_t count = prompt.size() - shorter.size();
  const auto held = session_.tokens();
  const bool is_one_stretch =
      std::ranges::equal(prompt.subspan(first + count), shorter.subspan(first));
  if (!is_one_stretch || CommonBeginning(prompt, held) < first + count) return false;
  CRIA_RETURN_IF_ERROR(session_.Drop(first, count));
  return true;
}

void Conversation::Forget(Rendering shorter) {
  const auto oldest = messages_.begin() + static_cast<ptrdiff_t>(num_system_messages());
  messages_.erase(oldest, oldest + static_cast<ptrdiff_t>(2 * shorter.left_out));
  has_forgotten_ = has_forgotten_ || shorter.left_out > 0;
  prompt_ = std::move(shorter.tokens);
}

}  // namespace cria
