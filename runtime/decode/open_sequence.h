#pragma once

#include <cstddef>
#include <utility>

#include "cria/error.h"
#include "decode/sequences.h"

namespace cria {

// A sequence of a model that is closed at the end of the object's life.
class OpenSequence {
 public:
  // Reserves pages for `tokens`. `sequences` must outlive the result.
  static Result<OpenSequence> Create(Sequences& sequences, size_t tokens) {
    CRIA_ASSIGN_OR_RETURN(const SequenceId id, sequences.Open());
    OpenSequence opened(sequences, id);
    CRIA_RETURN_IF_ERROR(sequences.Reserve(id, tokens));
    return opened;
  }
  OpenSequence(OpenSequence&& other) noexcept
      : sequences_(std::exchange(other.sequences_, nullptr)), id_(other.id_) {}
  OpenSequence& operator=(OpenSequence&&) = delete;
  ~OpenSequence() {
    if (sequences_ != nullptr) sequences_->Close(id_);
  }

  SequenceId id() const { return id_; }

 private:
  OpenSequence(Sequences& sequences, SequenceId id) : sequences_(&sequences), id_(id) {}

  Sequences* sequences_;
  SequenceId id_;
};

}  // namespace cria
