#include "converter/plan_conversion.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "converter/calibrate/block.h"
#include "converter/open_checkpoint.h"
#include "converter/write/key_norms.h"
#include "converter/write/lattice.h"
#include "converter/write/tensor_map.h"
#include "core/format.h"
#include "model/file_layout.h"

namespace cria {
namespace {

// Every text that has something to predict.
constexpr TextNeeds kAnyText = {.num_tokens = 2, .num_windows = 1};

// The weight of a reranker whose checkpoint has only the head, or a table that is the head, too.
Status FindRerankingWeight(const Vocabulary& vocabulary, Checkpoint& checkpoint) {
  const auto find = [&](std::string_view piece) {
    uint32_t id = 0;
    while (id < vocabulary.size() && vocabulary.piece(id) != piece) ++id;
    return id;
  };
  const uint32_t yes = find("yes");
  const uint32_t no = find("no");
  const auto head = checkpoint.tensors.find(
      checkpoint.config.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight");
  if (head == checkpoint.tensors.end() || head->second.shape.size() != 2 ||
      std::max(yes, no) >= head->second.shape.front()) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: the model ranks documents, but has no row of the head for \"yes\" or "
                       "\"no\"",
                       checkpoint.folder.string()));
  }
  CRIA_ASSIGN_OR_RETURN(checkpoint.reranking->weight, DifferenceOfRows(head->second, yes, no));
  return {};
}

Status CompleteReranking(const Vocabulary& vocabulary, Checkpoint& checkpoint) {
  if (!checkpoint.reranking) return {};
  RerankingMaterial& material = *checkpoint.reranking;
  if (material.weight.empty()) CRIA_RETURN_IF_ERROR(FindRerankingWeight(vocabulary, checkpoint));
  const Status valid = ValidateReranking({.prompt = material.prompt, .weight = material.weight},
                                         checkpoint.config.hidden_size);
  if (valid) return {};
  return Fail(valid.error().code(),
              Format("{}: {}", checkpoint.folder.string(), valid.error().message()));
}

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

// How many bytes these matrices may take: the rest of the plan has its bytes.
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
                       "besides",
                       room, rest));
  }
  return room - rest;
}

// Chooses layouts of matrices for the target, and sets those of the first choice in the plan.
Status ChooseLayouts(const SizeTarget& target, ChosenMatrices which, const ThreadPool& threads,
                     const ProgressCallback& progress, PlannedConversion& planned) {
  FilePlan& plan = planned.plan;
  std::vector<MatrixOptions>& matrices = planned.matrices;
  matrices = AllSchemeOptions(plan, which);
  CRIA_ASSIGN_OR_RETURN(const uint64_t room,
                        RoomForMatrices(planned.preparation, target, plan, matrices));
  // Whether there is any choice is known before anything is measured.
  CRIA_RETURN_IF_ERROR(ChooseOptions(matrices, room).transform([](const auto&) {}));
  CRIA_RETURN_IF_ERROR(planned.tokens ? MeasureSensitivity(*planned.tokens,
                                                           planned.preparation.checkpoint.config,
                                                           threads, progress, plan, matrices)
                                      : EstimateSensitivity(threads, progress, plan, matrices));
  CRIA_ASSIGN_OR_RETURN(planned.choices, ChooseOptions(matrices, room));
  ApplyChoice(matrices, planned.choices.front(), plan);
  return {};
}

// Whether the gain of the last norm must stay there, because hidden states are read behind it.
bool IsReadBehindLastNorm(const Checkpoint& checkpoint) {
  return checkpoint.pooling || checkpoint.reranking || checkpoint.config.mtp_num_hidden_layers != 0;
}

// Says how many matrices of the layers do not keep their codes, and why.
void NoteRoundedMatrices(PlannedConversion& planned) {
  size_t num_matrices = 0;
  size_t num_rounded = 0;
  std::set<std::string_view> types;
  for (const PlannedTensor& tensor : planned.plan.tensors) {
    const StoredTensor& stored = tensor.stored;
    if (!stored.spec.is_of_own_layer() || stored.spec.is_always_f32()) continue;
    if (stored.first_row == 0) ++num_matrices;
    if (tensor.keeps_codes) continue;
    ++num_rounded;
    for (const MappedPart& part : tensor.parts) {
      if (!CanKeepCodes(*part.source)) types.insert(ElementTypeName(part.source->type));
    }
  }
  if (num_rounded == 0) return;
  std::string names;
  for (const std::string_view type : types) {
    names += Format("{}{}", names.empty() ? ", because they are stored as " : " and ", type);
  }
  planned.preparation.checkpoint.notes.push_back(
      Format("{} of {} matrices of the layers are rounded{}", num_rounded, num_matrices, names));
}

}  // namespace

