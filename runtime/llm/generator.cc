#include "llm/generator.h"

#include <algorithm>
#include <array>
#include <optional>

#include "llm/token_chooser.h"

namespace cria {
namespace {

// Why the text ends; nothing: it goes on.
using Ending = Result<std::optional<StopReason>>;

// One call of Generate.
class Generator {
 public:
  Generator(Turn& turn, const GenerationOptions& options, Sampler& sampler,
            const TokenCallback& on_token)
      : turn_(turn),
        options_(options),
        on_token_(on_token),
        chooser_(options, sampler),
        num_left_(options.max_tokens == 0 ? SIZE_MAX : options.max_tokens) {}

  Result<StopReason> Run();

 private:
  // Adds what one run of the model tells, and what the constraint gives no choice of before it.
  Ending AddNext();
  Ending AddForced();
  // Sets chosen_.
  Status Choose();
  // Hands out a token and appends it.
  Ending Add(const GeneratedToken& token, TokenOrigin origin);
  std::span<const int32_t> context() const { return turn_.session().tokens(); }
  // For how many more tokens there is room.
  size_t RoomForTokens() const;

  Turn& turn_;
  const GenerationOptions& options_;
  const TokenCallback& on_token_;
  TokenChooser chooser_;
  size_t num_left_;  // How many tokens may still be generated.
  // What was chosen of the last logits: drafts that were right, and the token behind them.
  std::array<ChosenToken, DraftOptions::kMaxTokens + 1> chosen_;
  size_t num_chosen_ = 0;
};

Result<StopReason> Generator::Run() {
  while (num_left_ > 0) {
    if (options_.is_cancelled()) return StopReason::kCancelled;
    const Ending ending = AddNext();
    if (!ending && ending.error().code() == ErrorCode::kCancelled) return StopReason::kCancelled;
    CRIA_RETURN_IF_ERROR(ending);
    if (*ending) return **ending;
  }
  return StopReason::kMaxTokens;
}

Ending Generator::AddNext() {
  CRIA_ASSIGN_OR_RETURN(const std::optional<StopReason> forced_end, AddForced());
  if (forced_end) return forced_end;
  CRIA_RETURN_IF_ERROR(Choose());
  for (size_t i = 0; i < num_chosen_; ++i, --num_left_) {
    if (i > 0 && options_.is_cancelled()) return StopReason::kCancelled;
    const ChosenToken& chosen = chosen_[i];
    if (chosen.is_forced) ++turn_.stats().forced_tokens;
    chooser_.Advance(chosen);
    // The first ones are drafts, which the cache has.
    const TokenOrigin origin = i + 1 < num_chosen_ ? TokenOrigin::kDraft : TokenOrigin::kChosen;
    CRIA_ASSIGN_OR_RETURN(const std::optional<StopReason> end, Add(chosen.token, origin));
    if (end) return end;
  }
  return std::nullopt;
}

Ending Generator::AddForced() {
  if (options_.constraint == nullptr || context().empty()) return std::nullopt;
  CRIA_RETURN_IF_ERROR(turn_.Hold());
  while (true) {
    CRIA_ASSIGN_OR_RETURN(const std::optional<int32_t> forced,
                          chooser_.FindForced(RoomForTokens()));
    if (!forced) return StopReason::kStopToken;
    if (*forced < 0) return std::nullopt;
    // Other sessions may go on meanwhile.
    turn_.ReleaseLogits();
    // What makes room may need all of the context in the cache.
    if (turn_.is_full() && options_.make_room) CRIA_RETURN_IF_ERROR(turn_.RunForced());
    --num_left_;
    ++turn_.stats().forced_tokens;
    CRIA_ASSIGN_OR_RETURN(const std::optional<StopReason> end,
                          Add({*forced, 0.0}, TokenOrigin::kForced));
    if (end) return end;
    if (num_left_ == 0) return StopReason::kMaxTokens;
    if (options_.is_cancelled()) return StopReason::kCancelled;
  }
}

Status Generator::Choose() {
  const size_t length = context().size();
  // The context has room for the drafts that are accepted.
  const size_t room = turn_.max_length() - std::min(turn_.max_length(), length);
  const size_t room_for_tokens = RoomForTokens();
  const auto drafts = chooser_.Allowed(
      turn_.Draft(std::min(num_left_ - 1, room), chooser_.sampler()), room_for_tokens);
  CRIA_ASSIGN_OR_RETURN(
      LogitRows rows, turn_.Logits({.drafts = drafts, .num_candidates = chooser_.NumCandidates()}));
  num_chosen_ = 0;
  Status status;
  for (size_t row = 0; row < rows.size(); ++row) {
    const Result<ChosenToken> chosen = chooser_.Choose(rows[row], context(), room_for_tokens - row);
    // A later row is run again, and then its error is that of the next token.
    if (!chosen && row == 0) status = std::unexpected(chosen.error());
    if (!chosen || chosen->token.id < 0) break;
    chosen_[num_chosen_++] = *chosen;
    const int32_t token = chosen->token.id;
    if (row + 1 == rows.size() || token != drafts[row] || !chooser_.Try(token)) break;
    turn_.Try(token);
  }
  chooser_.Rewind();
  turn_.Rewind(length);
  return status;
}

size_t Generator::RoomForTokens() const {
  // A token that finds the context full is handed out all the same, unless there is made room.
  if (options_.make_room) return num_left_;
  return std::min(num_left_, turn_.max_length() + 1 - context().size());
}

Ending Generator::Add(const GeneratedToken& token, TokenOrigin origin) {
  if (std::ranges::contains(options_.stop_token_ids, token.id)) return StopReason::kStopToken;
  if (turn_.is_full() && options_.make_room) {
    if (const Status made = options_.make_room(turn_); !made) {
      if (made.error().code() == ErrorCode::kCancelled) return StopReason::kCancelled;
      return std::unexpected(made.error());
    }
  }
  CRIA_RETURN_IF_ERROR(chooser_.Accept(token.id));
  ++turn_.stats().generated_tokens;
  const bool goes_on = on_token_(token);
  if (turn_.is_full()) return goes_on ? StopReason::kContextFull : StopReason::kCancelled;
  turn_.Append(token.id, origin);
  if (!goes_on) return StopReason::kCancelled;
  return std::nullopt;
}

}  // namespace

Result<StopReason> Generate(Turn& turn, const GenerationOptions& options, Sampler& sampler,
                            const TokenCallback& on_token) {
  return Generator(turn, options, sampler, on_token).Run();
}

Result<StopReason> Generate(Session& session, const GenerationOptions& options, Sampler& sampler,
                            const TokenCallback& on_token) {
  Turn turn(session, options.turn_options());
  return Generate(turn, options, sampler, on_token);
}

}  // namespace cria
