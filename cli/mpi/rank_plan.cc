#include "cli/mpi/rank_plan.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cli/mpi/mpi_memory.h"
#include "cli/program_memory.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "model/model_outline.h"
#include "ranks/collective_link.h"
#include "ranks/ordered_collective.h"
#include "ranks/ranked_loader.h"
#include "raspberry-pi/boards.h"

namespace cria::cli {
namespace {

// A rank of which only the numbers matter.
class PlannedRank final : public ranks::Transport {
 public:
  PlannedRank(size_t rank, size_t num_ranks) : rank_(rank), num_ranks_(num_ranks) {}

  size_t rank() const override { return rank_; }
  size_t num_ranks() const override { return num_ranks_; }
  Status Exchange(std::span<const ranks::Outgoing>, std::span<const ranks::Incoming>) override {
    return Fail(ErrorCode::kInternal, "a planned rank exchanges nothing");
  }

 private:
  const size_t rank_;
  const size_t num_ranks_;
};

uint64_t BytesOf(const MemoryPlan& plan, std::string_view name) {
  const auto line = std::ranges::find(plan.lines, name, &MemoryLine::name);
  return line == plan.lines.end() ? 0 : line->bytes;
}

// All of them, of which tokens of a mixture choose some.
uint64_t PackedBytesOf(const MemoryPlan& plan) {
  return BytesOf(plan, "packed weights") + BytesOf(plan, "experts of one token") +
         BytesOf(plan, "other experts");
}

// Of the feed-forward of most layers.
size_t ChannelsOf(const ranks::RankShare& share) {
  return share.expert_channels.size() != 0 ? share.expert_channels.size() : share.channels.size();
}

struct RankPlan {
  ranks::RankShare share;
  MemoryPlan memory;
  uint64_t weight_bytes = 0;
  ranks::TokenTraffic traffic;
};

// `options` are those of rank 0.
Result<RankPlan> PlanRank(const ModelFile& whole, EngineOptions options,
                          const ranks::LinkOptions& link_options, size_t rank,
                          size_t num_candidates, ProgramKind kind) {
  if (rank != 0) options = ranks::FollowerOptions(std::move(options));
  for (MemoryLine& line : MpiMemory(kind, link_options.weights.size()))
    options.other_memory.push_back(std::move(line));
  CRIA_ASSIGN_OR_RETURN(ModelFile part, ModelFile::Open(whole.path()));
  PlannedRank transport(rank, link_options.weights.size());
  ranks::OrderedCollective collective(transport);
  ranks::CollectiveLink link(collective, link_options);
  CRIA_RETURN_IF_ERROR(link.TakePart(part));
  options.link = &link;
  const ModelOutline outline = OutlineOf(part);
  CRIA_ASSIGN_OR_RETURN(std::shared_ptr<const ModelOutline> draft_model,
                        OutlineOfDraftModel(options, part));
  const MemoryPlanOptions resolved = ResolveOptions(outline, options, std::move(draft_model));
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(part.config(), resolved.decoder));
  RankPlan plan;
  CRIA_ASSIGN_OR_RETURN(plan.memory,
                        PlanMemory(outline, resolved, ProgramMemory(kind, ProgramName::kMpi)));
  plan.share = link.shares()[rank];
  plan.weight_bytes = ranks::WeightBytesPerToken(outline);
  plan.traffic =
      ranks::TrafficOf(whole.config(), link.shares(), link_options.wire, rank, num_candidates);
  return plan;
}

// Seconds that one token takes, according to a simple model: a board reads its part of the weights,
// and nothing is sent meanwhile. Attention is not counted.
struct Prediction {
  double reading = 0.0;
  double exchanging = 0.0;
  double alone = 0.0;  // Of one such board, if it had the memory.
};

Prediction Predict(const ModelFile& whole, const std::vector<RankPlan>& plans, WireType wire,
                   size_t num_candidates, const ranks::Network& network, double read_bandwidth) {
  std::vector<ranks::RankShare> shares;
  uint64_t most = 0;
  for (const RankPlan& plan : plans) {
    shares.push_back(plan.share);
    most = std::max(most, plan.weight_bytes);
  }
  const uint64_t all = ranks::WeightBytesPerToken(OutlineOf(whole));
  return {
      .reading = static_cast<double>(most) / read_bandwidth,
      .exchanging = ranks::ExchangeSeconds(whole.config(), shares, wire, num_candidates, network),
      .alone = static_cast<double>(all) / read_bandwidth};
}

void PrintTable(const std::vector<RankPlan>& plans) {
  std::printf("%4s %6s %5s %9s %11s %11s %11s %11s %11s %11s\n", "rank", "heads", "keys",
              "channels", "vocabulary", "weights", "KV cache", "private", "mapped", "sent/token");
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    const RankPlan& plan = plans[rank];
    std::printf("%4zu %6zu %5zu %9zu %11zu %11s %11s %11s %11s %11s\n", rank,
                plan.share.query_heads.size(), plan.share.key_value_heads.size(),
                ChannelsOf(plan.share), plan.share.vocabulary.size(),
                FormatBytes(PackedBytesOf(plan.memory)).c_str(),
                FormatBytes(BytesOf(plan.memory, "KV cache")).c_str(),
                FormatBytes(plan.memory.private_bytes()).c_str(),
                FormatBytes(plan.memory.mapped_bytes()).c_str(),
                FormatBytes(plan.traffic.sent_bytes).c_str());
  }
}

