#include "cli/mpi/rank_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/mpi/mpi_memory.h"
#include "cli/plan/board_name.h"
#include "cli/plan/program_memory.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "model/model_outline.h"
#include "ranks/collective_link.h"
#include "ranks/ordered_collective.h"
#include "ranks/ranked_loader.h"

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

// All of them, of which tokens of a mixture choose some.
uint64_t PackedBytesOf(const MemoryPlan& plan) {
  return plan.BytesOf(MemoryPart::kPackedWeights) + plan.BytesOf(MemoryPart::kTokenExperts) +
         plan.BytesOf(MemoryPart::kOtherExperts);
}

// The channels that a rank has in the feed-forward of most layers.
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
  options.ranks = &link;
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

// The board of each rank.
using RankBoards = std::vector<const raspberry_pi::Board*>;

// One name for all ranks, or one for each with commas between them. Empty: no boards.
Result<RankBoards> BoardsNamed(std::string_view names, size_t num_ranks) {
  RankBoards boards;
  if (names.empty()) return boards;
  while (true) {
    const size_t comma = names.find(',');
    CRIA_ASSIGN_OR_RETURN(boards.emplace_back(), BoardNamed(names.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    names.remove_prefix(comma + 1);
  }
  if (boards.size() == 1) boards.resize(num_ranks, boards.front());
  if (boards.size() == num_ranks) return boards;
  return Fail(ErrorCode::kUsage,
              Format("--board names {} boards for {} ranks: give one, or one for each rank",
                     boards.size(), num_ranks));
}

double ReadBandwidth(const raspberry_pi::Board* board) { return board->read_bandwidth_gb_s * 1e9; }

// Seconds that one token takes, according to a simple model: a board reads its part of the weights,
// and nothing is sent meanwhile. Attention is not counted.
struct Prediction {
  std::vector<double> reading;  // One for each rank.
  double exchanging = 0.0;
  double alone = 0.0;  // The fastest board's, if it had the memory.

  // All wait for it.
  size_t SlowestRank() const {
    return static_cast<size_t>(std::ranges::max_element(reading) - reading.begin());
  }
  double Seconds() const { return reading[SlowestRank()] + exchanging; }
};

Prediction Predict(const ModelFile& whole, const std::vector<RankPlan>& plans,
                   const RankBoards& boards, WireType wire, size_t num_candidates,
                   const ranks::Network& network) {
  Prediction prediction;
  std::vector<ranks::RankShare> shares;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    shares.push_back(plans[rank].share);
    prediction.reading.push_back(static_cast<double>(plans[rank].weight_bytes) /
                                 ReadBandwidth(boards[rank]));
  }
  prediction.exchanging =
      ranks::ExchangeSeconds(whole.config(), shares, wire, num_candidates, network);
  prediction.alone = static_cast<double>(ranks::WeightBytesPerToken(OutlineOf(whole))) /
                     ReadBandwidth(*std::ranges::max_element(boards, {}, ReadBandwidth));
  return prediction;
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
                FormatBytes(plan.memory.BytesOf(MemoryPart::kKvCache)).c_str(),
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

Status CheckMemory(const std::vector<RankPlan>& plans, const RankBoards& boards,
                   std::optional<uint64_t> limit_bytes) {
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    const uint64_t needed_bytes = plans[rank].memory.peak_bytes();
    if (!boards.empty() && needed_bytes > boards[rank]->usable_bytes) {
      return Fail(ErrorCode::kOutOfMemory,
                  Format("rank {} needs {}, but a {} has {} for programs: start more ranks", rank,
                         FormatBytes(needed_bytes), boards[rank]->title,
                         FormatBytes(boards[rank]->usable_bytes)));
    }
    if (limit_bytes && needed_bytes > *limit_bytes) {
      return Fail(ErrorCode::kOutOfMemory,
                  Format("rank {} needs {}, which is more than --memory-limit {}: start more ranks",
                         rank, FormatBytes(needed_bytes), FormatBytes(*limit_bytes)));
    }
  }
  return {};
}

// As RankedLoader does when the ranks start.
Status CheckInstructions(const RankBoards& boards, const ModelFile& model,
                         const EngineOptions& options) {
  if (!options.wants_drafts() && model.config().num_experts == 0) return {};
  for (const raspberry_pi::Board* board : boards) {
    if (board->has_dot_products == boards.front()->has_dot_products) continue;
    return Fail(ErrorCode::kUnsupported,
                Format("a {} has another instruction set than a {}, and drafts and mixtures of "
                       "experts need the same on all ranks",
                       board->title, boards.front()->title));
  }
  return {};
}

// Whether the weights are in proportion to what the boards read in the same time.
bool FollowBandwidths(std::span<const double> weights, const RankBoards& boards) {
  for (size_t rank = 0; rank < weights.size(); ++rank) {
    const double ratio = weights[rank] / weights[0] * ReadBandwidth(boards[0]);
    if (std::abs(ratio / ReadBandwidth(boards[rank]) - 1.0) > 0.1) return false;
  }
  return true;
}

// "1 of Raspberry Pi 5, 8 GB and 3 of Raspberry Pi 4 Model B, 8 GB"
std::string TitlesOf(const RankBoards& boards) {
  std::string titles;
  for (auto board = boards.begin(); board != boards.end();) {
    const auto next =
        std::find_if(board, boards.end(), [&](auto* other) { return other != *board; });
    titles += Format("{}{} of {}", titles.empty() ? "" : " and ", next - board, (*board)->title);
    board = next;
  }
  return titles;
}

void PrintPrediction(const Prediction& prediction, const RankBoards& boards,
                     std::span<const double> rank_weights) {
  const bool are_alike = std::ranges::count(boards, boards.front()) == std::ssize(boards);
  const size_t slowest = prediction.SlowestRank();
  std::printf(
      "Prediction for %s: %.1f tokens/s, of which a token takes %.1f ms to read weights and "
      "%.1f ms to exchange sums. %s alone, if it had the memory: %.1f tokens/s.\n",
      TitlesOf(boards).c_str(), 1.0 / prediction.Seconds(), 1e3 * prediction.reading[slowest],
      1e3 * prediction.exchanging, are_alike ? "One board" : "The fastest board",
      1.0 / prediction.alone);
  // A rank has whole heads and blocks of channels, so that its part is only about what it should
  // be.
  if (FollowBandwidths(rank_weights, boards)) return;
  std::string weights;
  for (const raspberry_pi::Board* board : boards) {
    weights += Format("{}{:.1f}", weights.empty() ? "" : ",", board->read_bandwidth_gb_s);
  }
  std::printf(
      "The others wait for rank %zu, which reads for the longest time. --rank-weights %s gives "
      "each board as much as it reads in the same time.\n",
      slowest, weights.c_str());
}

void PrintDisks(const std::vector<RankPlan>& plans, const RankBoards& boards, double seconds) {
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    const std::string text = DiskText(plans[rank].memory, boards[rank]->usable_bytes, seconds);
    if (!text.empty()) std::printf("Rank %zu: %s", rank, text.c_str());
  }
}

