#include "cli/convert/conversion_check.h"

#include <stdlib.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "core/format.h"
#include "llm/engine.h"

namespace cria::cli {
namespace {

constexpr const char* kTexts[] = {
    "The river was high that spring, and the old bridge had been closed for a week when",
    "Q: How many legs do three spiders have?\nA: A spider has eight legs, so three have",
    R"(def mean(values):
    total = 0
    for value in values:
        total += value
    return)",
    "L'été dernier, 1 204 personnes ont visité le musée; 今年は",
};

// A folder that goes with what is in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Beside(const std::string& path) {
    TemporaryFolder folder;
    folder.path_ = path + ".verify-XXXXXX";
    if (mkdtemp(folder.path_.data()) == nullptr) {
      const int reason = errno;
      return Fail(ErrorCode::kIo, Format("{}: cannot make this folder: {}",
                                         std::exchange(folder.path_, ""), std::strerror(reason)));
    }
    return folder;
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::string path_;
};

Result<std::unique_ptr<Engine>> LoadForCheck(const std::string& path, size_t num_threads) {
  EngineOptions options;
  options.num_threads = num_threads;
  options.kv_type = KvType::kF32;
  return Engine::Load(path, options);
}

Result<std::unique_ptr<Engine>> LoadInF32(const std::string& checkpoint_path,
                                          const std::string& model_path,
                                          const ConvertOptions& options,
                                          const ProgressCallback& progress) {
  // Removed while the engine still reads the file, which is gone when the engine is.
  CRIA_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Beside(model_path));
  const std::string path = folder.path() + "/f32.cria";
  ConvertOptions in_f32 = options;
  in_f32.weights = Scheme::kF32;
  in_f32.embedding.reset();
  in_f32.head.reset();
  if (auto converted = Convert(checkpoint_path, path, in_f32, progress); !converted) {
    return std::unexpected(converted.error());
  }
  return LoadForCheck(path, options.num_threads);
}

}  // namespace

Result<LogitComparison> CheckConversion(const std::string& checkpoint_path,
                                        const std::string& model_path,
                                        const ConvertOptions& options,
                                        const ProgressCallback& progress) {
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> reference,
                        LoadInF32(checkpoint_path, model_path, options, progress));
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> model,
                        LoadForCheck(model_path, options.num_threads));
  LogitComparison comparison;
  for (const char* text : kTexts) {
    const auto tokens = reference->tokenizer().Encode(text, {.parse_special = false});
    if (!tokens) continue;  // A vocabulary need not have every character.
    CRIA_RETURN_IF_ERROR(
        AddComparison(reference->decoder(), model->decoder(), *tokens, comparison));
  }
  if (comparison.num_positions == 0) {
    return Fail(ErrorCode::kUnsupported,
                model_path +
                    ": cannot be verified: its vocabulary has no token for any of the texts "
                    "that this takes");
  }
  if (!std::isfinite(comparison.largest_difference)) {
    return Fail(ErrorCode::kInvalidFile,
                model_path + ": does not verify: it predicts values that are not finite");
  }
  return comparison;
}

std::string ComparisonText(const LogitComparison& comparison) {
  return Format(
      "verified against f32 at {} positions: logits differ by at most {:.3g}, KL divergence {:.2g} "
      "nats, the most likely token is the same at {:.1f}%",
      comparison.num_positions, comparison.largest_difference, comparison.mean_divergence(),
      100.0 * comparison.same_top());
}

}  // namespace cria::cli
