#include "cli/mpi/rank_options.h"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace cria::cli {
namespace {

// Ranks hear of each other each second, and later if a board is busy.
constexpr double kMinSeconds = 3;

// All numbers of a list with commas; nothing may be between or behind them.
Result<std::vector<double>> ReadNumbers(std::string_view option, std::string_view text) {
  std::vector<double> numbers;
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    double number = 0.0;
    const auto [rest, error] = std::from_chars(next, end, number);
    // NaN is not above 0.
    if (error != std::errc() || !(number > 0.0 && number < 1e6)) break;
    numbers.push_back(number);
    if (rest == end) return numbers;
    if (*rest != ',') break;
    next = rest + 1;
  }
  return Fail(ErrorCode::kUsage, Format("{} takes numbers above 0, not \"{}\"", option, text));
}

Result<double> ReadNumber(std::string_view option, std::string_view text) {
  CRIA_ASSIGN_OR_RETURN(const std::vector<double> numbers, ReadNumbers(option, text));
  if (numbers.size() == 1) return numbers.front();
  return Fail(ErrorCode::kUsage, Format("{} takes one number", option));
}

Result<size_t> ReadCount(std::string_view option, std::string_view text) {
  size_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && rest == text.data() + text.size()) return count;
  return Fail(ErrorCode::kUsage, Format("{} takes a whole number, not \"{}\"", option, text));
}

Result<std::chrono::seconds> ReadSeconds(std::string_view option, std::string_view text) {
  CRIA_ASSIGN_OR_RETURN(const double seconds, ReadNumber(option, text));
  if (seconds >= kMinSeconds) return std::chrono::seconds(static_cast<long long>(seconds));
  return Fail(ErrorCode::kUsage,
              Format("{} takes a number of seconds, at least {}", option, kMinSeconds));
}

Result<WireType> ReadWireType(std::string_view option, std::string_view text) {
  if (text == "f32") return WireType::kF32;
  if (text == "f16") return WireType::kF16;
  if (text == "int8") return WireType::kInt8;
  return Fail(ErrorCode::kUsage, Format("{} takes f32, f16 or int8, not \"{}\"", option, text));
}

// Returns whether it is an option of ranks.
Result<bool> Store(const std::string& option, const std::string& value, RankOptions& options) {
  if (option == "--rank-weights") {
    CRIA_ASSIGN_OR_RETURN(options.link.weights, ReadNumbers(option, value));
  } else if (option == "--rank-wire") {
    CRIA_ASSIGN_OR_RETURN(options.link.wire, ReadWireType(option, value));
  } else if (option == "--rank-timeout") {
    CRIA_ASSIGN_OR_RETURN(options.limits.silence, ReadSeconds(option, value));
  } else if (option == "--rank-stall") {
    CRIA_ASSIGN_OR_RETURN(options.limits.stall, ReadSeconds(option, value));
  } else if (option == "--rank-start") {
    CRIA_ASSIGN_OR_RETURN(options.limits.start, ReadSeconds(option, value));
  } else if (option == "--ranks") {
    CRIA_ASSIGN_OR_RETURN(options.num_ranks, ReadCount(option, value));
  } else if (option == "--rank") {
    CRIA_ASSIGN_OR_RETURN(options.rank, ReadCount(option, value));
  } else if (option == "--network-mbit") {
    CRIA_ASSIGN_OR_RETURN(const double megabits, ReadNumber(option, value));
    options.has_network = true;
    options.network.bytes_per_second = megabits * 1e6 / 8;
  } else if (option == "--network-ms") {
    CRIA_ASSIGN_OR_RETURN(const double milliseconds, ReadNumber(option, value));
    options.has_network = true;
    options.network.latency_seconds = milliseconds * 1e-3;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<RankOptions> TakeRankOptions(std::vector<std::string>& arguments) {
  RankOptions options;
  std::vector<std::string> others;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    // What stands behind it are no options.
    if (argument == "--") {
      others.insert(others.end(), arguments.begin() + static_cast<ptrdiff_t>(i), arguments.end());
      break;
    }
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const bool is_joined = equals != std::string::npos;
    const std::string next = i + 1 < arguments.size() ? arguments[i + 1] : "";
    CRIA_ASSIGN_OR_RETURN(
        const bool is_taken,
        Store(argument.substr(0, equals), is_joined ? argument.substr(equals + 1) : next, options));
    if (!is_taken) {
      others.push_back(argument);
    } else if (!is_joined) {
      ++i;
    }
  }
  if (options.rank && *options.rank >= options.num_ranks) {
    return Fail(ErrorCode::kUsage,
                Format("--rank {} is not one of --ranks {}, which are counted from 0",
                       *options.rank, options.num_ranks));
  }
  const size_t num_weights = options.link.weights.size();
  if (options.num_ranks != 0 && num_weights != 0 && num_weights != options.num_ranks) {
    return Fail(ErrorCode::kUsage,
                Format("--rank-weights has {} numbers for --ranks {}: give one for each rank",
                       num_weights, options.num_ranks));
  }
  arguments = std::move(others);
  return options;
}

Status CheckRankOptions(const RankOptions& options, std::string_view command, size_t num_running) {
  if (options.has_network && command != "plan") {
    return Fail(ErrorCode::kUsage, "--network-mbit and --network-ms are for plan");
  }
  if (options.rank && command != "pack") {
    return Fail(ErrorCode::kUsage, "--rank is for pack, which packs the part of that rank");
  }
  if (command == "pack") {
    if (num_running > 0) {
      return Fail(
          ErrorCode::kUsage,
          Format("mpirun does not pack: \"cria pack --ranks {} --rank R\" on each board packs "
                 "the part of its rank, or the first start does",
                 num_running));
    }
    if (options.num_ranks != 0 && !options.rank) {
      return Fail(ErrorCode::kUsage,
                  "pack --ranks packs the part of one rank: say which with --rank");
    }
  }
  if (command == "plan" || command == "pack") {
    if (options.num_ranks != 0 || num_running > 0 || options.link.weights.empty()) return {};
    return Fail(ErrorCode::kUsage, Format("{} needs --ranks for --rank-weights", command));
  }
  if (options.num_ranks == 0 || options.num_ranks == num_running) return {};
  return Fail(ErrorCode::kUsage,
              Format("--ranks is for plan and pack; \"mpirun -np {} cria {}\" starts {} ranks",
                     options.num_ranks, command, options.num_ranks));
}

}  // namespace cria::cli
