#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/checksum.h"

namespace cria::server {

// Which texts are in files: their tokens and sizes, and which were used last. Bookkeeping for one
// thread at a time, in memory that the constructor reserves.
class PromptIndex {
 public:
  struct Bounds {
    uint64_t bytes = 0;  // All files together.
    size_t tokens = 0;   // All texts together.
    size_t texts = 0;
  };
  // The digest of a text's tokens.
  using Name = Digest;
  struct Found {
    Name name = {};
    size_t num_tokens = 0;  // The text has so many.
    size_t num_usable = 0;  // So many of its first tokens are of use.
  };

  static Name NameOf(std::span<const int32_t> tokens);

  // `needs_whole`: a text is of use only to texts that begin with all of it. Otherwise, any
  // beginning of it is.
  PromptIndex(const Bounds& bounds, bool needs_whole);

  // The text that is of most use to a text that begins with `tokens`. `num_usable` is 0 if there is
  // none.
  Found Find(std::span<const int32_t> tokens) const;
  // Whether a file of this text spares enough: at least kMinNewTokens and a quarter of its tokens
  // are not of use in another file, even in one that is being written.
  bool Wants(std::span<const int32_t> tokens) const;
  static constexpr size_t kMinNewTokens = 256;

  // The text whose file is to be removed next before one of this size is added; nothing if there is
  // room. Returns nothing, too, if there is none left: the caller compares sizes with the bounds.
  std::optional<Name> NextToRemove(size_t num_tokens, uint64_t bytes) const;
  // A text that this one has the beginning of, and that is of no use beside it; nothing if there is
  // none.
  std::optional<Name> NextCovered(const Name& name) const;

  // Adds a text as the one that was used last, for which there must be room. Until it is ready,
  // Find does not find it.
  void Add(const Name& name, std::span<const int32_t> tokens, uint64_t bytes, bool is_ready);
  void SetReady(const Name& name);
  void Use(const Name& name);
  void Remove(const Name& name);

  const Bounds& bounds() const { return bounds_; }
  bool Contains(const Name& name) const;
  size_t num_texts() const { return texts_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Text {
    Name name;
    size_t first_token;  // In tokens_.
    size_t num_tokens;
    uint64_t bytes;
    uint64_t last_use;
    bool is_ready;
  };

  std::span<const int32_t> TokensOf(const Text& text) const;
  // How many of the first tokens are of use to a text that has `num_equal` of them.
  size_t Usable(const Text& text, std::span<const int32_t> tokens) const;

  const Bounds bounds_;
  const bool needs_whole_;
  std::vector<Text> texts_;      // Capacity for all.
  std::vector<int32_t> tokens_;  // The tokens of all texts; capacity for all.
  uint64_t bytes_ = 0;
  uint64_t num_uses_ = 0;
};

}  // namespace cria::server
