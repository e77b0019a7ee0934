#include "cli/plan/memory_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/plan/board_name.h"
#include "cli/plan/memory_plot.h"
#include "cli/plot/svg.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "decode/state_cache.h"

namespace cria::cli {
namespace {

std::string_view KindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kPrivate:
      return "private";
    case MemoryKind::kMapped:
      return "mapped";
    case MemoryKind::kOnDemand:
      return "on demand";
    case MemoryKind::kInFile:
      return "in the file";
  }
  return "unknown";
}

std::string FlagsOf(const MemoryPlanOptions& options) {
  std::string flags = Format("-c {} --kv {} -b {} -t {}", options.decoder.context_tokens,
                             KvTypeName(options.decoder.kv_type), options.decoder.chunk_tokens,
                             options.num_threads);
  if (options.num_batch_threads != 0) flags += Format(" -tb {}", options.num_batch_threads);
  return flags;
}

nlohmann::ordered_json OptionsJson(const MemoryPlanOptions& options) {
  return {{"context_tokens", options.decoder.context_tokens},
          {"chunk_tokens", options.decoder.chunk_tokens},
          {"kv_type", KvTypeName(options.decoder.kv_type)},
          {"num_threads", options.num_threads},
          {"num_batch_threads", options.num_batch_threads},
          {"weights_in_memory", options.weights_in_memory}};
}

// Lines of a draft model have longer names.
constexpr size_t kMinNameColumns = 26;

std::string PlanTable(const ModelOutline& model, const MemoryPlan& plan) {
  size_t columns = kMinNameColumns;
  for (const MemoryLine& line : plan.lines) columns = std::max(columns, line.name().size());
  std::string table =
      Format("{:<{}} {:>14} {:>10}  {}\n", FlagsOf(plan.options), columns, "bytes", "", "kind");
  const auto add = [&](std::string_view name, uint64_t bytes, std::string_view remark) {
    table += Format("{:<{}} {:>14} {:>10}  {}\n", name, columns, bytes, FormatBytes(bytes), remark);
  };
  for (const MemoryLine& line : plan.lines) {
    if (line.bytes != 0) add(line.name(), line.bytes, KindName(line.kind));
  }
  add("= private", plan.private_bytes(), "the kernel cannot drop these pages");
  add("= mapped", plan.mapped_bytes(), "the kernel may drop these pages and read them again");
  if (plan.on_demand_bytes() != 0) {
    add("= on demand", plan.on_demand_bytes(), "read when a token chooses them; needs no memory");
  }
  add("= resident, steady", plan.steady_bytes(), "once the context is full");
  add("= resident, peak", plan.peak_bytes(), "what --memory-limit is compared with");
  add("address space", plan.address_space_bytes, "what ulimit -v bounds");
  add("model file", model.file_bytes, "on disk");
  if (plan.token_row_bytes != 0) {
    table += Format("A token reads {} of the per-layer embeddings, from the file.\n",
                    FormatBytes(plan.token_row_bytes));
  }
  if (model.tokenizer_is_estimated) {
    table +=
        "The weights are computed from config.json, and the size of the tokenizer is an "
        "estimate.\n";
  }
  return table;
}

// Whether a board has the memory, and what would fit if it does not.
struct BoardVerdict {
  const raspberry_pi::Board* board = nullptr;
  bool fits = false;
  std::vector<MemoryPlanOptions> fitting;
  // An upper bound: every token reads all weights and recurrent states once.
  double max_tokens_per_second = 0.0;
};

Result<BoardVerdict> JudgeBoard(const raspberry_pi::Board& board, const ModelOutline& model,
                                const MemoryPlan& plan, const platform::MemoryUsage& program) {
  const MemoryBounds bounds = {.resident_bytes = board.usable_bytes};
  BoardVerdict verdict = {.board = &board, .fits = Fits(plan, bounds)};
  if (!verdict.fits) {
    CRIA_ASSIGN_OR_RETURN(verdict.fitting, FindFitting(model, plan, bounds, program));
  }
  auto token_bytes = static_cast<double>(StateCache::BytesPerToken(model.config));
  for (const TensorLayout& matrix : model.matrices) {
    const double used_parts = matrix.num_parts == 1 ? 1 : model.config.num_experts_per_tok;
    token_bytes += static_cast<double>(matrix.data_bytes() + matrix.scale_bytes()) /
                   static_cast<double>(matrix.num_parts) * used_parts;
  }
  verdict.max_tokens_per_second = board.read_bandwidth_gb_s * 1e9 / token_bytes;
  return verdict;
}

// By continuous reading on a Raspberry Pi.
constexpr double kCardBytesPerSecond = 90e6;
constexpr double kSsdBytesPerSecond = 450e6;  // On its PCIe.

std::string VerdictText(const BoardVerdict& verdict, const MemoryPlan& plan) {
  const raspberry_pi::Board& board = *verdict.board;
  std::string text = Format("{}: {} for a program, ", board.title, FormatBytes(board.usable_bytes));
  if (verdict.fits) {
    text += Format("{} needed: it fits", FormatBytes(plan.peak_bytes()));
  } else {
    text += Format("{} needed: it does not fit", FormatBytes(plan.peak_bytes()));
    for (size_t i = 0; i < verdict.fitting.size(); ++i) {
      text += (i == 0 ? "; what would fit: " : ", or ") + FlagsOf(verdict.fitting[i]);
    }
    if (verdict.fitting.empty()) text += ", with any context";
  }
  text += Format("\nIts memory allows at most {:.1f} tokens/s.\n", verdict.max_tokens_per_second);
  if (!verdict.fits) return text;
  return text + DiskText(plan, board.usable_bytes, 1.0 / verdict.max_tokens_per_second);
}

