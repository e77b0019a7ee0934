#include "converter/convert.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "converter/calibrate/calibrate.h"
#include "converter/calibrate/sensitivity.h"
#include "converter/equalize/equalize.h"
#include "converter/hugging_face/hf_checkpoint.h"
#include "converter/hugging_face/hf_config.h"
#include "converter/open_checkpoint.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "converter/write/file_plan.h"
#include "converter/write/metadata.h"
#include "converter/write/model_writer.h"
#include "converter/write/tensor_map.h"
#include "core/format.h"
#include "core/platform.h"
#include "core/thread_pool.h"
#include "model/file_layout.h"
#include "model/path_contents.h"

namespace cria {
namespace {

Result<TensorSchemes> ChooseSchemes(const ConvertOptions& options) {
  if (options.calibration && options.weights == Scheme::kF32) {
    return Fail(ErrorCode::kUsage, "weights in f32 lose nothing, so they cannot be calibrated");
  }
  if (options.target && options.weights != Scheme::kQb4w) {
    return Fail(ErrorCode::kUsage,
                "a target chooses between int4 and int8 for each matrix, so weights cannot be "
                "given a scheme as well");
  }
  if (!std::ranges::contains(kBlockSizes, options.block_size)) {
    return Fail(ErrorCode::kUsage,
                Format("block size {} is not one of 32, 64, 128 and 256", options.block_size));
  }
  const Scheme table_scheme = options.weights == Scheme::kF32 ? Scheme::kF32 : Scheme::kQc8w;
  return TensorSchemes{.weights = options.weights,
                       .embedding = options.embedding.value_or(table_scheme),
                       .head = options.head.value_or(table_scheme),
                       .block_size = options.block_size};
}

std::vector<TensorKindReport> SummarizeKinds(const FilePlan& plan,
                                             const std::vector<QuantizationError>& errors) {
  std::vector<TensorKindReport> kinds;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const StoredTensor& stored = plan.tensors[i].stored;
    auto kind = std::ranges::find(kinds, stored.spec.role, &TensorKindReport::role);
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

// The contents of a checkpoint, without its weights.
struct Preparation {
  Checkpoint checkpoint;
  ImportedTokenizer tokenizer;
};

Result<Preparation> Prepare(const std::filesystem::path& checkpoint_path,
                            const ConvertOptions& options) {
  CRIA_ASSIGN_OR_RETURN(Checkpoint checkpoint, OpenCheckpoint(checkpoint_path));
  if (!checkpoint.tokenizer) {
    CRIA_ASSIGN_OR_RETURN(checkpoint.tokenizer, ReadTokenizer(checkpoint.folder));
  }
  CRIA_ASSIGN_OR_RETURN(ImportedTokenizer tokenizer,
                        ImportTokenizer(*std::move(checkpoint.tokenizer),
                                        checkpoint.config.vocab_size, options.chat_template));
  return Preparation{std::move(checkpoint), std::move(tokenizer)};
}

// The result has views of the arguments, as does the plan.
ModelDescription Describe(const std::string& name, const ModelConfig& config,
                          const ImportedTokenizer& tokenizer) {
  return {.producer = Format("cria-convert {}", ConverterVersion()),
          .name = name,
          .config = config,
          .vocabulary = tokenizer.vocabulary.view(),
          .chat_template_source = tokenizer.chat_template_source,
          .stop_token_ids = tokenizer.stop_token_ids};
}

ModelDescription Describe(const Preparation& preparation) {
  return Describe(preparation.checkpoint.name, preparation.checkpoint.config,
                  preparation.tokenizer);
}

Result<FilePlan> MakePlan(const Preparation& preparation, const ConvertOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const TensorSchemes schemes, ChooseSchemes(options));
  CRIA_ASSIGN_OR_RETURN(std::vector<MappedTensor> mapped, MapTensors(preparation.checkpoint));
  return PlanTensors(std::move(mapped), preparation.checkpoint.config, schemes);
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

// Every text that has something to predict.
constexpr TextNeeds kAnyText = {.num_tokens = 2, .num_windows = 1};

Result<CalibrationTokens> EncodeText(const Preparation& preparation, std::string_view text,
                                     size_t max_tokens, const TextNeeds& needs = {}) {
  const ModelConfig& config = preparation.checkpoint.config;
  const Vocabulary vocabulary = preparation.tokenizer.vocabulary.view();
  CRIA_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Create(vocabulary));
  const ChatTemplate chat_template(preparation.tokenizer.chat_template_source, vocabulary);
  return EncodeCalibrationText(text, config, tokenizer, chat_template,
                               max_tokens != 0 ? max_tokens : UsualCalibrationTokens(config),
                               needs);
}

Result<std::optional<ResumeFolder>> OpenResumeFolder(const CalibrationOptions& options,
                                                     const CalibrationTokens& tokens,
                                                     const FilePlan& plan) {
  if (!options.resume_folder) return std::nullopt;
  CRIA_ASSIGN_OR_RETURN(const Digest identity,
                        CalibrationIdentity(plan, tokens.ids, tokens.window_tokens));
  CRIA_ASSIGN_OR_RETURN(ResumeFolder folder, ResumeFolder::Open(*options.resume_folder, identity));
  return std::optional(std::move(folder));
}

// How many bytes the matrices of the layers may take: the rest of the plan has its bytes.
Result<uint64_t> RoomForMatrices(const Preparation& preparation, const SizeTarget& target,
                                 FilePlan plan, std::span<const MatrixOptions> matrices) {
  uint64_t matrix_bytes = 0;
  for (const MatrixOptions& matrix : matrices) {
    const StoredTensor& stored = plan.tensors[matrix.tensor].stored;
    matrix_bytes += stored.data.bytes + stored.scales.bytes;
  }
  uint64_t stored_bytes = 0;
  uint64_t num_weights = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    const StoredTensor& stored = tensor.stored;
    stored_bytes += stored.data.bytes + stored.scales.bytes;
    num_weights += uint64_t{stored.spec.output_channels} * stored.spec.input_channels;
  }
  uint64_t rest = stored_bytes - matrix_bytes;
  auto room =
      static_cast<uint64_t>(target.bits_per_weight * static_cast<double>(num_weights) / 8.0);
  if (target.file_bytes != 0) {
    PlaceTensors(BuildMetadata(Describe(preparation), plan).size(), plan);
    // Each tensor begins at an aligned offset, so other sizes can leave larger gaps.
    rest = plan.file_bytes - matrix_bytes + 2 * matrices.size() * kTensorAlignment;
    room = target.file_bytes;
  }
  if (room < rest) {
    return Fail(ErrorCode::kUsage,
                Format("the target of {} bytes is less than the {} bytes that the model needs "
                       "besides the matrices of its layers",
                       room, rest));
  }
  return room - rest;
}

// Chooses the layouts of the layers' matrices for the target, and sets them in the plan.
Result<std::vector<SchemeChoice>> ChooseLayouts(const Preparation& preparation,
                                                const SizeTarget& target,
                                                const std::optional<CalibrationTokens>& tokens,
                                                const ThreadPool& threads,
                                                const ProgressCallback& progress, FilePlan& plan) {
  std::vector<MatrixOptions> matrices = AllSchemeOptions(plan);
  CRIA_ASSIGN_OR_RETURN(const uint64_t room, RoomForMatrices(preparation, target, plan, matrices));
  // Whether there is any choice is known before anything is measured.
  CRIA_RETURN_IF_ERROR(ChooseOptions(matrices, room).transform([](const auto&) {}));
  CRIA_RETURN_IF_ERROR(tokens ? MeasureSensitivity(*tokens, preparation.checkpoint.config, threads,
                                                   progress, plan, matrices)
                              : EstimateSensitivity(threads, progress, plan, matrices));
  CRIA_ASSIGN_OR_RETURN(const std::vector<size_t> chosen, ChooseOptions(matrices, room));
  std::vector<SchemeChoice> choices;
  for (size_t i = 0; i < matrices.size(); ++i) {
    PlannedTensor& tensor = plan.tensors[matrices[i].tensor];
    Apply(matrices[i].options[chosen[i]].layout, tensor);
    choices.push_back({.name = tensor.stored.spec.Name(),
                       .options = std::move(matrices[i].options),
                       .chosen = chosen[i]});
  }
  return choices;
}

// What is known before the weights are written, or calibrated.
struct PlannedConversion {
  Preparation preparation;
  FilePlan plan;
  EqualizeReport equalized;
  RotationReport rotation;
  std::optional<CalibrationTokens> tokens;
  std::vector<SchemeChoice> schemes;
};

Result<PlannedConversion> PlanConversion(Preparation preparation, const ConvertOptions& options,
                                         const ThreadPool& threads,
                                         const ProgressCallback& progress) {
  PlannedConversion planned = {.preparation = std::move(preparation)};
  CRIA_ASSIGN_OR_RETURN(planned.plan, MakePlan(planned.preparation, options));
  if (options.weights != Scheme::kF32) {
    CRIA_ASSIGN_OR_RETURN(planned.equalized,
                          Equalize(planned.plan, planned.preparation.checkpoint.config, threads));
  }
  if (options.calibration) {
    planned.tokens = options.calibration->tokens;
    if (!planned.tokens) {
      CRIA_ASSIGN_OR_RETURN(planned.tokens,
                            EncodeText(planned.preparation, options.calibration->text,
                                       options.calibration->max_tokens));
    }
    CRIA_ASSIGN_OR_RETURN(planned.rotation,
                          RotateResidual(*planned.tokens, options.calibration->rotation, threads,
                                         ProgressOfStep(progress, ConvertStep::kRotating),
                                         planned.preparation.checkpoint.config, planned.plan));
  }
  if (options.target) {
    CRIA_ASSIGN_OR_RETURN(
        planned.schemes,
        ChooseLayouts(planned.preparation, *options.target, planned.tokens, threads,
                      ProgressOfStep(progress, ConvertStep::kChoosing), planned.plan));
  }
  return planned;
}

Result<std::vector<MatrixError>> MeasureErrorsOf(PlannedConversion& planned,
                                                 const ConvertOptions& options,
                                                 const ThreadPool& threads,
                                                 const ProgressCallback& progress) {
  std::string text;
  for (const std::string& each : options.error_texts) {
    if (EncodeText(planned.preparation, each, 0, kAnyText)) text += each;
  }
  if (text.empty()) return std::vector<MatrixError>();
  CRIA_ASSIGN_OR_RETURN(const CalibrationTokens tokens,
                        EncodeText(planned.preparation, text, 0, kAnyText));
  return MeasureErrors(tokens, planned.preparation.checkpoint.config, threads,
                       ProgressOfStep(progress, ConvertStep::kMeasuring), planned.plan);
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
    if (tensor.stored.spec.is_multiplied()) outline.matrices.push_back(tensor.stored.layout);
  }
  if (plan.tensors.back().stored.spec.role != TensorRole::kLmHead) {
    outline.matrices.push_back(outline.embedding);
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
                               const ConvertOptions& options, const ProgressCallback& progress) {
  CRIA_RETURN_IF_ERROR(CheckOutput(output_path, checkpoint_path, options.overwrite));
  CRIA_ASSIGN_OR_RETURN(const ThreadPool threads, CreateThreads(options));
  CRIA_ASSIGN_OR_RETURN(Preparation preparation, Prepare(checkpoint_path, options));
  CRIA_RETURN_IF_ERROR(CheckIsNoneOfWeights(output_path, preparation.checkpoint.tensors));
  CRIA_ASSIGN_OR_RETURN(PlannedConversion planned,
                        PlanConversion(std::move(preparation), options, threads, progress));
  const Checkpoint& checkpoint = planned.preparation.checkpoint;
  FilePlan& plan = planned.plan;
  CalibrationReport calibrated;
  std::optional<ResumeFolder> resume;
  if (planned.tokens) {
    CRIA_ASSIGN_OR_RETURN(resume, OpenResumeFolder(*options.calibration, *planned.tokens, plan));
    CRIA_ASSIGN_OR_RETURN(ScratchFile scratch, ScratchFile::Create(output_path));
    CRIA_ASSIGN_OR_RETURN(calibrated, Calibrate(*planned.tokens, checkpoint.config, threads,
                                                std::make_shared<ScratchFile>(std::move(scratch)),
                                                ProgressOfStep(progress, ConvertStep::kCalibrating),
                                                resume ? &*resume : nullptr, plan));
  }
  CRIA_ASSIGN_OR_RETURN(std::vector<MatrixError> errors,
                        MeasureErrorsOf(planned, options, threads, progress));
  CRIA_ASSIGN_OR_RETURN(WrittenModel written, WriteModel(Describe(planned.preparation), plan,
                                                         output_path, threads, progress));
  ConvertReport report = MakeReport(checkpoint, plan, written);
  const std::vector<std::string>& more_notes = planned.preparation.tokenizer.notes;
  report.notes.insert(report.notes.end(), more_notes.begin(), more_notes.end());
  report.equalized = planned.equalized;
  report.rotation = planned.rotation;
  report.calibrated = calibrated;
  report.schemes = std::move(planned.schemes);
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
  return ChosenSchemes{.choices = std::move(planned.schemes),
                       .are_measured = options.calibration.has_value()};
}

}  // namespace

