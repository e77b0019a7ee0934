#include "decode/kv_state.h"

#include <algorithm>
#include <cstring>

#include "core/numeric.h"
#include "core/platform.h"
#include "model/checksum.h"
#include "model/rope_table.h"

namespace cria {
namespace {

// The bits of an IEEE 754 number's exponent, in each number of a word, and the lowest of them.
struct ExponentBits {
  uint64_t all;
  uint64_t lowest;
};
constexpr ExponentBits kExponentsOfF32 = {0x7F800000'7F800000, 0x00800000'00800000};
constexpr ExponentBits kExponentsOfF16 = {0x7C007C00'7C007C00, 0x04000400'04000400};

bool AreFinite(std::span<const std::byte> numbers, ExponentBits exponents) {
  // As many words as compilers process at once without being told.
  using Words = std::array<uint64_t, 8>;
  Words carries = {};
  const auto add = [&](const std::byte* begin) {
    Words words;
    std::memcpy(words.data(), begin, sizeof words);
    for (size_t i = 0; i < words.size(); ++i) {
      carries[i] |= (words[i] & exponents.all) + exponents.lowest;
    }
  };
  for (; numbers.size() >= sizeof(Words); numbers = numbers.subspan(sizeof(Words))) {
    add(numbers.data());
  }
  if (!numbers.empty()) {
    std::array<std::byte, sizeof(Words)> rest = {};
    std::ranges::copy(numbers, rest.begin());
    add(rest.data());
  }
  // If all bits of an exponent are set, adding the lowest carries into the sign, and otherwise not.
  const uint64_t signs = exponents.all + exponents.lowest;
  return std::ranges::none_of(carries, [=](uint64_t carry) { return (carry & signs) != 0; });
}

// The pages of the layer's rows.
const KvPageGroup& PageGroupOf(const Decoder& decoder, size_t layer) {
  return decoder.sequences().pages().group(decoder.cache().layer(layer).group);
}

}  // namespace

KvState::KvState(Decoder& decoder, SequenceId sequence, size_t num_tokens)
    : decoder_(decoder), sequence_(sequence), num_tokens_(num_tokens) {
  Layer next = {};
  size_t largest_state = 0;
  for (size_t i = 0; i < decoder.cache().num_layers(); ++i) {
    if (const StateCache::Layer* const states = StatesOf(i); states != nullptr) {
      layers_.push_back(next);
      if (num_tokens == 0) continue;
      ++next.first_block;
      next.offset += decoder.ranks().NumStateElements(states->size) * sizeof(float);
      largest_state = std::max(largest_state, states->size.state_elements);
      continue;
    }
    next.first_token = PageGroupOf(decoder, i).WindowBegin(num_tokens);
    layers_.push_back(next);
    if (!decoder.cache().layer(i).is_stored) continue;
    const size_t first_page = next.first_token / kKvPageTokens;
    next.first_block += DivideRoundingUp(num_tokens, kKvPageTokens) - first_page;
    next.offset += (num_tokens - next.first_token) * RowBytes(i);
  }
  layers_.push_back(next);
  scratch_.resize(largest_state);
}

const StateCache::Layer* KvState::StatesOf(size_t layer) const {
  const StateCache::Layer& states = decoder_.states().layer(layer);
  return states.places == nullptr ? nullptr : &states;
}

size_t KvState::NumHeads(size_t block) const {
  const size_t layer = LayerOf(block);
  return StatesOf(layer) != nullptr ? 1 : NumKeyValueHeads(layer);
}

size_t KvState::NumKeyValueHeads(size_t layer) const {
  return decoder_.ranks().NumKeyValueHeads(decoder_.cache().layer(layer).view);
}

uint64_t KvState::RowBytes(size_t layer) const {
  const ops::KvCacheView& cache = decoder_.cache().layer(layer).view;
  return NumKeyValueHeads(layer) * KvRowBytes(cache.head_dim, cache.type);
}

size_t KvState::LayerOf(size_t block) const {
  const auto after = std::ranges::upper_bound(layers_, block, {}, &Layer::first_block);
  return static_cast<size_t>(after - layers_.begin()) - 1;
}

std::pair<size_t, size_t> KvState::Tokens(size_t block, size_t layer) const {
  const size_t first_token = layers_[layer].first_token;
  const size_t page = first_token / kKvPageTokens + block - layers_[layer].first_block;
  return {std::max(first_token, page * kKvPageTokens),
          std::min(num_tokens_, (page + 1) * kKvPageTokens)};
}

uint64_t KvState::BlockOffset(size_t block) const {
  const size_t layer = LayerOf(block);
  if (layer + 1 == layers_.size() || StatesOf(layer) != nullptr) return layers_[layer].offset;
  return layers_[layer].offset +
         (Tokens(block, layer).first - layers_[layer].first_token) * RowBytes(layer);
}

KvRows KvState::RowsOf(size_t block) const {
  const size_t layer = LayerOf(block);
  const auto [begin_token, end_token] = Tokens(block, layer);
  const ops::KvPageTable table = {PageGroupOf(decoder_, layer).Table(sequence_)};
  return {.layer = layer, .first_row = table.Row(begin_token), .num_rows = end_token - begin_token};
}

KeptState KvState::StateOf(size_t layer) const {
  const StateRun run = decoder_.sequences().states()->Run(sequence_);
  return {.layer = layer, .place = sequence_, .num_rows = num_tokens_ - run.state_tokens};
}

KvParts KvState::Rows(size_t block, size_t head) const {
  const size_t layer = LayerOf(block);
  if (StatesOf(layer) != nullptr) {
    const std::span<float> own =
        has_ranks() ? std::span<float>() : decoder_.StateAfter(StateOf(layer), scratch_);
    return {std::as_writable_bytes(decoder_.ranks().StateOf(own))};
  }
  const KvRows rows = RowsOf(block);
  return decoder_.ranks().KvRowsOf(rows, decoder_.cache().layer(rows.layer).view, head);
}

std::unique_lock<std::mutex> KvState::HoldBlock() const { return decoder_.ranks().HoldKvRows(); }

Status KvState::Exchange(size_t block, KvDirection direction) const {
  if (!has_ranks()) return {};
  if (const size_t layer = LayerOf(block); StatesOf(layer) != nullptr) {
    return decoder_.ExchangeState(StateOf(layer), scratch_, direction);
  }
  return decoder_.ExchangeKvRows(RowsOf(block), direction);
}

bool KvState::AreFinite(size_t block, const KvParts& rows) const {
  const bool is_state = StatesOf(LayerOf(block)) != nullptr;
  return cria::AreFinite(rows, is_state ? KvType::kF32 : decoder_.cache().layer(0).view.type);
}

void KvState::MakeResident(size_t layer) const {
  if (StatesOf(layer) != nullptr) return;
  for (size_t head = 0; head < NumKeyValueHeads(layer); ++head) {
    // The rows so far that are adjacent, of each kind.
    KvParts adjacent = {};
    for (size_t block = layers_[layer].first_block; block < layers_[layer + 1].first_block;
         ++block) {
      const auto rows = Rows(block, head);
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].data() == adjacent[i].data() + adjacent[i].size()) {
          adjacent[i] = {adjacent[i].data(), adjacent[i].size() + rows[i].size()};
        } else {
          platform::MakeResident(std::exchange(adjacent[i], rows[i]));
        }
      }
    }
    for (const std::span<std::byte> rows : adjacent) platform::MakeResident(rows);
  }
}

