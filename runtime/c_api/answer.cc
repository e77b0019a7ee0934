#include "c_api/answer.h"

#include <algorithm>
#include <cstddef>

#include "c_api/failure.h"
#include "c_api/versioned_struct.h"

namespace cria::c_api {

// The first version had no drafts.
template <>
inline constexpr size_t kFirstVersionBytes<cria_result> = offsetof(cria_result, draft_gain);

namespace {

static_assert(sizeof(cria_callbacks) == offsetof(cria_callbacks, data) + sizeof(void*));
static_assert(sizeof(cria_token) == offsetof(cria_token, index) + sizeof(uint32_t));
static_assert(sizeof(cria_result) == offsetof(cria_result, accepted_tokens) + sizeof(uint32_t));
static_assert(kFirstVersionBytes<cria_result> ==
              offsetof(cria_result, stop_reason) + sizeof(int32_t));

int32_t ToStopReason(StopReason reason) {
  switch (reason) {
    case StopReason::kStopToken:
      return CRIA_STOP_END;
    case StopReason::kMaxTokens:
      return CRIA_STOP_MAX_TOKENS;
    case StopReason::kContextFull:
      return CRIA_STOP_CONTEXT_FULL;
    case StopReason::kStopString:
      return CRIA_STOP_STRING;
    case StopReason::kCancelled:
      break;
  }
  return CRIA_STOP_CANCELLED;
}

double PerSecond(size_t count, SessionStats::Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  return seconds > 0.0 ? static_cast<double>(count) / seconds : 0.0;
}

}  // namespace

Result<cria_callbacks> ReadCallbacks(const cria_callbacks* callbacks) {
  return ReadStruct(callbacks, cria_callbacks CRIA_CALLBACKS_INIT, "cria_callbacks");
}

Status CheckResult(const cria_result* result) {
  if (result == nullptr) return {};
  return CheckStructSize(result->struct_size, kFirstVersionBytes<cria_result>, "cria_result");
}

Answer::Answer(LoadedModel& model, Session& session, const cria_callbacks& callbacks,
               const OfChat* chat)
    : model_(model),
      session_(session),
      callbacks_(callbacks),
      chat_(chat),
      cancels_at_begin_(model.cancels) {
  session_.ResetStats();
}

GenerationOptions Answer::Options(Generation* generation, Constraint* constraint) {
  GenerationOptions options = {
      .stop_token_ids = model_.engine->file().stop_token_ids(),
      .constraint = constraint,
      .cancel = &cancel_,
      .log_probabilities = callbacks_.on_token != nullptr,
      .on_prompt = [this](size_t done, size_t total) { return TakeProgress(done, total); },
      .on_token_text = [this](const GeneratedToken& token,
                              std::string_view text) { TakeToken(token, text); }};
  if (generation != nullptr) {
    options.max_tokens = generation->max_tokens;
    options.stop_strings = &generation->stop_strings;
    // The most that the detokenizer returns at once, where every byte may become a U+FFFD, or that
    // is held back.
    text_.reserve(std::max(3 * (model_.engine->tokenizer().longest_piece_bytes() + kMaxUtf8Bytes),
                           generation->stop_strings.longest_bytes()));
  }
  return options;
}

// Called after everything that is told to the caller, who may have cancelled the call meanwhile.
bool Answer::GoesOn() {
  const bool is_cancelled = model_.cancels != cancels_at_begin_ ||
                            (chat_ != nullptr && chat_->cancel.load(std::memory_order_relaxed));
  if (is_cancelled || is_stopped_) cancel_ = true;
  return !cancel_;
}

bool Answer::TakeProgress(size_t done_tokens, size_t total_tokens) {
  if (callbacks_.on_prompt != nullptr &&
      callbacks_.on_prompt(static_cast<uint32_t>(done_tokens), static_cast<uint32_t>(total_tokens),
                           callbacks_.data) != 0) {
    is_stopped_ = true;
  }
  return GoesOn();
}

void Answer::TakeToken(const GeneratedToken& token, std::string_view text) {
  if (callbacks_.on_token != nullptr && !is_stopped_) {
    text_ = text;
    const cria_token told = {.struct_size = sizeof(cria_token),
                             .text = text_.c_str(),
                             .text_bytes = text_.size(),
                             .log_probability = token.log_probability,
                             .id = token.id,
                             .index = num_tokens_};
    is_stopped_ = callbacks_.on_token(&told, callbacks_.data) != 0;
  }
  ++num_tokens_;
  GoesOn();
}

void Answer::TakeText(std::string_view text) {
  if (hears_no_more_) return;
  if (first_text_seconds_ == 0.0) first_text_seconds_ = SecondsSinceBegin();
  if (chat_ != nullptr) {
    chat_->context_used = static_cast<uint32_t>(session_.tokens().size());
  }
  if (callbacks_.on_text == nullptr) return;
  text_ = text;
  if (callbacks_.on_text(text_.c_str(), text_.size(), callbacks_.data) != 0) {
    hears_no_more_ = true;
    is_stopped_ = true;
  }
  GoesOn();
}

Status Answer::Finish(StopReason reason, cria_result* result) {
  const auto count = [](size_t number) { return static_cast<uint32_t>(number); };
  const uint32_t used_tokens = count(session_.tokens().size());
  if (chat_ != nullptr) chat_->context_used = used_tokens;
  if (result == nullptr) return {};
  const SessionStats& stats = session_.stats();
  return WriteStruct<cria_result>(
      {.struct_size = sizeof(cria_result),
       .first_text_seconds = first_text_seconds_,
       .total_seconds = SecondsSinceBegin(),
       .prompt_tokens_per_second = PerSecond(stats.prompt_tokens, stats.prompt_time),
       .generated_tokens_per_second = PerSecond(stats.decoded_tokens, stats.decode_time),
       .prompt_tokens = count(stats.prompt_tokens),
       .reused_tokens = count(stats.reused_tokens),
       .generated_tokens = count(stats.generated_tokens),
       .dropped_tokens = count(stats.dropped_tokens),
       .context_used_tokens = used_tokens,
       .stop_reason = is_stopped_ ? CRIA_STOP_CANCELLED : ToStopReason(reason),
       .draft_gain = stats.draft_gain(),
       .drafted_tokens = count(stats.drafted_tokens),
       .accepted_tokens = count(stats.accepted_tokens)},
      result, "cria_result");
}

double Answer::SecondsSinceBegin() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

}  // namespace cria::c_api
