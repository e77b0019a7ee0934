#include "server/api/answer_job.h"

#include <optional>
#include <utility>

#include "server/answers/answer_run.h"
#include "server/answers/chat_prompt.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

void TellChangedBeginning(Exchange& exchange) {
  ApiState& state = exchange.state;
  if (!state.options.on_changed_beginning || state.has_told_change) return;
  const SequenceSlots::Repeats repeats = exchange.model().engine.scheduler().stats().repeats;
  if (repeats.num_tokens == 0 || state.has_told_change.exchange(true)) return;
  state.options.on_changed_beginning(repeats.first);
}

// Generates the choices of one prompt; the first one has the number `first_index`. The session is
// free before the client learns the end of the last one: what it asks next finds its conversation
// there. Returns false if the client has gone away or the server ends.
bool RunChoices(Exchange& exchange, AnswerSetup setup, size_t first_index,
                std::optional<SessionPool::Lease>& lease, Response& response,
                AnswerWriter& writer) {
  const size_t num_choices = setup.options.num_choices;
  for (size_t i = 0; i < num_choices; ++i) {
    setup.seed = setup.options.sampler.seed + i;
    AnswerRun run(setup, writer);
    writer.BeginChoice(first_index + i);
    AnswerEnd end = run.Run();
    end.repeats_prompt = i > 0;
    exchange.model().metrics.Add(end);
    TellChangedBeginning(exchange);
    if (end.reason == FinishReason::kCancelled) {
      // A client that is still there learns why.
      if (!response.is_gone() && exchange.state.work.ends()) {
        response.Fail({503, "the server is shutting down", "", "shutting_down"});
      }
      return false;
    }
    if (i + 1 == num_choices) lease.reset();
    writer.EndChoice(end);
  }
  return true;
}

// What all answers begin with. `prompt` and `options` must outlive it.
AnswerSetup SetupOf(const ServedModel& model, const SessionPool::Lease& lease,
                    std::span<const int32_t> prompt, const AnswerOptions& options,
                    bool may_be_constrained, const Response& response) {
  return {.tokenizer = model.engine.tokenizer(),
          .stop_token_ids = model.engine.file().stop_token_ids(),
          .session = lease.session(),
          .constraint = may_be_constrained ? lease.constraint() : nullptr,
          .cancel = &response.gone(),
          .prompt = prompt,
          .options = options};
}

double PerSecond(size_t count, double milliseconds) {
  return milliseconds > 0.0 ? static_cast<double>(count) * 1e3 / milliseconds : 0.0;
}

}  // namespace

void AnswerChat(Exchange& exchange, ChatRequest request, Response& response, AnswerWriter& writer) {
  ServedModel& model = exchange.model();
  const AnswerOptions options = std::move(request.options);
  ToolUse tools = std::move(request.tools);
  // The template needs nothing else of them.
  request.tools = {.definitions = std::exchange(tools.definitions, {})};
  const ChatPrompt prompt = MakeChatPrompt(model.engine, model.call_style, std::move(request));
  if (prompt.has_channels && options.reasoning_budget) {
    RefuseField("reasoning_budget", "is not supported: this model's reasoning is a channel",
                "unsupported_parameter");
  }
  response.EndTurn();
  std::optional<SessionPool::Lease> lease(model.sessions.Take(prompt.tokens));
  const bool has_shape = options.shape.kind != AnswerShape::Kind::kAny;
  AnswerSetup setup =
      SetupOf(model, *lease, prompt.tokens, options, has_shape || tools.may_call(), response);
  setup.tools = tools.may_call() ? &tools : nullptr;
  setup.format = prompt.format.get();
  setup.tags = prompt.tags;
  setup.begins_in_reasoning = prompt.begins_in_reasoning;
  setup.may_reason = prompt.may_reason;
  setup.has_channels = prompt.has_channels;
  if (RunChoices(exchange, setup, 0, lease, response, writer)) writer.Finish();
}

void AnswerTexts(Exchange& exchange, const std::vector<TextPrompt>& prompts,
                 const AnswerOptions& options, Response& response, AnswerWriter& writer) {
  ServedModel& model = exchange.model();
  const bool has_shape = options.shape.kind != AnswerShape::Kind::kAny;
  response.EndTurn();
  size_t index = 0;
  for (const TextPrompt& prompt : prompts) {
    std::optional<SessionPool::Lease> lease(model.sessions.Take(prompt.tokens));
    AnswerSetup setup = SetupOf(model, *lease, prompt.tokens, options, has_shape, response);
    setup.at_text_start = prompt.at_text_start;
    if (!prompt.stop_token_ids.empty()) setup.stop_token_ids = prompt.stop_token_ids;
    if (!RunChoices(exchange, setup, index, lease, response, writer)) return;
    index += options.num_choices;
  }
  writer.Finish();
}

void AddUsage(AnswerEnd& sum, const AnswerEnd& end) {
  if (!end.repeats_prompt) {
    sum.prompt_tokens += end.prompt_tokens;
    sum.cached_tokens += end.cached_tokens;
    sum.prompt_time += end.prompt_time;
  }
  sum.completion_tokens += end.completion_tokens;
  sum.reasoning_tokens += end.reasoning_tokens;
  sum.completion_time += end.completion_time;
  sum.drafted_tokens += end.drafted_tokens;
  sum.accepted_tokens += end.accepted_tokens;
}

Json UsageAndTimings(const AnswerEnd& end) {
  Json usage = {{"prompt_tokens", end.prompt_tokens},
                {"completion_tokens", end.completion_tokens},
                {"total_tokens", end.prompt_tokens + end.completion_tokens},
                {"prompt_tokens_details", {{"cached_tokens", end.cached_tokens}}},
                {"completion_tokens_details", {{"reasoning_tokens", end.reasoning_tokens}}}};
  return {{"usage", std::move(usage)}, {"timings", TimingsOf(end)}};
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

}  // namespace cria::server
