#include "c_api/answer.h"

#include <cstddef>
#include <format>

#include "c_api/failure.h"
#include "c_api/versioned_struct.h"

namespace cria::c_api {
namespace {

static_assert(sizeof(cria_generation_options) ==
              offsetof(cria_generation_options, parse_special) + sizeof(int32_t));
static_assert(sizeof(cria_result) == offsetof(cria_result, stop_reason) + sizeof(int32_t));

int32_t ToStopReason(StopReason reason) {
  switch (reason) {
    case StopReason::kStopToken:
    case StopReason::kStopString:
      return CRIA_STOP_END;
    case StopReason::kMaxTokens:
      return CRIA_STOP_MAX_TOKENS;
    case StopReason::kContextFull:
      return CRIA_STOP_CONTEXT_FULL;
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

Result<cria_generation_options> ReadGenerationOptions(const cria_generation_options* options) {
  CRIA_ASSIGN_OR_RETURN(const cria_generation_options known,
                        ReadStruct(options, cria_generation_options CRIA_GENERATION_OPTIONS_INIT,
                                   "cria_generation_options"));
  if (known.when_full != CRIA_WHEN_FULL_STOP && known.when_full != CRIA_WHEN_FULL_SHIFT) {
    return Fail(
        ErrorCode::kUsage,
        std::format("when_full is {}, which is not one of CRIA_WHEN_FULL_...", known.when_full));
  }
  return known;
}

WhenFull WhenFullOf(const cria_generation_options& options) {
  return options.when_full == CRIA_WHEN_FULL_SHIFT ? WhenFull::kShift : WhenFull::kStop;
}

Result<Sampler> MakeSampler(const LoadedModel& model, const cria_generation_options& options) {
  return Sampler::Create({.repeat_penalty = options.repeat_penalty,
                          .repeat_last_n = options.repeat_last_n,
                          .top_k = options.top_k,
                          .top_p = options.top_p,
                          .min_p = options.min_p,
                          .temperature = options.temperature,
                          .seed = options.seed},
                         model.engine->decoder().vocab_size());
}

Status CheckResult(const cria_result* result) {
  if (result == nullptr) return {};
  return CheckStructSize(result->struct_size, kFirstVersionBytes<cria_result>, "cria_result");
}

Answer::Answer(LoadedModel& model, cria_text_callback on_text, void* data,
               std::atomic<uint32_t>* context_used)
    : model_(model), on_text_(on_text), data_(data), context_used_(context_used) {
  // The most that the detokenizer returns at once: every byte may become a U+FFFD.
  text_.reserve(3 * (model.engine->tokenizer().longest_piece_bytes() + kMaxUtf8Bytes));
  model.engine->session().ResetStats();
}

GenerationOptions Answer::Options(uint32_t max_tokens) const {
  return {.max_tokens = max_tokens,
          .stop_token_ids = model_.engine->file().stop_token_ids(),
          .cancel = &model_.cancel};
}

void Answer::Take(std::string_view text) {
  if (is_stopped_) return;
  if (first_text_seconds_ == 0.0) first_text_seconds_ = SecondsSinceBegin();
  if (context_used_ != nullptr) {
    *context_used_ = static_cast<uint32_t>(model_.engine->session().tokens().size());
  }
  if (on_text_ == nullptr) return;
  text_ = text;
  if (on_text_(text_.c_str(), text_.size(), data_) == 0) return;
  is_stopped_ = true;
  model_.cancel = true;
}

Status Answer::Finish(StopReason reason, cria_result* result) {
  const Session& session = model_.engine->session();
  const auto count = [](size_t number) { return static_cast<uint32_t>(number); };
  const uint32_t used_tokens = count(session.tokens().size());
  if (context_used_ != nullptr) *context_used_ = used_tokens;
  if (result == nullptr) return {};
  const SessionStats& stats = session.stats();
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
       .stop_reason = is_stopped_ ? CRIA_STOP_CANCELLED : ToStopReason(reason)},
      result, "cria_result");
}

double Answer::SecondsSinceBegin() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

}  // namespace cria::c_api
