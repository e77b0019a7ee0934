#include "grammar/token_masks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/arena.h"
#include "grammar/character_steps.h"

namespace cria::grammar {
namespace {

using State = Automaton::State;

// Goes through the tokens in their order and keeps the state after each byte of the current one, so
// that what a token shares with the one before it costs nothing.
class TokenWalk {
 public:
  TokenWalk(const TokenTable& tokens, Automaton& automaton, std::span<State> path,
            uint32_t max_rest, TokenMasks::Mask& mask)
      : tokens_(tokens),
        automaton_(automaton),
        path_(path),
        states_(path.data() + path.size() - 1),
        max_rest_(max_rest),
        mask_(mask) {
    std::ranges::copy(automaton.classes(), classes_.begin());
    classes_[kStay] = static_cast<uint16_t>(automaton.stay());
  }

  Status All() {
    CRIA_RETURN_IF_ERROR(AllowTexts());
    for (unsigned byte = 0; byte < 256; ++byte) {
      for (const TokenTable::Kind kind : TokenTable::kKinds) {
        const auto tokens = tokens_.Beginning(static_cast<uint8_t>(byte), kind);
        if (tokens.empty() || is_done_[static_cast<size_t>(kind)]) continue;
        CRIA_RETURN_IF_ERROR(automaton_.Step(Path(1), static_cast<uint8_t>(byte)));
        if (states_[1] == Automaton::kDead) break;
        CRIA_RETURN_IF_ERROR(Walk(tokens));
      }
    }
    return {};
  }

 private:
  static constexpr size_t kStay = 256;
  static constexpr size_t kMaxLength = TokenTable::kMaxCharacters;

  // Until after so many bytes.
  std::span<State> Path(size_t length) { return {path_.data(), path_.size() + length}; }

  // Where it does not matter which characters a text has, only how many, the texts of a kind are
  // not walked through.
  Status AllowTexts() {
    CharacterSteps steps(automaton_, path_);
    CRIA_ASSIGN_OR_RETURN(const bool plain, steps.FollowPlain());
    if (!plain) return {};
    AllowLengths(TokenTable::Kind::kPlain, steps);
    CRIA_ASSIGN_OR_RETURN(const bool wide, steps.WideDoTheSame());
    if (wide) AllowLengths(TokenTable::Kind::kWide, steps);
    return {};
  }

  void AllowLengths(TokenTable::Kind kind, const CharacterSteps& steps) {
    is_done_[static_cast<size_t>(kind)] = true;
    std::array<bool, kMaxLength> is_allowed = {};
    bool are_all = true;
    bool are_none = true;
    for (size_t i = 0; i < kMaxLength; ++i) {
      const TokenTable::OfLength& tokens = tokens_.WithLength(kind, i + 1);
      const uint32_t rest = automaton_.rests()[steps.After(i + 1)];
      if (tokens.count == 0) continue;
      is_allowed[i] = NoteRest(rest, tokens.last, tokens.count);
      are_all &= is_allowed[i];
      are_none &= !is_allowed[i];
    }
    if (are_all) {
      const auto words = tokens_.words(kind);
      for (size_t i = 0; i < words.size(); ++i) mask_.words[i] |= words[i];
    } else if (!are_none) {
      AddLengths(kind, is_allowed);
    }
  }

  // For 64 tokens at once, each bit of their lengths chooses between the halves of what is allowed.
  void AddLengths(TokenTable::Kind kind, const std::array<bool, kMaxLength>& is_allowed) {
    std::array<uint64_t, kMaxLength> by_length;
    for (size_t i = 0; i < kMaxLength; ++i) by_length[i] = is_allowed[i] ? ~uint64_t{0} : 0;
    const auto words = tokens_.words(kind);
    for (size_t i = 0; i < words.size(); ++i) {
      std::array<uint64_t, kMaxLength> chosen = by_length;
      for (size_t bit = 0; bit < TokenTable::kLengthBits; ++bit) {
        const uint64_t is_set = tokens_.length_words(bit)[i];
        for (size_t k = 0; k < (kMaxLength / 2) >> bit; ++k) {
          chosen[k] = (chosen[2 * k] & ~is_set) | (chosen[2 * k + 1] & is_set);
        }
      }
      mask_.words[i] |= words[i] & chosen[0];
    }
  }

  Status Walk(std::span<const TokenTable::Entry> tokens) {
    const State* const rows = automaton_.rows();
    const size_t stride = automaton_.stride();
    // Tokens that share more bytes than this with a token that is not allowed are not either.
    size_t dead_from = SIZE_MAX;
    for (const TokenTable::Entry entry : tokens) {
      const size_t shared = entry.shared();
      if (shared > dead_from) continue;
      State* const states = states_ + shared;
      const size_t own = entry.own();
      State state = states[0];
      if (own <= TokenTable::kInlineBytes) [[likely]] {
        // All inline bytes without a branch: behind the token, the state stays.
        const size_t first = classes_[own > 0 ? entry.byte(0) : kStay];
        const size_t second = classes_[own > 1 ? entry.byte(1) : kStay];
        const size_t third = classes_[own > 2 ? entry.byte(2) : kStay];
        states[1] = rows[states[0] * stride + first];
        states[2] = rows[states[1] * stride + second];
        states[3] = rows[states[2] * stride + third];
        state = states[3];
      } else {
        const std::string_view bytes = tokens_.LongOwn(entry);
        for (size_t i = 0; i < own && state > Automaton::kUnknown; ++i) {
          state = rows[state * stride + classes_[static_cast<uint8_t>(bytes[i])]];
          states[i + 1] = state;
        }
      }
      if (state == Automaton::kUnknown) [[unlikely]] {
        CRIA_ASSIGN_OR_RETURN(state, StepThrough(entry));
      }
      if (state == Automaton::kDead) {
        dead_from = shared;
        while (states_[dead_from + 1] != Automaton::kDead) ++dead_from;
        continue;
      }
      dead_from = SIZE_MAX;
      const uint32_t id = entry.id();
      if (NoteRest(automaton_.rests()[state], static_cast<int32_t>(id), 1)) {
        mask_.words[id / 64] |= uint64_t{1} << (id % 64);
      }
    }
    return {};
  }

