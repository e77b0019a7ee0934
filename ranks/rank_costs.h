#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/collective.h"
#include "model/config.h"
#include "model/model_outline.h"
#include "ranks/divide.h"

namespace cria::ranks {

// How ranks are connected: all to one switch of Ethernet, by links that send and receive at the
// same time.
struct Network {
  double bytes_per_second = 0.0;  // Headers count.
  // Between a rank's call and another rank's return, for a message without bytes.
  double latency_seconds = 0.0;
};

// Messages of one token whose logits are sampled among `num_candidates`.
struct TokenTraffic {
  uint64_t sent_bytes = 0;      // By this rank.
  uint64_t received_bytes = 0;  // The same.
  // What an interface of Ethernet counts as sent: with the headers of MPI, TCP, IP and Ethernet,
  // and with what acknowledges received messages. It is an estimate, because TCP is free in this.
  uint64_t sent_wire_bytes = 0;
};
TokenTraffic TrafficOf(const ModelConfig& whole, std::span<const RankShare> shares, WireType wire,
                       size_t rank, size_t num_candidates);

// How long the ranks exchange messages for one token, if none of them is late.
double ExchangeSeconds(const ModelConfig& whole, std::span<const RankShare> shares, WireType wire,
                       size_t num_candidates, const Network& network);

// Bytes of weights that one token reads from a rank's memory.
uint64_t WeightBytesPerToken(const ModelOutline& part);

}  // namespace cria::ranks