void PrintJson(const std::vector<RankPlan>& plans, const RankBoards& boards,
               const std::optional<Prediction>& prediction) {
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
    if (boards.empty() || plan.memory.token_expert_bytes == 0) continue;
    ranks.back()["disk_bytes_per_token"] =
        plan.memory.DiskBytesPerToken(boards[ranks.size() - 1]->usable_bytes);
  }
  nlohmann::ordered_json json = {{"ranks", ranks}};
  if (prediction) {
    json["predicted"] = {{"reading_seconds", prediction->reading[prediction->SlowestRank()]},
                         {"exchange_seconds", prediction->exchanging},
                         {"tokens_per_second", 1.0 / prediction->Seconds()},
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
  const size_t num_ranks = link_options.weights.size();
  if (!arguments.plot_path.empty()) {
    return Fail(ErrorCode::kUsage, "--plot draws the plan of a model on one board");
  }
  CRIA_ASSIGN_OR_RETURN(const RankBoards boards, BoardsNamed(arguments.board, num_ranks));
  // Boards run the 64-bit system.
  CRIA_RETURN_IF_ERROR(CheckInstructions(boards, model, options));
  const ProgramKind kind = boards.empty() ? ThisProgramKind() : ProgramKind::kArm64;
  const size_t num_candidates = SamplerOptions().top_k;
  std::vector<RankPlan> plans;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    EngineOptions rank_options = options;
    if (!boards.empty() && options.num_threads == 0) {
      rank_options.num_threads = boards[rank]->num_cores;
    }
    CRIA_ASSIGN_OR_RETURN(RankPlan plan, PlanRank(model, std::move(rank_options), link_options,
                                                  rank, num_candidates, kind));
    plans.push_back(std::move(plan));
  }
  std::optional<Prediction> prediction;
  if (!boards.empty()) {
    prediction = Predict(model, plans, boards, link_options.wire, num_candidates, network);
  }
  if (arguments.json) {
    PrintJson(plans, boards, prediction);
  } else {
    PrintTable(plans);
    if (HasKeysTwice(plans)) {
      std::puts(
          "There are more ranks than heads of keys and values: some ranks have the same ones.");
    }
    if (prediction) {
      PrintPrediction(*prediction, boards, link_options.weights);
      PrintDisks(plans, boards, prediction->Seconds());
    }
  }
  return CheckMemory(plans, boards, arguments.memory_limit_bytes);
}

}  // namespace cria::cli