Result<TensorSchemes> ChooseSchemes(const ConvertOptions& options) {
  if (options.calibration && options.weights == Scheme::kF32) {
    return Fail(ErrorCode::kUsage, "weights in f32 lose nothing, so they cannot be calibrated");
  }
  if (options.keeps_codes && options.target) {
    return Fail(ErrorCode::kUsage, "a target chooses other codes, so they cannot be kept");
  }
  if (options.target && options.weights != Scheme::kQb4w && options.weights != Scheme::kW4G64) {
    return Fail(
        ErrorCode::kUsage,
        "a target chooses how many bits each matrix has, so weights cannot be given a scheme "
        "as well");
  }
  if (options.keeps_codes && options.calibration) {
    return Fail(ErrorCode::kUsage,
                "codes that are kept are not chosen, so there is nothing to calibrate; choose int4 "
                "or int8 for the weights");
  }
  if (!std::ranges::contains(kBlockSizes, options.block_size)) {
    return Fail(ErrorCode::kUsage,
                Format("block size {} is not one of 32, 64, 128 and 256", options.block_size));
  }
  const Scheme table_scheme = options.weights == Scheme::kF32 ? Scheme::kF32 : Scheme::kQc8w;
  return TensorSchemes{.weights = options.weights,
                       .embedding = options.embedding.value_or(table_scheme),
                       .head = options.head.value_or(table_scheme),
                       .block_size = options.block_size,
                       .keeps_weights = options.keeps_codes,
                       .keeps_embedding = options.keeps_codes && !options.embedding,
                       .keeps_head = options.keeps_codes && !options.head};
}

Result<Preparation> Prepare(const std::filesystem::path& checkpoint_path,
                            const ConvertOptions& options) {
  CRIA_ASSIGN_OR_RETURN(Checkpoint checkpoint, OpenCheckpoint(checkpoint_path));
  if (!checkpoint.tokenizer) {
    CRIA_ASSIGN_OR_RETURN(checkpoint.tokenizer, ReadTokenizer(checkpoint.folder));
  }
  CRIA_ASSIGN_OR_RETURN(ImportedTokenizer tokenizer,
                        ImportTokenizer(*std::move(checkpoint.tokenizer),
                                        checkpoint.config.vocab_size, options.chat_template));
  CRIA_RETURN_IF_ERROR(CompleteReranking(tokenizer.vocabulary.view(), checkpoint));
  return Preparation{std::move(checkpoint), std::move(tokenizer)};
}

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
  ModelDescription description =
      Describe(preparation.checkpoint.name, preparation.checkpoint.config, preparation.tokenizer);
  description.pooling = preparation.checkpoint.pooling;
  if (const auto& reranking = preparation.checkpoint.reranking) {
    description.reranking = {.prompt = reranking->prompt, .weight = reranking->weight};
  }
  return description;
}

Result<FilePlan> MakePlan(const Preparation& preparation, const ConvertOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const TensorSchemes schemes, ChooseSchemes(options));
  CRIA_ASSIGN_OR_RETURN(std::vector<MappedTensor> mapped, MapTensors(preparation.checkpoint));
  if (preparation.checkpoint.config.qk_norm_after_rope) CRIA_RETURN_IF_ERROR(MoveKeyNorms(mapped));
  return PlanTensors(std::move(mapped), preparation.checkpoint.config, schemes);
}

Result<PlannedConversion> PlanConversion(Preparation preparation, const ConvertOptions& options,
                                         const ThreadPool& threads,
                                         const ProgressCallback& progress) {
  PlannedConversion planned = {.preparation = std::move(preparation)};
  CRIA_ASSIGN_OR_RETURN(planned.plan, MakePlan(planned.preparation, options));
  if (options.finds_codes && !options.target && options.weights != Scheme::kF32) {
    CRIA_ASSIGN_OR_RETURN(planned.found_codes, AreOnQ40Lattice(planned.plan));
  }
  if (planned.found_codes) {
    TakeQ40(planned.plan);
    planned.preparation.checkpoint.notes.push_back(
        "the weights of the layers are those of Q4_0, whose codes are found again: nothing is "
        "lost");
    return planned;
  }
  if (options.keeps_codes) {
    NoteRoundedMatrices(planned);
  } else if (options.weights != Scheme::kF32) {
    CRIA_ASSIGN_OR_RETURN(planned.equalized,
                          Equalize(planned.plan, planned.preparation.checkpoint.config, threads,
                                   IsReadBehindLastNorm(planned.preparation.checkpoint)));
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
    CRIA_RETURN_IF_ERROR(
        ChooseLayouts(*options.target,
                      options.embedding || options.head ? ChosenMatrices::kLayers
                                                        : ChosenMatrices::kLayersAndTables,
                      threads, ProgressOfStep(progress, ConvertStep::kChoosing), planned));
  }
  return planned;
}

void ApplyChoice(const std::vector<MatrixOptions>& matrices, const OptionChoice& choice,
                 FilePlan& plan) {
  for (size_t i = 0; i < matrices.size(); ++i) {
    Apply(matrices[i].options[choice[i]].layout, plan.tensors[matrices[i].tensor]);
  }
}

std::vector<SchemeChoice> NameChoices(const FilePlan& plan,
                                      const std::vector<MatrixOptions>& matrices,
                                      const OptionChoice& choice) {
  std::vector<SchemeChoice> named;
  named.reserve(matrices.size());
  for (size_t i = 0; i < matrices.size(); ++i) {
    named.push_back({.name = plan.tensors[matrices[i].tensor].stored.spec.Name(),
                     .options = matrices[i].options,
                     .chosen = choice[i]});
  }
  return named;
}

Result<std::vector<MatrixError>> MeasureErrorsOf(PlannedConversion& planned,
                                                 const ConvertOptions& options,
                                                 const ThreadPool& threads,
                                                 const ProgressCallback& progress) {
  // Kept codes are the checkpoint itself.
  if (options.keeps_codes || planned.found_codes ||
      !CheckModelCalibrates(planned.preparation.checkpoint.config)) {
    return std::vector<MatrixError>();
  }
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

}  // namespace cria
