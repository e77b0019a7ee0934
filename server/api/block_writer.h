#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/api/answer_job.h"

namespace cria::server {

// Writes the one answer to a request as blocks that come one after the other: reasoning, texts and
// calls.
class BlockWriter : public AnswerWriter {
 public:
  enum class Block : uint8_t { kNone, kReasoning, kText, kCall };

  using AnswerWriter::AnswerWriter;

  void BeginChoice(size_t /*index*/) final {}
  void OnText(AnswerPart part, std::string_view text) final {
    GoTo(part == AnswerPart::kAnswer ? Block::kText : Block::kReasoning);
    AddPiece(text);
  }
  void OnCall(size_t /*index*/, const std::string& id, const std::string& name) final {
    EndLastBlock();
    block_ = Block::kCall;
    BeginCall(id, name);
  }
  void OnArguments(size_t /*index*/, std::string_view piece) final { AddPiece(piece); }
  void OnToken(TokenLogProbability /*token*/) override {}
  void Finish() final {}

 protected:
  // The block that goes on.
  Block block() const { return block_; }
  // Begins a reasoning or a text, unless the last block is one that goes on.
  void GoTo(Block block) {
    if (block_ == block) return;
    EndLastBlock();
    block_ = block;
    BeginText();
  }
  void EndLastBlock() {
    if (block_ != Block::kNone) EndBlock();
    block_ = Block::kNone;
  }

 private:
  // block() says whether it is a text or a reasoning.
  virtual void BeginText() = 0;
  virtual void BeginCall(const std::string& id, const std::string& name) = 0;
  // A piece of the block's text, or of a call's arguments.
  virtual void AddPiece(std::string_view piece) = 0;
  virtual void EndBlock() = 0;

  Block block_ = Block::kNone;
};

}  // namespace cria::server
