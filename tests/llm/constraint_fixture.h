#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llm/constraint.h"
#include "llm/session_fixture.h"
#include "support/unwrap.h"

namespace cria {

// The token that ends a text; another control token; and one that is not text.
inline constexpr int32_t kEndToken = 99;
inline constexpr int32_t kControlToken = 98;
inline constexpr int32_t kUnusedToken = 97;

// kVocabSize tokens. The first ones are single characters, then come longer pieces.
class TestVocabulary {
 public:
  TestVocabulary() {
    Add("{}[]\",: \nabcdefghijklmnop0123456789");
    for (const std::string_view piece : {"ab", "abc", "bc", "00", "a\"", "\":", "name", "e\": "}) {
      Add(piece, PieceType::kNormal);
    }
    Add("<x>", PieceType::kUserDefined);
    Add("\xE2", PieceType::kByte);
    Add("\x82", PieceType::kByte);
    Add("\xAC", PieceType::kByte);
    while (types_.size() < kVocabSize) Add("a", PieceType::kUnused);
    types_[static_cast<size_t>(kEndToken)] = PieceType::kControl;
    types_[static_cast<size_t>(kControlToken)] = PieceType::kControl;
    vocabulary_.piece_bytes = bytes_;
    vocabulary_.piece_offsets = offsets_;
    vocabulary_.piece_types = types_;
  }
  TestVocabulary(const TestVocabulary&) = delete;
  TestVocabulary& operator=(const TestVocabulary&) = delete;

  const Vocabulary& get() const { return vocabulary_; }

  bool IsText(int32_t id) const {
    const PieceType type = types_[static_cast<size_t>(id)];
    return type != PieceType::kUnused && type != PieceType::kControl;
  }
  std::string Text(int32_t id) const {
    return std::string(vocabulary_.piece(static_cast<size_t>(id)));
  }
  std::string Text(std::span<const int32_t> ids) const {
    std::string text;
    for (const int32_t id : ids) text += Text(id);
    return text;
  }
  // The id of a piece.
  int32_t Id(std::string_view text) const {
    for (int32_t id = 0; id < static_cast<int32_t>(types_.size()); ++id) {
      if (IsText(id) && Text(id) == text) return id;
    }
    ADD_FAILURE() << "there is no token " << text;
    return -1;
  }

 private:
  void Add(std::string_view characters) {
    for (size_t i = 0; i < characters.size(); ++i) Add(characters.substr(i, 1), PieceType::kNormal);
  }
  void Add(std::string_view piece, PieceType type) {
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    types_.push_back(type);
  }

  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> offsets_ = {0};
  std::vector<PieceType> types_;
  Vocabulary vocabulary_;
};

// The tokens of a test's vocabulary, and constraints over them.
class TestConstraints {
 public:
  explicit TestConstraints(size_t max_constraints = 2)
      : tokens_(Unwrap(ConstraintTokens::Create(vocabulary_.get(), kVocabSize, max_constraints))) {}

  const TestVocabulary& vocabulary() const { return vocabulary_; }
  Result<std::unique_ptr<Constraint>> TryNew() { return Constraint::Create(*tokens_); }
  std::unique_ptr<Constraint> OfRegex(std::string_view pattern) {
    std::unique_ptr<Constraint> constraint = Unwrap(TryNew());
    Unwrap(constraint->Set({grammar::ConstraintKind::kRegex, pattern}));
    return constraint;
  }

 private:
  TestVocabulary vocabulary_;
  std::unique_ptr<ConstraintTokens> tokens_;
};

// The ids that a mask allows.
inline Tokens IdsOf(const TokenMask& mask) {
  Tokens ids;
  mask.ForEach(kVocabSize, [&](size_t id) { ids.push_back(static_cast<int32_t>(id)); });
  return ids;
}

}  // namespace cria
