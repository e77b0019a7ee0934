#include "cli/bench/draft_comparison.h"

#include <chrono>
#include <memory>
#include <utility>

#include "cli/parallel_sequences.h"
#include "core/numeric.h"
#include "llm/generator.h"
#include "llm/turn.h"

namespace cria::cli {

size_t DraftComparison::ContextTokens(const SpeedTest& test) {
  const size_t tokens = test.depth_tokens + test.generated_tokens;
  if (test.num_sequences == 1) return tokens;
  // What is generated last is not run, but a request reserves room for it.
  return test.num_sequences * DivideRoundingUp(tokens + 1, kKvPageTokens) * kKvPageTokens;
}

Status DraftComparison::Run(const SpeedTest& test, std::vector<double>& drafted_ns,
                            DraftFigures& figures) {
  const bool begins_with_drafts = drafted_ns.size() % 2 != 0;
  CRIA_ASSIGN_OR_RETURN(Outcome drafted, Generate(test, begins_with_drafts));
  CRIA_ASSIGN_OR_RETURN(Outcome undrafted, Generate(test, !begins_with_drafts));
  if (!begins_with_drafts) std::swap(drafted, undrafted);
  if (drafted.texts != undrafted.texts) {
    return Fail(ErrorCode::kInternal, "drafts have changed the text, which is a bug in cria");
  }
  drafted_ns.push_back(drafted.nanoseconds);
  figures.undrafted_ns.push_back(undrafted.nanoseconds);
  figures.drafted_tokens += drafted.drafted_tokens;
  figures.accepted_tokens += drafted.accepted_tokens;
  return {};
}

Result<DraftComparison::Outcome> DraftComparison::Generate(const SpeedTest& test,
                                                           bool with_drafts) {
  const size_t count = test.num_sequences;
  std::vector<std::unique_ptr<Session>> sessions(count);
  for (std::unique_ptr<Session>& session : sessions) {
    session = engine_.NewSession(with_drafts);
    if (test.depth_tokens == 0) continue;
    Turn turn(*session, {.max_tokens = 1, .cancel = stop_});
    CRIA_RETURN_IF_ERROR(turn.Prefill(text_.first(test.depth_tokens)));
  }
  Outcome outcome = {.texts = std::vector<Tokens>(count)};
  for (Tokens& text : outcome.texts) text.reserve(test.generated_tokens);
  const auto begin = std::chrono::steady_clock::now();
  CRIA_RETURN_IF_ERROR(
      RunSequences(count, [&](size_t i) { return Answer(test, *sessions[i], outcome.texts[i]); }));
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  outcome.nanoseconds = time.count();
  for (const std::unique_ptr<Session>& session : sessions) {
    outcome.drafted_tokens += session->stats().drafted_tokens;
    outcome.accepted_tokens += session->stats().accepted_tokens;
  }
  return outcome;
}

Status DraftComparison::Answer(const SpeedTest& test, Session& session, Tokens& text) {
  const GenerationOptions options = {.max_tokens = test.generated_tokens, .cancel = stop_};
  Turn turn(session, {.max_tokens = options.max_tokens, .cancel = stop_});
  CRIA_ASSIGN_OR_RETURN(Sampler sampler,
                        Sampler::Create({.temperature = 0.0f}, session.vocab_size()));
  CRIA_RETURN_IF_ERROR(turn.Prefill(text_.first(test.depth_tokens + 1)));
  const Result<StopReason> reason =
      cria::Generate(turn, options, sampler, [&text](const GeneratedToken& token) {
        text.push_back(token.id);
        return true;
      });
  if (!reason) return std::unexpected(reason.error());
  if (*reason != StopReason::kCancelled) return {};
  return Fail(ErrorCode::kCancelled, "stopped while generating");
}

}  // namespace cria::cli
