#include "serve/api/answer_job.h"

#include <optional>
#include <utility>

#include "serve/api/answer_run.h"
#include "serve/api/chat_prompt.h"
#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

// Generates one choice. If it is the last one, the session is free before the client learns the
// end: what it asks next finds its conversation there. Returns false if nobody listens any more.
bool RunChoice(ApiState& state, const AnswerSetup& setup, size_t index, bool is_last,
               std::optional<SessionPool::Lease>& lease, AnswerWriter& writer) {
  AnswerRun run(setup, writer);
  writer.BeginChoice(index);
  const AnswerEnd end = run.Run();
  state.metrics.Add(end);
  if (end.reason == FinishReason::kCancelled) return false;
  if (is_last) lease.reset();
  writer.EndChoice(end);
  return true;
}

// Whoever listens learns why, if it is the server that ends.
void EndCancelled(ApiState& state, Response& response) {
  if (response.is_gone() || !state.work.ends()) return;
  response.Fail({503, "the server is shutting down", "", "shutting_down"});
}

double PerSecond(size_t count, double milliseconds) {
  return milliseconds > 0.0 ? static_cast<double>(count) * 1e3 / milliseconds : 0.0;
}

}  // namespace

void AnswerChat(ApiState& state, ChatRequest request, Response& response, AnswerWriter& writer) {
  const AnswerOptions options = request.options;
  const ToolUse tools = request.tools;
  const ChatPrompt prompt = MakeChatPrompt(state.engine, std::move(request));
  std::optional<SessionPool::Lease> lease(state.sessions.Take(prompt.tokens));
  Constraint* const constraint = options.shape.kind != AnswerShape::Kind::kAny || tools.may_call()
                                     ? lease->constraint()
                                     : nullptr;
  for (size_t i = 0; i < options.num_choices; ++i) {
    const AnswerSetup setup = {.tokenizer = state.engine.tokenizer(),
                               .stop_token_ids = state.engine.file().stop_token_ids(),
                               .session = lease->session(),
                               .constraint = constraint,
                               .cancel = &response.gone(),
                               .prompt = prompt.tokens,
                               .options = options,
                               .seed = options.sampler.seed + i,
                               .tools = tools.may_call() ? &tools : nullptr,
                               .format = prompt.format.get(),
                               .tags = prompt.tags,
                               .begins_in_reasoning = prompt.begins_in_reasoning,
                               .may_reason = prompt.may_reason};
    const bool is_last = i + 1 == options.num_choices;
    if (!RunChoice(state, setup, i, is_last, lease, writer)) return EndCancelled(state, response);
  }
  writer.Finish();
}

void AnswerTexts(ApiState& state, const std::vector<TextPrompt>& prompts,
                 const AnswerOptions& options, Response& response, AnswerWriter& writer) {
  size_t index = 0;
  for (const TextPrompt& prompt : prompts) {
    std::optional<SessionPool::Lease> lease(state.sessions.Take(prompt.tokens));
    Constraint* const constraint =
        options.shape.kind != AnswerShape::Kind::kAny ? lease->constraint() : nullptr;
    for (size_t i = 0; i < options.num_choices; ++i) {
      const AnswerSetup setup = {.tokenizer = state.engine.tokenizer(),
                                 .stop_token_ids = state.engine.file().stop_token_ids(),
                                 .session = lease->session(),
                                 .constraint = constraint,
                                 .cancel = &response.gone(),
                                 .prompt = prompt.tokens,
                                 .at_text_start = prompt.at_text_start,
                                 .options = options,
                                 .seed = options.sampler.seed + i};
      const bool is_last = i + 1 == options.num_choices;
      if (!RunChoice(state, setup, index++, is_last, lease, writer)) {
        return EndCancelled(state, response);
      }
    }
  }
  writer.Finish();
}

void AddUsage(AnswerEnd& sum, const AnswerEnd& end) {
  sum.prompt_tokens += end.prompt_tokens;
  sum.cached_tokens += end.cached_tokens;
  sum.completion_tokens += end.completion_tokens;
  sum.prompt_time += end.prompt_time;
  sum.completion_time += end.completion_time;
  sum.drafted_tokens += end.drafted_tokens;
  sum.accepted_tokens += end.accepted_tokens;
}

Json UsageOf(const AnswerEnd& end) {
  return {{"prompt_tokens", end.prompt_tokens},
          {"completion_tokens", end.completion_tokens},
          {"total_tokens", end.prompt_tokens + end.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", end.cached_tokens}}}};
}

Json TimingsOf(const AnswerEnd& end) {
  const double prompt_ms = Milliseconds(end.prompt_time).count();
  const double predicted_ms = Milliseconds(end.completion_time).count();
  const size_t prompt_tokens = end.prompt_tokens - end.cached_tokens;
  Json timings = {{"cache_n", end.cached_tokens},
                  {"prompt_n", prompt_tokens},
                  {"prompt_ms", prompt_ms},
                  {"prompt_per_second", PerSecond(prompt_tokens, prompt_ms)},
                  {"predicted_n", end.completion_tokens},
                  {"predicted_ms", predicted_ms},
                  {"predicted_per_second", PerSecond(end.completion_tokens, predicted_ms)}};
  if (end.drafted_tokens > 0) {
    timings["draft_n"] = end.drafted_tokens;
    timings["draft_n_accepted"] = end.accepted_tokens;
  }
  return timings;
}

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kCancelled:
      break;
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
  }
  return "stop";
}

}  // namespace cria::serve
