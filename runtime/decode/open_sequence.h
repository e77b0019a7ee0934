#pragma once

#include <cstddef>
#include <utility>

#include "cria/error.h"
#include "decode/kv_pages.h"

namespace cria {

// A sequence of the KV cache that is closed at the end of the object's life.
class OpenSequence {
 public:
  // Reserves pages for `tokens`. `pages` must outlive the result.
  static Result<OpenSequence> Create(KvPages& pages, size_t tokens) {
    CRIA_ASSIGN_OR_RETURN(const SequenceId id, pages.Open());
    OpenSequence opened(pages, id);
    CRIA_RETURN_IF_ERROR(pages.Reserve(id, tokens));
    return opened;
  }
  OpenSequence(OpenSequence&& other) noexcept
      : pages_(std::exchange(other.pages_, nullptr)), id_(other.id_) {}
  OpenSequence& operator=(OpenSequence&&) = delete;
  ~OpenSequence() {
    if (pages_ != nullptr) pages_->Close(id_);
  }

  SequenceId id() const { return id_; }

 private:
  OpenSequence(KvPages& pages, SequenceId id) : pages_(&pages), id_(id) {}

  KvPages* pages_;
  SequenceId id_;
};

}  // namespace cria
