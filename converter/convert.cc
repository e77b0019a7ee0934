#include "converter/convert.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "converter/calibrate_plan.h"
#include "converter/hugging_face/hf_checkpoint.h"
#include "converter/hugging_face/hf_config.h"
#include "converter/open_checkpoint.h"
#include "converter/plan_conversion.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "converter/write/file_plan.h"
#include "converter/write/metadata.h"
#include "converter/write/model_writer.h"
#include "core/format.h"
#include "core/platform.h"
#include "core/thread_pool.h"
#include "model/file_layout.h"
#include "model/path_contents.h"

namespace cria {
namespace {

std::vector<TensorKindReport> SummarizeKinds(const FilePlan& plan,
                                             const std::vector<QuantizationError>& errors) {
  std::vector<TensorKindReport> kinds;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const StoredTensor& stored = plan.tensors[i].stored;
    auto kind = std::ranges::find_if(kinds, [&](const TensorKindReport& known) {
      return known.role == stored.spec.role && known.scheme == stored.layout.scheme;
    });
    if (kind == kinds.end()) {
      kinds.push_back({.role = stored.spec.role, .scheme = stored.layout.scheme});
      kind = kinds.end() - 1;
    }
    ++kind->num_tensors;
    kind->num_weights += uint64_t{stored.spec.output_channels} * stored.spec.input_channels;
    kind->stored_bytes += stored.data.bytes + stored.scales.bytes;
    kind->error += errors[i];
  }
  return kinds;
}

ConvertReport MakeReport(const Checkpoint& checkpoint, const FilePlan& plan,
                         const WrittenModel& written) {
  ConvertReport report = {.name = checkpoint.name,
                          .notes = checkpoint.notes,
                          .file_bytes = plan.file_bytes,
                          .digest = written.digest,
                          .kinds = SummarizeKinds(plan, written.errors)};
  uint64_t stored_bytes = 0;
  uint64_t stored_weights = 0;
  for (const TensorKindReport& kind : report.kinds) {
    stored_bytes += kind.stored_bytes;
    stored_weights += kind.num_weights;
    const bool is_repeated =
        kind.role == TensorRole::kLmHead && checkpoint.config.tie_word_embeddings;
    if (!is_repeated) report.num_parameters += kind.num_weights;
  }
  report.bits_per_weight =
      8.0 * static_cast<double>(stored_bytes) / static_cast<double>(stored_weights);
  return report;
}

Status FailAsInput(const std::filesystem::path& output_path) {
  return Fail(ErrorCode::kUsage,
              Format("{}: is a file of the checkpoint, which would be overwritten; choose "
                     "another output",
                     output_path.string()));
}

// Refuses an output that is an input: the finished file would replace it. In the folder of a
// checkpoint, every file with contents counts as one, unless it is a model that was converted.
// Other files that Cria did not write are replaced only if `overwrite` allows it. A model that is
// given as the checkpoint is not an error here: OpenCheckpoint says what it is.
Status CheckOutput(const std::filesystem::path& output_path,
                   const std::filesystem::path& checkpoint_path, bool overwrite) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(output_path, ignored)) return {};
  // A link is replaced by way of its target.
  const auto folder = std::filesystem::canonical(output_path, ignored).parent_path();
  const bool is_checkpoint = std::filesystem::equivalent(output_path, checkpoint_path, ignored);
  const bool is_in_folder = std::filesystem::equivalent(folder, checkpoint_path, ignored) &&
                            std::filesystem::file_size(output_path, ignored) > 0;
  if ((is_checkpoint || is_in_folder) &&
      InspectPath(output_path.string()).kind != ContentKind::kModel) {
    return FailAsInput(output_path);
  }
  return overwrite ? Status() : CheckReplaceable(output_path.string());
}

Status CheckIsNoneOfWeights(const std::filesystem::path& output_path,
                            const TensorSources& tensors) {
  std::set<std::string_view> paths;
  std::error_code ignored;
  for (const auto& [name, tensor] : tensors) {
    if (paths.insert(tensor.file->path()).second &&
        std::filesystem::equivalent(output_path, tensor.file->path(), ignored)) {
      return FailAsInput(output_path);
    }
  }
  return {};
}

