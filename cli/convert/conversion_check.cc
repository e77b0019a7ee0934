#include "cli/convert/conversion_check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "cli/convert/converter_engine.h"
#include "converter/step_costs.h"
#include "core/format.h"
#include "core/output_file.h"
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

EngineOptions OptionsForCheck(size_t num_threads) {
  EngineOptions options;
  options.num_threads = num_threads;
  options.kv_type = KvType::kF32;
  options.max_logit_bytes = kMeasuringLogitBytes;
  return options;
}

Result<std::unique_ptr<Engine>> LoadInF32(const std::string& checkpoint_path,
                                          const std::string& model_path,
                                          const ConvertOptions& options,
                                          const ProgressCallback& progress) {
  ConvertOptions in_f32 = options;
  in_f32.weights = Scheme::kF32;
  in_f32.embedding.reset();
  in_f32.head.reset();
  in_f32.target.reset();
  in_f32.calibration.reset();
  in_f32.error_texts.clear();
  CRIA_ASSIGN_OR_RETURN(platform::File file,
                        ConvertUnnamed(checkpoint_path, model_path, in_f32, progress));
  return LoadInConverter(std::move(file), OptionsForCheck(options.num_threads));
}

// The model file that does not have its name yet.
Result<std::unique_ptr<Engine>> LoadOutput(const Conversion& conversion,
                                           const ConvertOptions& options) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, conversion.file().OpenToRead());
  return LoadInConverter(std::move(file), OptionsForCheck(options.num_threads));
}

bool IsVerifyFolder(const std::filesystem::directory_entry& entry, const std::string& prefix) {
  constexpr size_t kRandomCharacters = 6;
  const std::string name = entry.path().filename().string();
  std::error_code error;
  return name.starts_with(prefix) && name.size() == prefix.size() + kRandomCharacters &&
         entry.is_directory(error) && !entry.is_symlink(error);
}

Result<LogitComparison> Compare(Engine& reference, Engine& model,
                                std::span<const char* const> texts,
                                const ProgressCallback& progress) {
  LogitComparison comparison;
  const size_t window = model.decoder().context_tokens();
  std::vector<std::vector<int32_t>> tokens;
  size_t total = 0;
  for (const char* text : texts) {
    CRIA_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                          reference.tokenizer().Encode(text, {.parse_special = false}));
    total += ids.size();
    tokens.push_back(std::move(ids));
  }
  size_t done = 0;
  for (const std::vector<int32_t>& ids : tokens) {
    for (std::span<const int32_t> rest = ids; !rest.empty();) {
      const auto part = rest.first(std::min(rest.size(), window));
      rest = rest.subspan(part.size());
      CRIA_RETURN_IF_ERROR(AddComparison(reference.decoder(), model.decoder(), part, comparison));
      done += part.size();
      if (progress != nullptr && !progress({"verifying", done, total})) {
        return Fail(ErrorCode::kCancelled, "cancelled; nothing was written");
      }
    }
  }
  return comparison;
}

// Judges a failure with a model that was written a moment ago: only a file that is malformed is the
// model's fault.
Result<ConversionCheck> FailOrObstacle(const std::string& model_path, const Error& error) {
  if (error.code() == ErrorCode::kInvalidFile || error.code() == ErrorCode::kInternal) {
    return Fail(error.code(),
                Format("{}: failed the verification: {}", model_path, error.message()));
  }
  return ConversionCheck{.obstacle = error};
}

}  // namespace

std::span<const char* const> ShortTexts() { return kTexts; }

Result<ConversionCheck> CheckConversion(const std::string& checkpoint_path,
                                        const std::string& model_path, const Conversion& conversion,
                                        const ModelConfig& config, const ConvertOptions& options,
                                        std::span<const char* const> texts,
                                        const ProgressCallback& progress) {
  const bool is_f32 = std::ranges::all_of(
      conversion.report().kinds, [](const auto& kind) { return kind.scheme == Scheme::kF32; });
  const double converting_part = is_f32 ? 0.0 : ConvertingPartOfVerifying(config);
  // A model in f32 is compared with itself, which shows whether its predictions are numbers.
  const auto reference =
      is_f32 ? LoadOutput(conversion, options)
             : LoadInF32(checkpoint_path, model_path, options,
                         ProgressOfStep(progress, ConvertStep::kVerifying, 0.0, converting_part));
  if (!reference) {
    const Error& error = reference.error();
    if (is_f32) return FailOrObstacle(model_path, error);
    if (error.code() == ErrorCode::kCancelled) return std::unexpected(error);
    // The checkpoint was converted a moment ago.
    return ConversionCheck{.obstacle =
                               Error(error.code(),
                                     "the checkpoint could not be converted to f32, to compare "
                                     "with: " +
                                         error.message(),
                                     error.remedy())};
  }
  const auto model = LoadOutput(conversion, options);
  if (!model) return FailOrObstacle(model_path, model.error());
  const auto comparison =
      Compare(**reference, **model, texts,
              ProgressOfStep(progress, ConvertStep::kVerifying, converting_part, 1.0));
  if (!comparison && comparison.error().code() == ErrorCode::kCancelled) {
    return std::unexpected(comparison.error());
  }
  if (!comparison) return FailOrObstacle(model_path, comparison.error());
  if (comparison->num_positions == 0) {
    return ConversionCheck{
        .obstacle = Error(ErrorCode::kUnsupported,
                          model_path + ": its vocabulary has no tokens for the test texts")};
  }
  if (!std::isfinite(comparison->largest_difference)) {
    return Fail(ErrorCode::kInvalidFile,
                model_path + ": failed the verification: it predicts values that are not finite");
  }
  return ConversionCheck{.comparison = *comparison, .is_f32 = is_f32};
}

void RemoveAbandonedChecks(const std::string& model_path) {
  const std::filesystem::path path(model_path);
  const std::string prefix = path.filename().string() + ".verify-";
  std::error_code error;
  std::filesystem::directory_iterator entry(path.has_parent_path() ? path.parent_path() : ".",
                                            error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (!IsVerifyFolder(*entry, prefix)) continue;
    const std::filesystem::path model = entry->path() / "f32.cria";
    // Creating a file removes abandoned temporary files of its name; the new one is not kept.
    if (!OutputFile::Create(model, 0)) continue;
    std::error_code ignored;
    std::filesystem::remove(model, ignored);
    std::filesystem::remove(entry->path(), ignored);  // Fails if it has other files.
  }
}

std::string CheckText(const ConversionCheck& check) {
  const LogitComparison& comparison = check.comparison;
  if (check.is_f32) {
    return Format("verified: its predictions are finite numbers at {} positions",
                  comparison.num_positions);
  }
  return Format(
      "verified against f32 at {} positions: logits differ by at most {:.3g}, KL divergence {:.2g} "
      "nats, the most likely token is the same at {:.1f}%",
      comparison.num_positions, comparison.largest_difference, comparison.mean_divergence(),
      100.0 * comparison.same_top());
}

}  // namespace cria::cli
