#include "grammar/character_steps.h"

#include <algorithm>

namespace cria::grammar {
namespace {

// Between the states after the characters and those within one.
constexpr size_t kWithin = CharacterSteps::kMaxCharacters + 1;

}  // namespace

CharacterSteps::CharacterSteps(Automaton& automaton, std::span<State> path)
    : automaton_(automaton),
      path_(path),
      states_(path.data() + path.size() - 1),
      num_collections_(automaton.num_collections()) {
  std::fill_n(states_ + 1, kRoom, states_[0]);
  const std::array<uint8_t, 256>& classes = automaton.classes();
  next_class_[255] = 256;
  for (size_t byte = 255; byte-- > 0;) {
    const bool is_last = classes[byte] != classes[byte + 1];
    next_class_[byte] = is_last ? static_cast<uint16_t>(byte + 1) : next_class_[byte + 1];
  }
}

Result<bool> CharacterSteps::FollowPlain() {
  for (size_t i = 1; i <= kMaxCharacters; ++i) {
    if (i > 1 && (states_[i - 1] == states_[i - 2] || states_[i - 1] == Automaton::kDead)) {
      states_[i] = states_[i - 1];
      continue;
    }
    states_[kWithin] = states_[i - 1];
    for (unsigned byte = TokenTable::kFirstPlain; byte <= TokenTable::kLastPlain; ++byte) {
      if (!TokenTable::IsPlain(static_cast<uint8_t>(byte))) continue;
      CRIA_ASSIGN_OR_RETURN(const bool is_valid, Step(kWithin + 1, static_cast<uint8_t>(byte)));
      const State next = states_[kWithin + 1];
      if (byte == TokenTable::kFirstPlain) states_[i] = next;
      if (!is_valid || next != states_[i]) return false;
    }
  }
  return true;
}

Result<bool> CharacterSteps::WideDoTheSame() {
  // The Unicode Standard, table 3-7.
  static constexpr ByteRange kLast = {0x80, 0xBF};
  static constexpr auto kTwo = std::to_array<ByteRange>({{0xC2, 0xDF}, kLast});
  static constexpr auto kThree = std::to_array<std::array<ByteRange, 3>>({
      {{{0xE0, 0xE0}, {0xA0, 0xBF}, kLast}},
      {{{0xE1, 0xEC}, kLast, kLast}},
      {{{0xED, 0xED}, {0x80, 0x9F}, kLast}},
      {{{0xEE, 0xEF}, kLast, kLast}},
  });
  static constexpr auto kFour = std::to_array<std::array<ByteRange, 4>>({
      {{{0xF0, 0xF0}, {0x90, 0xBF}, kLast, kLast}},
      {{{0xF1, 0xF3}, kLast, kLast, kLast}},
      {{{0xF4, 0xF4}, {0x80, 0x8F}, kLast, kLast}},
  });
  for (size_t i = 1; i <= kMaxCharacters; ++i) {
    if (states_[i - 1] == Automaton::kDead) break;
    if (i > 1 && states_[i - 1] == states_[i - 2]) continue;
    const auto all_lead = [&](std::span<const ByteRange> ranges) {
      states_[kWithin] = states_[i - 1];
      return AllLeadTo(states_[i], kWithin, ranges);
    };
    CRIA_ASSIGN_OR_RETURN(bool agree, all_lead(kTwo));
    if (!agree) return false;
    for (const auto& ranges : kThree) {
      CRIA_ASSIGN_OR_RETURN(agree, all_lead(ranges));
      if (!agree) return false;
    }
    for (const auto& ranges : kFour) {
      CRIA_ASSIGN_OR_RETURN(agree, all_lead(ranges));
      if (!agree) return false;
    }
  }
  return true;
}

Result<bool> CharacterSteps::Step(size_t to, uint8_t byte) {
  CRIA_RETURN_IF_ERROR(automaton_.Step({path_.data(), path_.size() + to}, byte));
  return automaton_.num_collections() == num_collections_;
}

Result<bool> CharacterSteps::AllLeadTo(State target, size_t from,
                                       std::span<const ByteRange> ranges) {
  if (ranges.empty() || states_[from] == Automaton::kDead) return states_[from] == target;
  State last = Automaton::kUnknown;
  for (size_t byte = ranges[0].first; byte <= ranges[0].last; byte = next_class_[byte]) {
    CRIA_ASSIGN_OR_RETURN(bool agree, Step(from + 1, static_cast<uint8_t>(byte)));
    // Most bytes lead to the same state, whose other bytes are known then.
    if (agree && states_[from + 1] == last) continue;
    last = states_[from + 1];
    if (agree) {
      CRIA_ASSIGN_OR_RETURN(agree, AllLeadTo(target, from + 1, ranges.subspan(1)));
    }
    if (!agree) return false;
  }
  return true;
}

}  // namespace cria::grammar