// Slow cores are used, too: unlike a token, a tensor does not wait for them at every layer.
Result<ThreadPool> CreateThreads(const ConvertOptions& options) {
  return ThreadPool::Create(
      options.num_threads != 0
          ? options.num_threads
          : std::max<size_t>(1, platform::ReadCpuTopology().processors.size()));
}

// The part of a model file that a tokenizer takes. Files have, for each token of the vocabulary, 46
// bytes with Llama 3's tokenizer, 42 with Llama 2's and 32 with GPT-2's; too much is better than
// too little.
size_t EstimateTokenizerBytes(uint32_t vocab_size) {
  constexpr size_t kBytesPerToken = 46;
  return vocab_size * kBytesPerToken;
}

ModelOutline OutlineOf(const ModelConfig& config, FilePlan& plan, size_t metadata_bytes) {
  ModelOutline outline = {.config = config,
                          // The embedding table is the first tensor.
                          .embedding = plan.tensors.front().stored.layout,
                          .metadata_bytes = metadata_bytes};
  PlaceTensors(outline.metadata_bytes, plan);
  outline.file_bytes = plan.file_bytes;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.stored.spec.role == TensorRole::kEmbedTokensPerLayer) {
      outline.per_layer_embedding = tensor.stored.layout;
    }
    if (!tensor.stored.spec.is_multiplied()) continue;
    outline.matrices.push_back(tensor.stored.layout);
    if (tensor.stored.spec.is_of_mtp) ++outline.num_mtp_matrices;
  }
  if (FindTensor(plan, TensorRole::kLmHead, kNoLayer) == nullptr) {
    const auto mtp = static_cast<ptrdiff_t>(outline.num_mtp_matrices);
    outline.matrices.insert(outline.matrices.end() - mtp, outline.embedding);
  }
  return outline;
}

// Whether a conversion that failed is to be tried without the calibration, which must not leave out
// what was asked for.
bool IsLeftOut(const std::optional<CalibrationOptions>& calibration, const Error& error) {
  return calibration && calibration->is_optional && !calibration->resume_folder &&
         calibration->rotation != true &&
         (error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kUnsupported);
}

ConvertOptions WithoutCalibration(const ConvertOptions& options) {
  ConvertOptions plain = options;
  plain.calibration.reset();
  return plain;
}

Result<Conversion> ConvertOnce(const std::filesystem::path& checkpoint_path,
                               const std::filesystem::path& output_path,
                               const ConvertOptions& options, const ProgressCallback& progress,
                               const CacheCallback& prefers_f16_cache) {
  CRIA_RETURN_IF_ERROR(CheckOutput(output_path, checkpoint_path, options.overwrite));
  CRIA_ASSIGN_OR_RETURN(const ThreadPool threads, CreateThreads(options));
  CRIA_ASSIGN_OR_RETURN(Preparation preparation, Prepare(checkpoint_path, options));
  CRIA_RETURN_IF_ERROR(CheckIsNoneOfWeights(output_path, preparation.checkpoint.tensors));
  CRIA_ASSIGN_OR_RETURN(PlannedConversion planned,
                        PlanConversion(std::move(preparation), options, threads, progress));
  const Checkpoint& checkpoint = planned.preparation.checkpoint;
  FilePlan& plan = planned.plan;
  std::vector<ResumeFolder> resume;
  CalibrationReport calibrated;
  if (planned.tokens) {
    CRIA_ASSIGN_OR_RETURN(calibrated, CalibratePlan(output_path, options.calibration->resume_folder,
                                                    threads, progress, planned, resume));
  }
  CRIA_ASSIGN_OR_RETURN(std::vector<MatrixError> errors,
                        MeasureErrorsOf(planned, options, threads, progress));
  ModelDescription description = Describe(planned.preparation);
  CRIA_ASSIGN_OR_RETURN(WrittenModel written,
                        WriteModel(description, plan, output_path, threads, progress));
  if (prefers_f16_cache) {
    CRIA_ASSIGN_OR_RETURN(platform::File model, written.file.OpenToRead());
    CRIA_ASSIGN_OR_RETURN(description.prefers_f16_cache, prefers_f16_cache(std::move(model)));
    if (description.prefers_f16_cache) {
      CRIA_RETURN_IF_ERROR(RewriteMetadata(description, plan, written));
    }
  }
  ConvertReport report = MakeReport(checkpoint, plan, written);
  const std::vector<std::string>& more_notes = planned.preparation.tokenizer.notes;
  report.notes.insert(report.notes.end(), more_notes.begin(), more_notes.end());
  report.equalized = planned.equalized;
  report.rotation = planned.rotation;
  report.calibrated = calibrated;
  report.found_codes = planned.found_codes;
  if (options.target) report.schemes = NameChoices(plan, planned.matrices, planned.choices[0]);
  report.errors = std::move(errors);
  return Conversion(std::move(written.file), std::move(report), std::move(resume));
}

