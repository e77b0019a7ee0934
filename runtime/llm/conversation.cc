#include "llm/conversation.h"

#include <algorithm>
#include <utility>

#include "llm/common_beginning.h"
#include "llm/constraint.h"

namespace cria {
namespace {

std::string TextOf(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
                   bool at_text_start) {
  Detokenizer detokenizer(tokenizer, {.at_text_start = at_text_start});
  std::string text;
  for (const int32_t token : tokens) text += detokenizer.Append(token);
  text += detokenizer.Flush();
  return text;
}

// With kForget, a constraint leads to an end within the context, unless room can be made in it.
bool MakesRoomInAnswer(WhenFull when_full, size_t old_turns, const GenerationOptions& options) {
  if (when_full == WhenFull::kForget) return old_turns > 0 && options.constraint == nullptr;
  return when_full == WhenFull::kShift;
}

std::vector<ChatMessage> SystemMessages(std::string prompt) {
  std::vector<ChatMessage> messages;
  if (!prompt.empty()) messages.push_back({"system", std::move(prompt)});
  return messages;
}

}  // namespace

Conversation::Conversation(Session& session, const Tokenizer& tokenizer,
                           const ChatTemplate& chat_template, std::string system_prompt,
                           WhenFull when_full)
    : Conversation(session, tokenizer, chat_template, SystemMessages(std::move(system_prompt)),
                   when_full) {}

Conversation::Conversation(Session& session, const Tokenizer& tokenizer,
                           const ChatTemplate& chat_template, std::vector<ChatMessage> messages,
                           WhenFull when_full)
    : session_(session),
      tokenizer_(tokenizer),
      history_(tokenizer, chat_template, std::move(messages)),
      when_full_(when_full) {}

void Conversation::Reset() {
  history_.DropTurns();
  has_forgotten_ = false;
}

Result<StopReason> Conversation::Reply(std::string_view user_text, const GenerationOptions& options,
                                       Sampler& sampler, const TextCallback& on_text) {
  return ReplyTo({"user", std::string(user_text)}, options, sampler, on_text);
}

Result<StopReason> Conversation::ReplyTo(ChatMessage message, const GenerationOptions& options,
                                         Sampler& sampler, const TextCallback& on_text) {
  history_.Add(std::move(message));
  Result<StopReason> reason = Answer(options, sampler, on_text);
  if (!reason) history_.TakeLast();
  return reason;
}

Result<StopReason> Conversation::Regenerate(const GenerationOptions& options, Sampler& sampler,
                                            const TextCallback& on_text) {
  if (!history_.has_turns() || !history_.ends_in_answer()) {
    return Fail(ErrorCode::kUsage, "the last message is not an answer that could be replaced");
  }
  ChatMessage old = history_.TakeLast();
  Result<StopReason> reason = Answer(options, sampler, on_text);
  if (!reason) history_.Add(std::move(old));
  return reason;
}

Result<StopReason> Conversation::Answer(const GenerationOptions& options, Sampler& sampler,
                                        const TextCallback& on_text) {
  if (!history_.has_turns()) return Fail(ErrorCode::kUsage, "there is no message to answer");
  if (history_.ends_in_answer()) {
    return Fail(ErrorCode::kUsage, "the last message is an answer itself, of the role assistant");
  }
  history_.BeginAnswer();
  cut_ = Cut::kNothing;
  has_just_forgotten_ = false;
  GenerationOptions generation = options;
  if (MakesRoomInAnswer(when_full_, history_.OldTurns(), options)) {
    generation.make_room = [this, &options](Turn& turn) {
      return MakeRoomInAnswer(turn, options.on_prompt);
    };
  }
  CRIA_ASSIGN_OR_RETURN(Rendering rendering, history_.Render(0, bound()));
  Turn turn(session_, OptionsOfTurn(options, rendering.tokens));
  CRIA_RETURN_IF_ERROR(
      ReadQuestion(turn, options.max_tokens, options.on_prompt, std::move(rendering)));
  std::string answer;
  if (generation.constraint != nullptr) generation.constraint->Restart();
  // A constraint is about all bytes of the tokens, the first space included.
  Detokenizer detokenizer(tokenizer_, {.at_text_start = generation.constraint == nullptr});
  CRIA_ASSIGN_OR_RETURN(
      const StopReason reason,
      GenerateText(turn, detokenizer, sampler, generation, [&](std::string_view text) {
        answer += text;
        on_text(text);
      }));
  if (cut_ == Cut::kAnswer) {
    answer = TextOf(tokenizer_, session_.tokens().subspan(prompt_.size()),
                    /*at_text_start=*/generation.constraint == nullptr);
    if (reason == StopReason::kStopString) {
      // The text of the tokens has the stop string again.
      options.stop_strings->Restart();
      answer.resize(options.stop_strings->Append(answer)[1].size());
    }
  }
  history_.Add({std::string(MessageHistory::kAnswerRole), std::move(answer)});
  return reason;
}

Status Conversation::DropLastTurn() {
  if (!history_.has_turns())
    return Fail(ErrorCode::kUsage, "there is no message that could be dropped");
  history_.DropLastTurn();
  return {};
}

Result<LogitRows> Conversation::Logits(Turn& turn, const PromptCallback& on_prompt) {
  if (!history_.has_turns()) return Fail(ErrorCode::kUsage, "there is no message to read");
  if (history_.ends_in_answer()) {
    CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                          history_.Encode(session_.context_tokens()));
    CRIA_RETURN_IF_ERROR(turn.Prefill(tokens, on_prompt));
  } else {
    CRIA_ASSIGN_OR_RETURN(Rendering rendering, history_.Render(0, bound()));
    CRIA_RETURN_IF_ERROR(ReadQuestion(turn, /*max_tokens=*/0, on_prompt, std::move(rendering)));
  }
  return turn.Logits();
}

