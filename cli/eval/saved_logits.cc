#include "cli/eval/saved_logits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/format.h"
#include "llm/measure/log_sum_exp.h"
#include "ops/vector.h"

namespace cria::cli {
namespace {

// A file has this, the tokens of the text as int32, and one row for each prediction: the negative
// log-likelihood of the text's token as f32; if only some tokens are kept, their ids as uint32, the
// most likely one first; and their logarithms of probabilities as f16. All numbers are
// little-endian, as on every machine for which Cria is made.
struct Header {
  char magic[8] = {'C', 'R', 'I', 'A', 'L', 'O', 'G', 'P'};
  uint32_t version = 1;
  uint32_t vocab_size = 0;
  uint32_t window_tokens = 0;
  uint32_t kept_tokens = 0;
  int32_t bos_token_id = -1;
  uint32_t reserved = 0;
  uint64_t num_tokens = 0;
};

constexpr uint64_t kTokenBytes = sizeof(int32_t);
constexpr uint64_t kLossBytes = sizeof(float);
constexpr uint64_t kIdBytes = sizeof(uint32_t);
constexpr uint64_t kLogProbabilityBytes = sizeof(uint16_t);
// So that no product of the sizes overflows.
constexpr uint64_t kMaxNumber = std::numeric_limits<int32_t>::max();
// The lowest number of an f16 stands for everything below it.
constexpr float kLowestF16 = -65504.0f;

uint64_t TextEnd(const SavedLogitsOf& of) {
  return sizeof(Header) + of.tokens.size() * kTokenBytes;
}

bool HasMagic(const Header& header) {
  return std::memcmp(header.magic, Header().magic, sizeof header.magic) == 0;
}

// A file that has something else is not replaced by mistake.
Status CheckReplaceableBySaved(const std::string& path) {
  const auto file = platform::File::Open(path);
  if (!file || file->size_bytes() == 0) return {};
  Header header;
  const bool is_saved = file->size_bytes() >= sizeof header &&
                        file->ReadAt(0, std::as_writable_bytes(std::span(&header, 1))) &&
                        HasMagic(header);
  if (is_saved) return {};
  return Fail(ErrorCode::kUsage, path + ": exists and has no saved logits; choose another name");
}

Status CheckHeader(const Header& header, const std::string& path) {
  if (!HasMagic(header)) {
    return Fail(ErrorCode::kInvalidFile, path + ": is not a file of saved logits");
  }
  const uint32_t version = Header().version;
  if (header.version != version) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: has version {} of the format, and this program reads {}", path,
                       header.version, version));
  }
  const bool has_text =
      header.num_tokens > (header.bos_token_id < 0 ? 1u : 0u) && header.num_tokens <= kMaxNumber;
  if (!has_text || header.vocab_size == 0 || header.vocab_size > kMaxNumber ||
      header.window_tokens < 2 || header.kept_tokens > header.vocab_size) {
    return Fail(ErrorCode::kInvalidFile, path + ": is damaged: its header has impossible numbers");
  }
  return {};
}

}  // namespace

uint64_t SavedLogitsOf::row_bytes() const {
  if (kept_tokens == 0) return kLossBytes + vocab_size * kLogProbabilityBytes;
  return kLossBytes + kept_tokens * (kIdBytes + kLogProbabilityBytes);
}

uint64_t SavedLogitsOf::file_bytes() const {
  return TextEnd(*this) + num_predictions() * row_bytes();
}

SavedLogitsWriter::SavedLogitsWriter(OutputFile file, SavedLogitsOf of)
    : file_(std::move(file)), of_(std::move(of)), offset_(TextEnd(of_)) {
  row_.resize(of_.row_bytes());
}

Result<SavedLogitsWriter> SavedLogitsWriter::Create(const std::string& path, SavedLogitsOf of) {
  Header header;
  header.vocab_size = of.vocab_size;
  header.window_tokens = of.window_tokens;
  header.kept_tokens = of.kept_tokens;
  header.bos_token_id = of.bos_token_id;
  header.num_tokens = of.tokens.size();
  CRIA_RETURN_IF_ERROR(CheckReplaceableBySaved(path));
  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, of.file_bytes()));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(&header, 1))));
  CRIA_RETURN_IF_ERROR(file.WriteAt(sizeof header, std::as_bytes(std::span(of.tokens))));
  return SavedLogitsWriter(std::move(file), std::move(of));
}

