#include "llm/conversation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "llm/constraint.h"

namespace cria {
namespace {

size_t CommonBeginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

constexpr std::string_view kAnswerRole = "assistant";

bool IsAnswer(const ChatMessage& message) { return message.role == kAnswerRole; }
bool IsUser(const ChatMessage& message) { return message.role == "user"; }
bool IsSystem(const ChatMessage& message) {
  return message.role == "system" || message.role == "developer";
}

std::string TextOf(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
                   bool at_text_start) {
  Detokenizer detokenizer(tokenizer, {.at_text_start = at_text_start});
  std::string text;
  for (const int32_t token : tokens) text += detokenizer.Append(token);
  text += detokenizer.Flush();
  return text;
}

}  // namespace

Conversation::Conversation(Session& session, const Tokenizer& tokenizer,
                           const ChatTemplate& chat_template, std::string system_prompt,
                           WhenFull when_full)
    : Conversation(session, tokenizer, chat_template, std::vector<ChatMessage>(), when_full) {
  if (system_prompt.empty()) return;
  messages_.push_back({"system", std::move(system_prompt)});
  num_system_messages_ = 1;
}

Conversation::Conversation(Session& session, const Tokenizer& tokenizer,
                           const ChatTemplate& chat_template, std::vector<ChatMessage> messages,
                           WhenFull when_full)
    : session_(session),
      tokenizer_(tokenizer),
      chat_template_(chat_template),
      when_full_(when_full),
      messages_(std::move(messages)),
      begin_time_(chat_template.options().clock()) {
  while (num_system_messages_ < messages_.size() && IsSystem(messages_[num_system_messages_])) {
    ++num_system_messages_;
  }
}

void Conversation::Reset() {
  messages_.resize(num_system_messages_);
  has_forgotten_ = false;
}

Result<StopReason> Conversation::Reply(std::string_view user_text, const GenerationOptions& options,
                                       Sampler& sampler, const TextCallback& on_text) {
  return ReplyTo({"user", std::string(user_text)}, options, sampler, on_text);
}

Result<StopReason> Conversation::ReplyTo(ChatMessage message, const GenerationOptions& options,
                                         Sampler& sampler, const TextCallback& on_text) {
  messages_.push_back(std::move(message));
  Result<StopReason> reason = Answer(options, sampler, on_text);
  if (!reason) messages_.pop_back();
  return reason;
}

Result<StopReason> Conversation::Regenerate(const GenerationOptions& options, Sampler& sampler,
                                            const TextCallback& on_text) {
  if (!has_turns() || !IsAnswer(messages_.back())) {
    return Fail(ErrorCode::kUsage, "the last message is not an answer that could be replaced");
  }
  ChatMessage old = std::move(messages_.back());
  messages_.pop_back();
  Result<StopReason> reason = Answer(options, sampler, on_text);
  if (!reason) messages_.push_back(std::move(old));
  return reason;
}

Result<StopReason> Conversation::Answer(const GenerationOptions& options, Sampler& sampler,
                                        const TextCallback& on_text) {
  if (!has_turns()) return Fail(ErrorCode::kUsage, "there is no message to answer");
  if (IsAnswer(messages_.back())) {
    return Fail(ErrorCode::kUsage, "the last message is an answer itself, of the role assistant");
  }
  if (std::ranges::none_of(messages_, IsAnswer)) begin_time_ = chat_template_.options().clock();
  cut_ = Cut::kNothing;
  has_just_forgotten_ = false;
  GenerationOptions generation = options;
  if (MakesRoomInAnswer(options)) {
    generation.make_room = [this, &options](Turn& turn) {
      return MakeRoomInAnswer(turn, options.on_prompt);
    };
  }
  CRIA_ASSIGN_OR_RETURN(Rendering rendering, Render(0));
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
  messages_.push_back({std::string(kAnswerRole), std::move(answer)});
  return reason;
}

Status Conversation::DropLastTurn() {
  if (!has_turns()) return Fail(ErrorCode::kUsage, "there is no message that could be dropped");
  messages_.resize(TurnBegin(OldTurns()));
  return {};
}

Result<LogitRows> Conversation::Logits(Turn& turn, const PromptCallback& on_prompt) {
  if (!has_turns()) return Fail(ErrorCode::kUsage, "there is no message to read");
  if (IsAnswer(messages_.back())) {
    CRIA_ASSIGN_OR_RETURN(
        const std::vector<int32_t> tokens,
        Encode(messages_, /*add_generation_prompt=*/false, session_.context_tokens()));
    CRIA_RETURN_IF_ERROR(turn.Prefill(tokens, on_prompt));
  } else {
    CRIA_ASSIGN_OR_RETURN(Rendering rendering, Render(0));
    CRIA_RETURN_IF_ERROR(ReadQuestion(turn, /*max_tokens=*/0, on_prompt, std::move(rendering)));
  }
  return turn.Logits();
}

Status Conversation::SetVariables(std::string json) {
  CRIA_RETURN_IF_ERROR(CheckTemplateVariables(json));
  variables_ = std::move(json);
  return {};
}

size_t Conversation::NumTokensInContext() const {
  const auto tokens = Encode(messages_, /*add_generation_prompt=*/false);
  return tokens ? CommonBeginning(*tokens, session_.tokens()) : 0;
}

ConversationState Conversation::State() const {
  return {messages_, num_system_messages_, variables_, has_forgotten_, begin_time_};
}

Status Conversation::Restore(ConversationState state) {
  CRIA_RETURN_IF_ERROR(SetVariables(std::move(state.variables)));
  messages_ = std::move(state.messages);
  num_system_messages_ = state.num_system_messages;
  has_forgotten_ = state.has_forgotten;
  begin_time_ = state.begin_time;
  return {};
}

bool Conversation::BeginsTurn(size_t index) const {
  return index == num_system_messages_ ||
         (IsUser(messages_[index]) && !IsUser(messages_[index - 1]));
}

size_t Conversation::TurnBegin(size_t turn) const {
  size_t i = num_system_messages_;
  for (; i < messages_.size(); ++i) {
    if (BeginsTurn(i) && turn-- == 0) break;
  }
  return i;
}

size_t Conversation::OldTurns() const {
  size_t turns = 0;
  for (size_t i = num_system_messages_ + 1; i < messages_.size(); ++i)
    turns += BeginsTurn(i) ? 1 : 0;
  return turns;
}

std::vector<ChatMessage> Conversation::MessagesWithout(size_t left_out) const {
  std::vector<ChatMessage> rest(messages_.begin(),
                                messages_.begin() + static_cast<ptrdiff_t>(num_system_messages_));
  const auto begin = static_cast<ptrdiff_t>(TurnBegin(left_out));
  rest.insert(rest.end(), messages_.begin() + begin, messages_.end());
  return rest;
}

Result<std::vector<int32_t>> Conversation::Encode(std::span<const ChatMessage> messages,
                                                  bool add_generation_prompt,
                                                  size_t max_tokens) const {
  return chat_template_.Encode(tokenizer_, messages,
                               {.add_generation_prompt = add_generation_prompt,
                                .variables = variables_,
                                .time = begin_time_},
                               max_tokens);
}

TurnOptions Conversation::OptionsOfTurn(const GenerationOptions& options,
                                        std::span<const int32_t> prompt) const {
  TurnOptions turn = options.turn_options();
  if (when_full_ != WhenFull::kStop) {
    // A template may refuse an empty question; then any token may be dropped.
    turn.kept_tokens = TokensBeforeQuestion(prompt).value_or(0);
  }
  return turn;
}

// How many of the prompt's tokens are before the first question: they are the same with an empty
// question.
Result<size_t> Conversation::TokensBeforeQuestion(std::span<const int32_t> prompt) const {
  std::vector<ChatMessage> messages(
      messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(num_system_messages_));
  messages.push_back({messages_[num_system_messages_].role, ""});
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> without_question,
                        Encode(messages, /*add_generation_prompt=*/false));
  return CommonBeginning(prompt, without_question);
}