// Whether several ranks have the same keys and values.
bool HasKeysTwice(const std::vector<RankPlan>& plans) {
  for (size_t rank = 1; rank < plans.size(); ++rank) {
    if (plans[rank].share.key_value_heads.begin < plans[rank - 1].share.key_value_heads.end) {
      return true;
    }
  }
  return false;
}

Status CheckBoard(const std::vector<RankPlan>& plans, const raspberry_pi::Board& board) {
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    if (plans[rank].memory.peak_bytes() <= board.usable_bytes) continue;
    return Fail(ErrorCode::kOutOfMemory,
                Format("rank {} needs {}, but a {} has {} for programs: start more ranks", rank,
                       FormatBytes(plans[rank].memory.peak_bytes()), board.title,
                       FormatBytes(board.usable_bytes)));
  }
  return {};
}

void PrintJson(const std::vector<RankPlan>& plans, const Prediction* prediction) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const RankPlan& plan : plans) {
    ranks.push_back({{"query_heads", plan.share.query_heads.size()},
                     {"key_value_heads", plan.share.key_value_heads.size()},
                     {"channels", ChannelsOf(plan.share)},
                     {"vocabulary", plan.share.vocabulary.size()},
                     {"packed_weights_bytes", PackedBytesOf(plan.memory)},
                     {"lines", LinesJson(plan.memory)},
                     {"private_bytes", plan.memory.private_bytes()},
                     {"mapped_bytes", plan.memory.mapped_bytes()},
                     {"peak_bytes", plan.memory.peak_bytes()},
                     {"weight_bytes_per_token", plan.weight_bytes},
                     {"sent_bytes_per_token", plan.traffic.sent_bytes},
                     {"received_bytes_per_token", plan.traffic.received_bytes},
                     {"sent_wire_bytes_per_token", plan.traffic.sent_wire_bytes}});
  }
  nlohmann::ordered_json json = {{"ranks", ranks}};
  if (prediction != nullptr) {
    json["predicted"] = {
        {"reading_seconds", prediction->reading},
        {"exchange_seconds", prediction->exchanging},
        {"tokens_per_second", 1.0 / (prediction->reading + prediction->exchanging)},
        {"alone_tokens_per_second", 1.0 / prediction->alone}};
  }
  std::printf("%s\n", json.dump(2).c_str());
}

}  // namespace

Status TakePartOf(size_t rank, const ranks::LinkOptions& link_options, ModelFile& model) {
  PlannedRank transport(rank, link_options.weights.size());
  ranks::OrderedCollective collective(transport);
  ranks::CollectiveLink link(collective, link_options);
  return link.TakePart(model);
}

Status PrintRankPlan(const ModelFile& model, const EngineOptions& options,
                     const ranks::LinkOptions& link_options, const ranks::Network& network,
                     const PlanArguments& arguments) {
  const raspberry_pi::Board* const board = raspberry_pi::FindBoard(arguments.board);
  if (board == nullptr && !arguments.board.empty()) {
    return Fail(ErrorCode::kUsage, Format("there is no board {}", arguments.board));
  }
  // Boards run the 64-bit system.
  const ProgramKind kind = board == nullptr ? ThisProgramKind() : ProgramKind::kArm64;
  const size_t num_candidates = SamplerOptions().top_k;
  std::vector<RankPlan> plans;
  for (size_t rank = 0; rank < link_options.weights.size(); ++rank) {
    CRIA_ASSIGN_OR_RETURN(RankPlan plan,
                          PlanRank(model, options, link_options, rank, num_candidates, kind));
    plans.push_back(std::move(plan));
  }
  Prediction prediction;
  if (board != nullptr) {
    prediction = Predict(model, plans, link_options.wire, num_candidates, network,
                         board->read_bandwidth_gb_s * 1e9);
  }
  if (arguments.json) {
    PrintJson(plans, board == nullptr ? nullptr : &prediction);
    return board == nullptr ? Status() : CheckBoard(plans, *board);
  }
  PrintTable(plans);
  if (HasKeysTwice(plans)) {
    std::puts("There are more ranks than heads of keys and values: some ranks have the same ones.");
  }
  if (board == nullptr) return {};
  const double seconds = prediction.reading + prediction.exchanging;
  std::printf(
      "Prediction for %zu of %s: %.1f tokens/s, of which a token takes %.1f ms to read weights and "
      "%.1f ms to exchange sums. One board alone, if it had the memory: %.1f tokens/s.\n",
      plans.size(), std::string(board->title).c_str(), 1.0 / seconds, 1e3 * prediction.reading,
      1e3 * prediction.exchanging, 1.0 / prediction.alone);
  return CheckBoard(plans, *board);
}

}  // namespace cria::cli