Status SavedLogitsWriter::Add(std::span<const float> logits, double log_sum,
                              float negative_log_likelihood) {
  const size_t kept = of_.kept_tokens == 0 ? logits.size() : of_.kept_tokens;
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0u);
  if (of_.kept_tokens != 0) {
    const auto more_likely = [&](uint32_t a, uint32_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    };
    std::ranges::partial_sort(order_, order_.begin() + static_cast<ptrdiff_t>(kept), more_likely);
  }
  log_probabilities_.resize(kept);
  for (size_t i = 0; i < kept; ++i) {
    const auto value = static_cast<float>(double{logits[order_[i]]} - log_sum);
    log_probabilities_[i] = std::max(value, kLowestF16);
  }
  std::byte* to = row_.data();
  std::memcpy(to, &negative_log_likelihood, kLossBytes);
  to += kLossBytes;
  if (of_.kept_tokens != 0) {
    std::memcpy(to, order_.data(), kept * kIdBytes);
    to += kept * kIdBytes;
  }
  std::vector<uint16_t> halves(kept);
  ops::ToF16(log_probabilities_.data(), kept, halves.data());
  std::memcpy(to, halves.data(), kept * kLogProbabilityBytes);
  CRIA_RETURN_IF_ERROR(file_.WriteAt(offset_, row_));
  offset_ += row_.size();
  return {};
}

SavedLogits::SavedLogits(platform::File file, SavedLogitsOf of, Digest digest)
    : file_(std::move(file)), of_(std::move(of)), digest_(digest) {
  row_.resize(of_.row_bytes());
  tokens_.resize(of_.kept_tokens);
  log_probabilities_.resize(of_.kept_tokens == 0 ? of_.vocab_size : of_.kept_tokens);
}

Result<SavedLogits> SavedLogits::Open(const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, platform::File::Open(path));
  Header header;
  if (file.size_bytes() < sizeof header) {
    return Fail(ErrorCode::kInvalidFile, path + ": is not a file of saved logits");
  }
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(&header, 1))));
  CRIA_RETURN_IF_ERROR(CheckHeader(header, path));
  const auto wrong_length = [&] {
    return Fail(ErrorCode::kInvalidFile, path + ": is damaged: it has the wrong length");
  };
  if (header.num_tokens * kTokenBytes > file.size_bytes() - sizeof header) return wrong_length();
  SavedLogitsOf of = {.tokens = std::vector<int32_t>(header.num_tokens),
                      .bos_token_id = header.bos_token_id,
                      .window_tokens = header.window_tokens,
                      .vocab_size = header.vocab_size,
                      .kept_tokens = header.kept_tokens};
  // In two steps, because the product of impossible numbers could overflow.
  const uint64_t rows_bytes = file.size_bytes() - TextEnd(of);
  if (rows_bytes / of.row_bytes() != of.num_predictions() || of.file_bytes() != file.size_bytes()) {
    return wrong_length();
  }
  CRIA_RETURN_IF_ERROR(file.ReadAt(sizeof header, std::as_writable_bytes(std::span(of.tokens))));
  std::vector<std::byte> identity(TextEnd(of) + sizeof(uint64_t));
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, std::span(identity).first(TextEnd(of))));
  const uint64_t bytes = file.size_bytes();
  std::memcpy(identity.data() + TextEnd(of), &bytes, sizeof bytes);
  return SavedLogits(std::move(file), std::move(of), Digest128(identity));
}

Result<SavedLogits::Row> SavedLogits::Read(size_t position) {
  CRIA_RETURN_IF_ERROR(file_.ReadAt(TextEnd(of_) + position * of_.row_bytes(), row_));
  Row row;
  std::vector<uint16_t> halves(log_probabilities_.size());
  std::span<const std::byte> rest = row_;
  for (const std::span<std::byte> part :
       {std::as_writable_bytes(std::span(&row.negative_log_likelihood, 1)),
        std::as_writable_bytes(std::span(tokens_)), std::as_writable_bytes(std::span(halves))}) {
    std::ranges::copy(rest.first(part.size()), part.begin());
    rest = rest.subspan(part.size());
  }
  ops::FromF16(halves.data(), halves.size(), log_probabilities_.data());
  const auto is_possible = [](float value) { return value <= 0.0f && value >= kLowestF16; };
  if (!std::ranges::all_of(log_probabilities_, is_possible) ||
      !std::isfinite(row.negative_log_likelihood) ||
      std::ranges::any_of(tokens_, [&](uint32_t token) { return token >= of_.vocab_size; })) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: is damaged at position {}", file_.path(), position));
  }
  row.distribution = {.log_probabilities = log_probabilities_, .tokens = tokens_};
  // Rounding to f16 changes the sum of the probabilities, and that would count as divergence.
  if (tokens_.empty()) row.distribution.log_sum = LogSumExp(log_probabilities_);
  return row;
}

}  // namespace cria::cli