// Rendering fails beyond this number. Without kStop, the history may be longer than the context,
// since the oldest turns are left out; each of its bytes becomes at most three tokens, by
// normalization.
size_t Conversation::MaxRenderedTokens() const {
  const size_t context = session_.context_tokens();
  if (when_full_ == WhenFull::kStop) return context;
  constexpr size_t kMaxContexts = 4;
  constexpr size_t kMaxTokensOfByte = 3;
  size_t history_bytes = 0;
  for (const ChatMessage& message : std::span(messages_).first(messages_.size() - 1)) {
    history_bytes += message.content.size();
  }
  return kMaxContexts * context + kMaxTokensOfByte * history_bytes;
}

Result<Conversation::Rendering> Conversation::Render(size_t left_out) const {
  CRIA_ASSIGN_OR_RETURN(
      std::vector<int32_t> tokens,
      Encode(MessagesWithout(left_out), /*add_generation_prompt=*/true, MaxRenderedTokens()));
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

Status Conversation::ReadQuestion(Turn& turn, size_t max_tokens, const PromptCallback& on_prompt,
                                  Rendering rendering) {
  prompt_ = rendering.tokens;
  const size_t context = max_tokens == 0 ? session_.share_tokens() : session_.context_tokens();
  reserve_ = std::max<size_t>(context / 4, 1);
  if (max_tokens != 0) reserve_ = std::min(reserve_, max_tokens);
  if (when_full_ != WhenFull::kStop && OldTurns() > 0 &&
      rendering.tokens.size() + reserve_ > context) {
    CRIA_ASSIGN_OR_RETURN(rendering, RenderWithin(context - reserve_));
    CRIA_RETURN_IF_ERROR(DropLeftOut(turn, rendering.tokens));
  }
  CRIA_RETURN_IF_ERROR(turn.Prefill(rendering.tokens, on_prompt));
  Forget(std::move(rendering));
  return {};
}

// With kForget, a constraint leads to an end within the context, unless room can be made in it.
bool Conversation::MakesRoomInAnswer(const GenerationOptions& options) const {
  if (when_full_ == WhenFull::kForget) return OldTurns() > 0 && options.constraint == nullptr;
  return when_full_ == WhenFull::kShift;
}

Status Conversation::MakeRoomInAnswer(Turn& turn, const PromptCallback& on_prompt) {
  if (OldTurns() == 0) return CutTurn(turn);
  const auto answer = session_.tokens().subspan(prompt_.size());
  const size_t wanted = reserve_ + answer.size();
  const size_t context = turn.max_length();
  CRIA_ASSIGN_OR_RETURN(Rendering shorter, RenderWithin(context - std::min(wanted, context)));
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
    CRIA_ASSIGN_OR_RETURN(keep, TokensBeforeQuestion(prompt_));
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
  const auto oldest = messages_.begin() + static_cast<ptrdiff_t>(num_system_messages_);
  messages_.erase(oldest, messages_.begin() + static_cast<ptrdiff_t>(TurnBegin(shorter.left_out)));
  if (shorter.left_out > 0) has_forgotten_ = has_just_forgotten_ = true;
  prompt_ = std::move(shorter.tokens);
}

}  // namespace cria
