#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"
#include "naive_grammar.h"

namespace cria::grammar {

// A vocabulary, its table, and a matcher with memory of a given size.
struct TestMatcher {
  std::vector<std::string> pieces;
  std::vector<uint64_t> table_memory;
  std::vector<uint64_t> memory;
  std::optional<TokenTable> table;
  std::optional<Matcher> matcher;

  explicit TestMatcher(std::vector<std::string> vocabulary,
                       std::optional<size_t> memory_bytes = std::nullopt)
      : pieces(std::move(vocabulary)),
        table_memory(TokenTable::MemoryBytes(pieces.size()) / 8),
        memory((memory_bytes ? *memory_bytes : Matcher::MemoryBytes(pieces.size())) / 8) {
    const auto piece = [](const void* context, int32_t id) {
      return std::string_view(
          (*static_cast<const std::vector<std::string>*>(context))[static_cast<size_t>(id)]);
    };
    table.emplace(std::as_writable_bytes(std::span(table_memory)), pieces.size(),
                  TokenPieces{piece, &pieces});
    matcher.emplace(std::as_writable_bytes(std::span(memory)), *table);
  }
};

// Its expression, given to Compile by SourceOf.
inline Result<Node> ReadNaiveGrammar(Expressions& expressions, const ConstraintSource& source) {
  const NaiveGrammar* grammar = nullptr;
  std::memcpy(&grammar, source.text.data(), sizeof(grammar));
  return grammar->Build(expressions);
}

struct NaiveSource {
  explicit NaiveSource(const NaiveGrammar& naive) : grammar(&naive) {}

  const NaiveGrammar* grammar;

  ConstraintSource source() const {
    return {.kind = ConstraintKind::kGbnf,
            .text = {reinterpret_cast<const char*>(&grammar), sizeof(grammar)}};
  }
};

// Every letter and some texts of letters, among them the same twice and none.
inline std::vector<std::string> RandomVocabulary(std::mt19937& random, unsigned num_letters) {
  std::vector<std::string> pieces;
  for (unsigned letter = 0; letter < num_letters; ++letter) {
    pieces.emplace_back(1, static_cast<char>('a' + letter));
  }
  const size_t count = 30 + random() % 70;
  for (size_t i = 0; i < count; ++i) {
    std::string piece;
    for (size_t length = random() % 8; piece.size() < length;) {
      piece += static_cast<char>('a' + random() % num_letters);
    }
    pieces.push_back(piece);
  }
  pieces.emplace_back();
  pieces.push_back(pieces[0]);
  pieces.push_back(std::string(12, 'a'));
  std::ranges::shuffle(pieces, random);
  return pieces;
}

inline bool HasToken(const AllowedTokens& allowed, size_t id) {
  return ((allowed.words[id / 64] >> (id % 64)) & 1) != 0;
}

// What a matcher should say, by derivatives of each token alone.
class NaiveTokens {
 public:
  explicit NaiveTokens(const NaiveGrammar& grammar)
      : memory_(size_t{1} << 18), expressions_(std::as_writable_bytes(std::span(memory_))) {
    node_ = grammar.Build(expressions_);
    valid_ = expressions_.Finish(node_).has_value();
  }

  bool valid() const { return valid_; }
  uint32_t Rest(std::string_view piece) {
    Node node =
        piece.size() > TokenTable::kMaxPieceBytes || piece.empty() ? Expressions::kNothing : node_;
    for (const char byte : piece) node = expressions_.Derive(node, static_cast<uint8_t>(byte));
    EXPECT_TRUE(expressions_.status());
    expressions_.BeginWork();
    return expressions_.Rest(node);
  }
  uint32_t Rest() { return expressions_.Rest(node_); }
  void Append(std::string_view piece) {
    for (const char byte : piece) node_ = expressions_.Derive(node_, static_cast<uint8_t>(byte));
  }

 private:
  std::vector<uint64_t> memory_;
  Expressions expressions_;
  Node node_ = Expressions::kNothing;
  bool valid_ = false;
};

// One of the allowed tokens, if there is one.
inline std::optional<int32_t> ChooseToken(const AllowedTokens& allowed, size_t vocab_size,
                                          std::mt19937& random) {
  if (allowed.count == 0) return std::nullopt;
  size_t id = random() % vocab_size;
  while (!HasToken(allowed, id)) id = (id + 1) % vocab_size;
  return static_cast<int32_t>(id);
}

}  // namespace cria::grammar