Result<ChosenSchemes> ChooseSchemesOnce(const std::filesystem::path& checkpoint_path,
                                        const ConvertOptions& options,
                                        const ProgressCallback& progress) {
  CRIA_ASSIGN_OR_RETURN(const ThreadPool threads, CreateThreads(options));
  CRIA_ASSIGN_OR_RETURN(Preparation preparation, Prepare(checkpoint_path, options));
  CRIA_ASSIGN_OR_RETURN(PlannedConversion planned,
                        PlanConversion(std::move(preparation), options, threads, progress));
  return ChosenSchemes{
      .choices = NameChoices(planned.plan, planned.matrices, planned.choices.front()),
      .are_measured = options.calibration.has_value(),
      .are_compared = options.calibration.has_value() && planned.choices.size() > 1};
}

// Plans the experts' matrices as JoinMxfp4Tensors makes them.
void KeepMxfp4Experts(FilePlan& plan) {
  for (PlannedTensor& tensor : plan.tensors) {
    const TensorSpec& spec = tensor.stored.spec;
    if (spec.role == TensorRole::kExpertsGateUpProj || spec.role == TensorRole::kExpertsDownProj) {
      Apply(MakeTensorLayout(spec, Scheme::kMxfp4, 0), tensor);
    }
  }
}

}  // namespace

std::string_view ConverterVersion() { return CRIA_VERSION; }

Result<bool> HasCodesToKeep(const std::filesystem::path& checkpoint_path) {
  CRIA_ASSIGN_OR_RETURN(const bool has_no_weights, IsHfConfigWithoutWeights(checkpoint_path));
  if (has_no_weights) {
    return ReadHfModel(checkpoint_path / "config.json").transform([](const HfModel& model) {
      return model.has_mxfp4;
    });
  }
  CRIA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(checkpoint_path));
  return std::ranges::any_of(checkpoint.tensors,
                             [](const auto& tensor) { return CanKeepCodes(tensor.second); });
}

Status CheckOptions(const ConvertOptions& options) {
  return ChooseSchemes(options).transform([](const TensorSchemes&) {});
}

double TensorKindReport::rms_error() const {
  return num_weights == 0 ? 0.0 : std::sqrt(error.squared_error / static_cast<double>(num_weights));
}

double TensorKindReport::relative_rms_error() const {
  return error.squared_weights == 0.0 ? 0.0
                                      : std::sqrt(error.squared_error / error.squared_weights);
}

Result<Conversion> ConvertUncommitted(const std::filesystem::path& checkpoint_path,
                                      const std::filesystem::path& output_path,
                                      const ConvertOptions& options,
                                      const ProgressCallback& progress,
                                      const CacheCallback& prefers_f16_cache) {
  auto conversion = ConvertOnce(checkpoint_path, output_path, options, progress, prefers_f16_cache);
  if (conversion || !IsLeftOut(options.calibration, conversion.error())) return conversion;
  const Error obstacle = conversion.error();
  conversion = ConvertOnce(checkpoint_path, output_path, WithoutCalibration(options), progress,
                           prefers_f16_cache);
  if (conversion) {
    conversion->AddNote("the weights are rounded, because they cannot be chosen for a text: " +
                        obstacle.message());
  }
  return conversion;
}

Status Conversion::Commit() {
  CRIA_RETURN_IF_ERROR(file_.Commit());
  for (ResumeFolder& each : resume_) each.Remove();
  return {};
}