nlohmann::ordered_json VerdictJson(const BoardVerdict& verdict, const MemoryPlan& plan) {
  nlohmann::ordered_json fitting = nlohmann::ordered_json::array();
  for (const MemoryPlanOptions& options : verdict.fitting) fitting.push_back(OptionsJson(options));
  nlohmann::ordered_json json = {{"name", verdict.board->name},
                                 {"usable_bytes", verdict.board->usable_bytes},
                                 {"fits", verdict.fits},
                                 {"fitting", fitting},
                                 {"max_tokens_per_second", verdict.max_tokens_per_second}};
  if (plan.token_expert_bytes != 0) {
    json["disk_bytes_per_token"] = plan.DiskBytesPerToken(verdict.board->usable_bytes);
  }
  return json;
}

}  // namespace

std::string DiskText(const MemoryPlan& plan, uint64_t resident_bytes, double seconds) {
  const uint64_t bytes = plan.DiskBytesPerToken(resident_bytes);
  if (bytes == 0) return "";
  const auto tokens_per_second = [&](double bytes_per_second) {
    return 1.0 / (seconds + static_cast<double>(bytes) / bytes_per_second);
  };
  return Format(
      "A token reads about {} of experts from the disk if tokens choose evenly: that allows at "
      "most {:.2f} tokens/s with a fast microSD card, and {:.2f} with an SSD.\n",
      FormatBytes(bytes), tokens_per_second(kCardBytesPerSecond),
      tokens_per_second(kSsdBytesPerSecond));
}

nlohmann::ordered_json LinesJson(const MemoryPlan& plan) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const MemoryLine& line : plan.lines) {
    lines.push_back({{"name", line.name()}, {"kind", KindName(line.kind)}, {"bytes", line.bytes}});
  }
  return lines;
}

nlohmann::ordered_json PlanJson(const ModelOutline& model, const MemoryPlan& plan) {
  nlohmann::ordered_json json = {{"options", OptionsJson(plan.options)},
                                 {"lines", LinesJson(plan)},
                                 {"private_bytes", plan.private_bytes()},
                                 {"mapped_bytes", plan.mapped_bytes()},
                                 {"steady_bytes", plan.steady_bytes()},
                                 {"peak_bytes", plan.peak_bytes()},
                                 {"address_space_bytes", plan.address_space_bytes},
                                 {"model_file_bytes", model.file_bytes}};
  if (plan.token_expert_bytes != 0) {
    json["on_demand_bytes"] = plan.on_demand_bytes();
    json["token_expert_bytes"] = plan.token_expert_bytes;
  }
  if (plan.token_row_bytes != 0) json["token_row_bytes"] = plan.token_row_bytes;
  if (model.tokenizer_is_estimated) json["tokenizer_is_estimated"] = true;
  return json;
}

Status PrintPlan(const ModelOutline& model, EngineOptions options, const PlanArguments& arguments,
                 const std::shared_ptr<const ModelOutline>& draft_model) {
  const raspberry_pi::Board* board = nullptr;
  if (!arguments.board.empty()) {
    CRIA_ASSIGN_OR_RETURN(board, BoardNamed(arguments.board));
    if (options.num_threads == 0) options.num_threads = board->num_cores;
  }
  // Boards run the 64-bit system.
  const platform::MemoryUsage program =
      ProgramMemory(board == nullptr ? ThisProgramKind() : ProgramKind::kArm64, arguments.program);
  CRIA_RETURN_IF_ERROR(ValidateDraftOptions(options.drafts));
  const MemoryPlanOptions resolved = ResolveOptions(model, options, draft_model);
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(model.config, resolved.decoder));
  CRIA_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(model, resolved, program));
  if (!arguments.plot_path.empty()) {
    CRIA_ASSIGN_OR_RETURN(
        const Figure figure,
        PlotMemory(model, options, {.board = board, .program = program}, draft_model));
    CRIA_RETURN_IF_ERROR(WriteFigure(figure, arguments.plot_path));
  }
  std::optional<BoardVerdict> verdict;
  if (board != nullptr) {
    CRIA_ASSIGN_OR_RETURN(verdict, JudgeBoard(*board, model, plan, program));
  }
  if (arguments.json) {
    nlohmann::ordered_json json = PlanJson(model, plan);
    if (verdict) json["board"] = VerdictJson(*verdict, plan);
    if (arguments.memory_limit_bytes && plan.token_expert_bytes != 0) {
      json["disk_bytes_per_token"] = plan.DiskBytesPerToken(*arguments.memory_limit_bytes);
    }
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    std::fputs(PlanTable(model, plan).c_str(), stdout);
    if (verdict) std::fputs(VerdictText(*verdict, plan).c_str(), stdout);
    if (arguments.memory_limit_bytes) {
      std::fputs(DiskText(plan, *arguments.memory_limit_bytes, 0.0).c_str(), stdout);
    }
  }
  std::fflush(stdout);
  if (verdict && !verdict->fits) {
    return Fail(ErrorCode::kOutOfMemory,
                Format("the model does not fit the memory of {}", board->title));
  }
  if (!arguments.memory_limit_bytes) return {};
  const MemoryBounds limit = {.resident_bytes = arguments.memory_limit_bytes,
                              .resident_source = "--memory-limit"};
  return CheckFits(model, plan, limit, program);
}

}  // namespace cria::cli
