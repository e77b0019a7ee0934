#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/thread_pool.h"
#include "decode/decoder.h"
#include "decode/open_sequence.h"
#include "model/file_layout.h"
#include "model/model_file.h"
#include "support/converted_model.h"
#include "support/files.h"
#include "support/unwrap.h"
#include "xnn/packed_weights.h"
#include "xnn/packing.h"

namespace cria::xnn {

using support::ConvertedModel;

// The logits of some tokens, a chunk and a single step.
inline std::vector<float> Logits(const ModelFile& model, const PackedWeights& weights) {
  const ThreadPool pool = Unwrap(ThreadPool::Create(1));
  const auto decoder = Unwrap(Decoder::Create(model, weights, {.context_tokens = 16}, pool, pool));
  const OpenSequence sequence = Unwrap(OpenSequence::Create(decoder->sequences(), 16));
  const std::vector<int32_t> ids = {5, 1, 200, 37, 99, 250, 3, 3};
  std::vector<float> all;
  for (const auto& [first, count] : {std::pair<size_t, size_t>{0, 7}, {7, 1}}) {
    Unwrap(decoder->ForwardSequence(sequence.id(), std::span(ids).subspan(first, count), first,
                                    count));
    for (size_t row = 0; row < count; ++row) {
      const auto logits = Unwrap(decoder->Logits(row));
      all.insert(all.end(), logits.begin(), logits.end());
    }
  }
  return all;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline bool SameBytes(const PackedWeights& a, const PackedWeights& b) {
  return std::ranges::equal(a.matrices(), b.matrices(),
                            [](auto left, auto right) { return std::ranges::equal(left, right); });
}

inline FilePreamble PreambleAt(const std::string& file, size_t offset) {
  FilePreamble preamble;
  std::memcpy(&preamble, file.data() + offset, sizeof preamble);
  return preamble;
}

// Puts the checksums of the head at `offset` right after it was changed.
inline void ResealAt(std::string& file, size_t offset) {
  FilePreamble preamble = PreambleAt(file, offset);
  preamble.metadata_digest = Digest128(
      std::as_bytes(std::span(file).subspan(offset + sizeof preamble, preamble.metadata_bytes)));
  preamble.preamble_checksum = PreambleChecksum(preamble);
  std::memcpy(file.data() + offset, &preamble, sizeof preamble);
}

// As another processor would have packed it.
inline void ForgeFingerprint(const std::string& path, size_t offset = 0) {
  std::string file = support::ReadFile(path);
  const uint64_t fingerprint = Unwrap(LayoutFingerprint());
  const std::string stored(reinterpret_cast<const char*>(&fingerprint), sizeof fingerprint);
  const size_t at = file.find(stored, offset);
  if (at == std::string::npos) throw std::runtime_error("no fingerprint in " + path);
  file[at] = static_cast<char>(file[at] ^ 1);
  ResealAt(file, offset);
  support::WriteFile(path, file);
}

}  // namespace cria::xnn
