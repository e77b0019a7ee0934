#pragma once

// Engines of all ranks, in threads of one process.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "decode/open_sequence.h"
#include "llm/engine.h"
#include "llm/generator.h"
#include "llm/turn.h"
#include "ranks/collective_link.h"
#include "ranks/ordered_collective.h"
#include "ranks/ranked_loader.h"
#include "ranks/thread_transport.h"
#include "support/unwrap.h"

namespace cria::ranks {

class RankedEngines {
 public:
  // Every rank has one thread. `weights` are those of Divide.
  RankedEngines(const std::string& path, const std::vector<double>& weights, EngineOptions options,
                WireType wire = WireType::kF32)
      : boxes_(weights.size()) {
    options.num_threads = 1;
    for (size_t rank = 0; rank < weights.size(); ++rank) {
      Rank& added =
          *ranks_.emplace_back(std::make_unique<Rank>(boxes_, rank, LinkOptions{weights, wire}));
      EngineOptions own = rank == 0 ? options : FollowerOptions(options);
      own.ranks = &added.link;
      added.engine = Unwrap(Engine::Load(path, own));
    }
    for (size_t rank = 1; rank < weights.size(); ++rank) {
      Rank& follower = *ranks_[rank];
      follower.thread = std::thread([this, &follower] {
        follower.status = follower.link.Follow(follower.engine->decoder());
        if (!follower.status) boxes_.Break();
      });
    }
  }
  ~RankedEngines() { static_cast<void>(Stop()); }

  Engine& engine(size_t rank = 0) { return *ranks_[rank]->engine; }
  CollectiveLink& link() { return ranks_.front()->link; }
  ThreadMailboxes& boxes() { return boxes_; }

  // The first error of a rank that follows.
  Status Stop() {
    const bool is_running = ranks_.back()->thread.joinable();
    if (is_running) CRIA_RETURN_IF_ERROR(link().Stop());
    Status status;
    for (const std::unique_ptr<Rank>& rank : ranks_) {
      if (rank->thread.joinable()) rank->thread.join();
      if (status) status = rank->status;
    }
    return status;
  }

 private:
  struct Rank {
    Rank(ThreadMailboxes& boxes, size_t rank, const LinkOptions& options)
        : transport(boxes, rank), collective(transport), link(collective, options) {}

    ThreadTransport transport;
    OrderedCollective collective;
    CollectiveLink link;
    std::unique_ptr<Engine> engine;
    std::thread thread;
    Status status;
  };

  ThreadMailboxes boxes_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// The logits after each of the tokens, [tokens][vocab_size], run in these chunks; the last size
// repeats.
inline std::vector<float> LogitsOf(Engine& engine, const std::vector<int32_t>& ids,
                                   const std::vector<size_t>& chunks) {
  Decoder& decoder = engine.decoder();
  const OpenSequence sequence = Unwrap(OpenSequence::Create(decoder.sequences(), ids.size()));
  std::vector<float> all;
  for (size_t position = 0, i = 0; position < ids.size(); ++i) {
    const size_t wanted = chunks[std::min(i, chunks.size() - 1)];
    const size_t count = std::min(wanted, ids.size() - position);
    Unwrap(decoder.ForwardSequence(sequence.id(), std::span(ids).subspan(position, count), position,
                                   count));
    for (size_t row = 0; row < count; ++row) {
      const std::span<float> logits = Unwrap(decoder.Logits(row));
      all.insert(all.end(), logits.begin(), logits.end());
    }
    position += count;
  }
  return all;
}

// What the model says after the prompt.
inline std::vector<int32_t> TextOf(Engine& engine, const std::vector<int32_t>& prompt,
                                   const SamplerOptions& options, size_t num_tokens) {
  const std::unique_ptr<Session> session = engine.NewSession();
  Sampler sampler = Unwrap(Sampler::Create(options, engine.file().vocabulary().size()));
  Unwrap(Turn(*session).Prefill(prompt));
  std::vector<int32_t> text;
  Unwrap(Generate(*session, {.max_tokens = num_tokens}, sampler, [&](const GeneratedToken& token) {
    text.push_back(token.id);
    return true;
  }));
  return text;
}

}  // namespace cria::ranks