bool AreFinite(const KvParts& rows, KvType type) {
  const bool is_int8 = type == KvType::kInt8;  // Every int8 is finite.
  const ExponentBits exponents = type == KvType::kF16 ? kExponentsOfF16 : kExponentsOfF32;
  const size_t first = is_int8 ? 2 : 0;
  return AreFinite(rows[first], exponents) && AreFinite(rows[first + 1], exponents);
}

uint64_t AttentionFingerprint(const ModelConfig& config, size_t context_tokens) {
  std::vector<float> numbers;
  for (const LayerKind& kind : config.layer_kinds) {
    numbers.push_back(static_cast<float>(kind.sliding_window));
    for (const double frequency : RopeInverseFrequencies(config, kind, context_tokens)) {
      numbers.push_back(static_cast<float>(frequency));
    }
  }
  return ChecksumOf(std::as_bytes(std::span(numbers)));
}

uint64_t AttentionFingerprint(const ModelConfig& config, const Decoder& decoder) {
  std::vector<uint64_t> numbers = {AttentionFingerprint(config, decoder.context_tokens())};
  for (size_t i = 0; i < decoder.cache().num_layers(); ++i) {
    numbers.push_back(PageGroupOf(decoder, i).window_tokens());
    // Offsets of keys are lines over a page and turned pairs. They follow from the model and the
    // rotary frequencies.
    if (decoder.cache().layer(i).view.key_offsets.middles != nullptr) {
      numbers.push_back(kKvPageTokens);
      numbers.push_back(ops::KeyOffsets::kMaxTurnedPairs);
    }
  }
  return ChecksumOf(std::as_bytes(std::span(numbers)));
}

}  // namespace cria
