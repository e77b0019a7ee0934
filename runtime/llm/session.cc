#include "llm/session.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cria {
namespace {

size_t ShareOf(const TokenModel& model) {
  if (model.max_sequences() == 1) return model.context_tokens();
  const size_t share = model.cache_tokens() / kKvPageTokens / model.max_sequences() * kKvPageTokens;
  return std::min(share, model.context_tokens());
}

}  // namespace

Session::Session(Scheduler& scheduler, std::unique_ptr<Drafting> drafting)
    : scheduler_(scheduler),
      share_tokens_(ShareOf(scheduler.model())),
      drafting_(std::move(drafting)),
      draft_costs_(1 + (drafting_ == nullptr ? 0 : scheduler.max_drafts())) {
  tokens_.reserve(scheduler.model().context_tokens());
}

Session::~Session() { scheduler_.Leave(seat_); }

void Session::EndTurn() {
  turn_ = nullptr;
  if (std::exchange(has_sequence_, false)) scheduler_.End(seat_);
}

void Session::Clear() {
  ForgetDrafts();
  tokens_.clear();
  cached_ = 0;
  ends_forced_ = false;
}

void Session::ForgetDrafts() {
  if (drafting_ != nullptr) drafting_->Forget();
}

SessionStats::Duration Session::OneForward() const {
  const double seconds = draft_costs_.front();
  if (!std::isfinite(seconds)) return {};
  return std::chrono::duration_cast<SessionStats::Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace cria