Status Conversation::SetVariables(std::string json) {
  return history_.SetVariables(std::move(json));
}

size_t Conversation::NumTokensInContext() const {
  const auto tokens = history_.Encode();
  return tokens ? CommonBeginning(*tokens, session_.tokens()) : 0;
}

ConversationState Conversation::State() const {
  return {.messages = history_.messages(),
          .num_system_messages = history_.num_system_messages(),
          .variables = history_.variables(),
          .has_forgotten = has_forgotten_,
          .begin_time = history_.begin_time()};
}

Status Conversation::Restore(ConversationState state) {
  CRIA_RETURN_IF_ERROR(SetVariables(std::move(state.variables)));
  history_.Restore(std::move(state.messages), state.num_system_messages, state.begin_time);
  has_forgotten_ = state.has_forgotten;
  return {};
}

TurnOptions Conversation::OptionsOfTurn(const GenerationOptions& options,
                                        std::span<const int32_t> prompt) const {
  TurnOptions turn = options.turn_options();
  if (when_full_ != WhenFull::kStop) {
    // A template may refuse an empty question; then any token may be dropped.
    turn.kept_tokens = history_.TokensBeforeQuestion(prompt).value_or(0);
  }
  return turn;
}

Status Conversation::ReadQuestion(Turn& turn, size_t max_tokens, const PromptCallback& on_prompt,
                                  Rendering rendering) {
  prompt_ = rendering.tokens;
  const size_t context = max_tokens == 0 ? session_.share_tokens() : session_.context_tokens();
  reserve_ = std::max<size_t>(context / 4, 1);
  if (max_tokens != 0) reserve_ = std::min(reserve_, max_tokens);
  if (when_full_ != WhenFull::kStop && history_.OldTurns() > 0 &&
      rendering.tokens.size() + reserve_ > context) {
    CRIA_ASSIGN_OR_RETURN(rendering, history_.RenderWithin(context - reserve_, bound()));
    CRIA_RETURN_IF_ERROR(DropLeftOut(turn, rendering.tokens));
  }
  CRIA_RETURN_IF_ERROR(turn.Prefill(rendering.tokens, on_prompt));
  Forget(std::move(rendering));
  return {};
}

Status Conversation::MakeRoomInAnswer(Turn& turn, const PromptCallback& on_prompt) {
  if (history_.OldTurns() == 0) return CutTurn(turn);
  const auto answer = session_.tokens().subspan(prompt_.size());
  const size_t wanted = reserve_ + answer.size();
  const size_t context = turn.max_length();
  CRIA_ASSIGN_OR_RETURN(Rendering shorter,
                        history_.RenderWithin(context - std::min(wanted, context), bound()));
  CRIA_ASSIGN_OR_RETURN(const bool dropped, DropLeftOut(turn, shorter.tokens));
  if (!dropped) {
    std::vector<int32_t> tokens = shorter.tokens;
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    CRIA_RETURN_IF_ERROR(turn.Prefill(tokens, on_prompt));
  }
  Forget(std::move(shorter));
  return {};
}

// Makes room if the context has only the system prompt, one question and its answer.
Status Conversation::CutTurn(Turn& turn) {
  if (when_full_ == WhenFull::kForget) return {};  // The answer ends here.
  const size_t context = turn.max_length();
  size_t keep = prompt_.size();
  if (context - keep >= reserve_) {
    if (cut_ == Cut::kNothing) cut_ = Cut::kAnswer;
  } else {
    CRIA_ASSIGN_OR_RETURN(keep, history_.TokensBeforeQuestion(prompt_));
    // The system prompt leaves too little room: the answer ends here.
    if (context - keep < reserve_) return {};
    prompt_.resize(keep);
    cut_ = Cut::kQuestion;
  }
  has_forgotten_ = has_just_forgotten_ = true;
  return turn.DropHalfBehind(keep);
}

// If `shorter` is the prompt without one range of tokens, and the session's context has that range,
// drops it there. Returns whether it did.
Result<bool> Conversation::DropLeftOut(Turn& turn, std::span<const int32_t> shorter) {
  const auto prompt = std::span<const int32_t>(prompt_);
  if (shorter.size() >= prompt.size()) return false;
  const size_t first = CommonBeginning(prompt, shorter);
  const size_t count = prompt.size() - shorter.size();
  const auto held = session_.tokens();
  const bool is_one_stretch =
      std::ranges::equal(prompt.subspan(first + count), shorter.subspan(first));
  if (!is_one_stretch || CommonBeginning(prompt, held) < first + count) return false;
  CRIA_RETURN_IF_ERROR(turn.Drop(first, count));
  return true;
}

void Conversation::Forget(Rendering shorter) {
  history_.DropOldest(shorter.left_out);
  if (shorter.left_out > 0) has_forgotten_ = has_just_forgotten_ = true;
  prompt_ = std::move(shorter.tokens);
}

}  // namespace cria