Result<ConvertReport> Convert(const std::filesystem::path& checkpoint_path,
                              const std::filesystem::path& output_path,
                              const ConvertOptions& options, const ProgressCallback& progress) {
  CRIA_ASSIGN_OR_RETURN(Conversion conversion,
                        ConvertUncommitted(checkpoint_path, output_path, options, progress));
  CRIA_RETURN_IF_ERROR(conversion.Commit());
  return conversion.report();
}

Result<platform::File> ConvertUnnamed(const std::filesystem::path& checkpoint_path,
                                      const std::filesystem::path& output_path,
                                      const ConvertOptions& options,
                                      const ProgressCallback& progress) {
  CRIA_ASSIGN_OR_RETURN(Conversion conversion,
                        ConvertUncommitted(checkpoint_path, output_path, options, progress));
  return conversion.file().TakeUnnamed();
}

Result<ChosenSchemes> ChooseSchemesFor(const std::filesystem::path& checkpoint_path,
                                       const ConvertOptions& options,
                                       const ProgressCallback& progress) {
  auto chosen = ChooseSchemesOnce(checkpoint_path, options, progress);
  if (chosen || !IsLeftOut(options.calibration, chosen.error())) return chosen;
  return ChooseSchemesOnce(checkpoint_path, WithoutCalibration(options), progress);
}

Result<VocabularyReport> ConvertVocabulary(const std::filesystem::path& checkpoint_path,
                                           const std::filesystem::path& output_path,
                                           const std::optional<ChatTemplateSource>& chat_template,
                                           bool overwrite) {
  CRIA_RETURN_IF_ERROR(CheckOutput(output_path, checkpoint_path, overwrite));
  CRIA_ASSIGN_OR_RETURN(const ThreadPool threads, ThreadPool::Create(1));
  CRIA_ASSIGN_OR_RETURN(CheckpointVocabulary checkpoint, OpenVocabulary(checkpoint_path));
  CRIA_ASSIGN_OR_RETURN(
      const ImportedTokenizer tokenizer,
      ImportTokenizer(std::move(checkpoint.tokenizer), std::nullopt, chat_template));
  const size_t vocab_size = tokenizer.vocabulary.piece_types.size();
  const ModelConfig config = {.vocab_size = static_cast<uint32_t>(vocab_size)};
  FilePlan no_tensors;
  CRIA_ASSIGN_OR_RETURN(WrittenModel written,
                        WriteModel(Describe(checkpoint.name, config, tokenizer), no_tensors,
                                   output_path, threads, {}));
  CRIA_RETURN_IF_ERROR(written.file.Commit());
  return VocabularyReport{.num_tokens = vocab_size, .notes = tokenizer.notes};
}

Result<ModelOutline> OutlineConversion(const std::filesystem::path& checkpoint_path,
                                       const ConvertOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const bool has_no_weights, IsHfConfigWithoutWeights(checkpoint_path));
  if (has_no_weights) {
    return OutlineConfiguration(checkpoint_path, options);
  }
  CRIA_ASSIGN_OR_RETURN(const Preparation preparation, Prepare(checkpoint_path, options));
  CRIA_ASSIGN_OR_RETURN(FilePlan plan, MakePlan(preparation, options));
  const size_t metadata_bytes = BuildMetadata(Describe(preparation), plan).size();
  return OutlineOf(preparation.checkpoint.config, plan, metadata_bytes);
}

Result<ModelOutline> OutlineConfiguration(const std::filesystem::path& folder,
                                          const ConvertOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const TensorSchemes schemes, ChooseSchemes(options));
  CRIA_ASSIGN_OR_RETURN(const HfModel model, ReadHfModel(folder / "config.json"));
  const ModelConfig& config = model.config;
  std::vector<MappedTensor> tensors;
  for (const TensorSpec& spec : ExpectedTensors(config)) tensors.push_back({.spec = spec});
  FilePlan plan = PlanTensors(std::move(tensors), config, schemes);
  if (options.keeps_codes && model.has_mxfp4) KeepMxfp4Experts(plan);
  const ModelDescription without_tokenizer = Describe(FolderName(folder), config, {});
  const size_t metadata_bytes =
      BuildMetadata(without_tokenizer, plan).size() + EstimateTokenizerBytes(config.vocab_size);
  ModelOutline outline = OutlineOf(config, plan, metadata_bytes);
  outline.tokenizer_is_estimated = true;
  return outline;
}

}  // namespace cria