  // Whether tokens are allowed after which the text can be ended with `rest` bytes. `last` is one
  // of them.
  bool NoteRest(uint32_t rest, int32_t last, uint32_t count) {
    mask_.min_rest = std::min(mask_.min_rest, rest);
    if (rest > max_rest_) return false;
    mask_.max_rest = std::max(mask_.max_rest, rest);
    mask_.count += count;
    mask_.last = last;
    return true;
  }

  // Byte by byte. The state at the end, or the first dead one.
  Result<State> StepThrough(TokenTable::Entry entry) {
    const std::string_view piece = tokens_.Piece(static_cast<int32_t>(entry.id()));
    size_t length = entry.shared();
    while (length < piece.size() && states_[length] != Automaton::kDead) {
      const auto byte = static_cast<uint8_t>(piece[length]);
      CRIA_RETURN_IF_ERROR(automaton_.Step(Path(++length), byte));
    }
    return states_[length];
  }

  const TokenTable& tokens_;
  Automaton& automaton_;
  const std::span<State> path_;
  State* const states_;  // After so many bytes of the token.
  const uint32_t max_rest_;
  TokenMasks::Mask& mask_;
  std::array<uint16_t, kStay + 1> classes_;
  std::array<bool, TokenTable::kKinds.size()> is_done_ = {};
};

size_t NumWords(size_t vocab_size) { return (vocab_size + 63) / 64; }

}  // namespace

size_t TokenMasks::MaskBytes(size_t vocab_size) { return NumWords(vocab_size) * sizeof(uint64_t); }

TokenMasks::TokenMasks(std::span<std::byte> memory, const TokenTable& tokens) : tokens_(tokens) {
  const size_t num_words = NumWords(tokens.vocab_size());
  while (num_masks_ < kMaxMasks && memory.size() >= num_words * sizeof(uint64_t)) {
    masks_[num_masks_++].words = TakeArray<uint64_t>(memory, num_words);
  }
}

void TokenMasks::Clear() {
  for (Mask& mask : masks_) mask.owner = Automaton::kDead;
  num_uses_ = 0;
  num_collections_ = 0;
}

Result<const TokenMasks::Mask*> TokenMasks::Find(Automaton& automaton, std::span<State> path) {
  path = {path.data(), path.size() + 1};
  CRIA_RETURN_IF_ERROR(automaton.StepToSimilar(path));
  FollowCollections(automaton);
  const uint16_t kept = automaton.mask(path.back());
  if (kept != Automaton::kNoMask) {
    masks_[kept].last_use = ++num_uses_;
    return &masks_[kept];
  }
  Mask* oldest = &masks_[1];
  for (size_t i = 1; i < num_masks_; ++i) {
    Mask& mask = masks_[i];
    if (mask.owner == Automaton::kDead) mask.last_use = 0;
    if (mask.last_use < oldest->last_use) oldest = &mask;
  }
  if (oldest->owner != Automaton::kDead) automaton.SetMask(oldest->owner, Automaton::kNoMask);
  oldest->owner = Automaton::kDead;
  CRIA_RETURN_IF_ERROR(Compute(automaton, path, NodeStore::kMaxRest, *oldest));
  FollowCollections(automaton);
  automaton.SetMask(path.back(), static_cast<uint16_t>(oldest - masks_.data()));
  oldest->owner = path.back();
  oldest->last_use = ++num_uses_;
  return oldest;
}

Result<const TokenMasks::Mask*> TokenMasks::FindWithin(Automaton& automaton, std::span<State> path,
                                                       uint32_t max_rest) {
  FollowCollections(automaton);
  Mask& mask = masks_[0];
  if (mask.owner == path.back() && limit_ == max_rest) return &mask;
  mask.owner = Automaton::kDead;
  CRIA_RETURN_IF_ERROR(Compute(automaton, path, max_rest, mask));
  FollowCollections(automaton);
  mask.owner = path.back();
  limit_ = max_rest;
  return &mask;
}

Status TokenMasks::Compute(Automaton& automaton, std::span<State> path, uint32_t max_rest,
                           Mask& mask) {
  std::ranges::fill(mask.words, 0);
  mask.count = 0;
  mask.last = -1;
  mask.max_rest = 0;
  mask.min_rest = Expressions::kNever;
  return TokenWalk(tokens_, automaton, path, max_rest, mask).All();
}

// Finds the masks of states that got other numbers.
void TokenMasks::FollowCollections(const Automaton& automaton) {
  if (num_collections_ == automaton.num_collections()) return;
  num_collections_ = automaton.num_collections();
  for (Mask& mask : masks_) mask.owner = Automaton::kDead;
  for (size_t i = Automaton::kFirst; i < automaton.num_states(); ++i) {
    const auto state = static_cast<State>(i);
    const uint16_t mask = automaton.mask(state);
    if (mask != Automaton::kNoMask) masks_[mask].owner = state;
  }
}

}  // namespace cria::grammar