std::string_view ConverterVersion() { return CRIA_VERSION; }

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
                                      const ProgressCallback& progress) {
  auto conversion = ConvertOnce(checkpoint_path, output_path, options, progress);
  if (conversion || !IsLeftOut(options.calibration, conversion.error())) return conversion;
  const Error obstacle = conversion.error();
  conversion = ConvertOnce(checkpoint_path, output_path, WithoutCalibration(options), progress);
  if (conversion) {
    conversion->AddNote("the weights are rounded, because they cannot be chosen for a text: " +
                        obstacle.message());
  }
  return conversion;
}

Status Conversion::Commit() {
  CRIA_RETURN_IF_ERROR(file_.Commit());
  if (resume_) resume_->Remove();
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
  CRIA_ASSIGN_OR_RETURN(const ModelConfig config, ReadHfConfig(folder / "config.json"));
  std::vector<MappedTensor> tensors;
  for (const TensorSpec& spec : ExpectedTensors(config)) tensors.push_back({.spec = spec});
  FilePlan plan = PlanTensors(std::move(tensors), config, schemes);
  const ModelDescription without_tokenizer = Describe(FolderName(folder), config, {});
  const size_t metadata_bytes =
      BuildMetadata(without_tokenizer, plan).size() + EstimateTokenizerBytes(config.vocab_size);
  ModelOutline outline = OutlineOf(config, plan, metadata_bytes);
  outline.tokenizer_is_estimated = true;
  return outline;
}

}  // namespace cria
