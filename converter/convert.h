#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/calibrate/calibrate.h"
#include "converter/calibrate/resume_folder.h"
#include "converter/calibrate/rotation.h"
#include "converter/calibrate/scheme_options.h"
#include "converter/calibrate/sensitivity.h"
#include "converter/equalize/equalize.h"
#include "converter/quantize/row_quantizer.h"
#include "converter/tokenizer/chat_template_source.h"
#include "converter/write/progress.h"
#include "core/output_file.h"
#include "core/platform.h"
#include "cria/error.h"
#include "model/checksum.h"
#include "model/model_outline.h"
#include "model/tensor_table.h"

namespace cria {

// "0.1.0"
std::string_view ConverterVersion();

// Quantizing for the activations that a text causes; see Calibrate.
struct CalibrationOptions {
  std::string text;                              // As EncodeCalibrationText takes it.
  size_t max_tokens = 0;                         // The text's most; 0: UsualCalibrationTokens.
  std::optional<CalibrationTokens> tokens = {};  // Instead of the text.
  // Where a calibration that is stopped leaves what it has done, so that the next one with the same
  // checkpoint, options and tokens goes on; see ResumeFolder.
  std::optional<std::filesystem::path> resume_folder = {};
  std::optional<bool> rotation = {};  // Rotates the hidden state; absent: if it is better.
  // If the model cannot be calibrated with the text, its weights are rounded, and a note says why.
  bool is_optional = false;
};

// How large a model may become. One of the fields is not 0.
struct SizeTarget {
  uint64_t file_bytes = 0;
  double bits_per_weight = 0.0;  // As in ConvertReport.
};

struct ConvertOptions {
  Scheme weights = Scheme::kQb4w;
  // Matrices that a GGUF file has in blocks keep their codes; `weights` is for those that have
  // none, or whose factors do not allow it. Neither with a target nor with calibration.
  bool keeps_codes = false;
  // If all matrices of the layers are on a lattice of Q4_0 (AreOnQ40Lattice), they keep it, in
  // place of `weights`, and nothing is calibrated. With a target, none are looked for.
  bool finds_codes = false;
  // Instead of `weights` and `block_size`: 2 to 6 or 8 bits for each matrix of the layers, and for
  // the tables unless one of them is given, so that the model loses little at this size; see
  // MeasureSensitivity.
  std::optional<SizeTarget> target = {};
  size_t block_size = 32;  // kQb4w only: 32, 64, 128 or 256; the maximum.
  // Default: the codes are kept, or f32 in f32 models, or what a target chooses, otherwise int8.
  std::optional<Scheme> embedding = {};
  std::optional<Scheme> head = {};
  size_t num_threads = 0;  // 0: one for each processor.
  // Replaces the checkpoint's own template; with an empty text, the model has no template.
  std::optional<ChatTemplateSource> chat_template = {};
  std::optional<CalibrationOptions> calibration = {};  // Not for weights in f32.
  // Texts, as EncodeCalibrationText takes them, for which the errors of all matrices are measured;
  // those that the vocabulary cannot express are left out.
  std::vector<std::string> error_texts = {};
  bool overwrite = false;  // Also replaces an output that Cria did not write.
};

// Figures of all tensors with one role and scheme, for the report.
struct TensorKindReport {
  TensorRole role;
  Scheme scheme;
  size_t num_tensors = 0;
  uint64_t num_weights = 0;
  uint64_t stored_bytes = 0;
  QuantizationError error = {};

  double rms_error() const;           // In the unit of the weights.
  double relative_rms_error() const;  // Divided by the root mean square of the weights.
};

struct ConvertReport {
  std::string name;
  // What of the checkpoint is not in the model, or changed, and what is special in its template.
  std::vector<std::string> notes = {};
  uint64_t num_parameters = 0;  // A tied head is counted once, even if it is stored twice.
  uint64_t file_bytes = 0;
  double bits_per_weight = 0.0;  // Average over the stored tensors, scales and padding included.
  Digest digest = {};
  EqualizeReport equalized = {};  // Models in f32 stay as they are.
  RotationReport rotation = {};   // With calibration.
  CalibrationReport calibrated = {};
  bool found_codes = false;                // As ConvertOptions::finds_codes says.
  std::vector<SchemeChoice> schemes = {};  // With a target.
  std::vector<MatrixError> errors = {};    // With a text for them.
  std::vector<TensorKindReport> kinds;     // In the order of a forward pass.
};

struct VocabularyReport {
  size_t num_tokens = 0;
  std::vector<std::string> notes = {};  // As in ConvertReport.
};

// Whether the checkpoint has matrices in blocks, whose codes can be kept, or, of a folder without
// weights, whether its configuration says so.
Result<bool> HasCodesToKeep(const std::filesystem::path& checkpoint_path);

// Fails with kUsage if the options contradict each other; Convert does, too, before it does
// anything.
Status CheckOptions(const ConvertOptions& options);

// Converts a checkpoint into a model file. If it fails or is cancelled, it leaves no file, and an
// existing file is not changed. Fails at once if the output is an existing file that may not be
// replaced.
Result<ConvertReport> Convert(const std::filesystem::path& checkpoint_path,
                              const std::filesystem::path& output_path,
                              const ConvertOptions& options, const ProgressCallback& progress = {});

// A model file that is whole, but has its name only after Commit; without it, the file is removed.
class Conversion {
 public:
  Conversion(OutputFile file, ConvertReport report, std::vector<ResumeFolder> resume)
      : file_(std::move(file)), report_(std::move(report)), resume_(std::move(resume)) {}

  const ConvertReport& report() const { return report_; }
  void AddNote(std::string note) { report_.notes.push_back(std::move(note)); }
  const OutputFile& file() const { return file_; }
  OutputFile& file() { return file_; }
  // Gives the file its name. An existing file is replaced.
  Status Commit();

 private:
  OutputFile file_;
  ConvertReport report_;
  std::vector<ResumeFolder> resume_;  // Not needed any more when the file is committed.
};

// Whether a model that was written prefers a cache in f16; see schema/model.fbs.
using CacheCallback = std::function<Result<bool>(platform::File model)>;

// Does what Convert does, but the caller must commit the file. `prefers_f16_cache` is asked when
// the file is whole; without it, no model does.
Result<Conversion> ConvertUncommitted(const std::filesystem::path& checkpoint_path,
                                      const std::filesystem::path& output_path,
                                      const ConvertOptions& options,
                                      const ProgressCallback& progress = {},
                                      const CacheCallback& prefers_f16_cache = {});

struct ChosenSchemes {
  std::vector<SchemeChoice> choices;
  bool are_measured = false;  // Whether the costs are those of predictions of a text.
  // Whether Convert also calibrates another choice, and takes that one if it loses less.
  bool are_compared = false;
};

// What Convert would choose for the target of the options, which must have one, without writing a
// file.
Result<ChosenSchemes> ChooseSchemesFor(const std::filesystem::path& checkpoint_path,
                                       const ConvertOptions& options,
                                       const ProgressCallback& progress = {});

// Converts to a file without a name, which exists as long as it is open. It is written beside
// `output_path`.
Result<platform::File> ConvertUnnamed(const std::filesystem::path& checkpoint_path,
                                      const std::filesystem::path& output_path,
                                      const ConvertOptions& options,
                                      const ProgressCallback& progress = {});

// Writes a model file with only the tokenizer and the chat template, which needs no weights; see
// ModelFile::OpenVocabulary. `chat_template` and `overwrite` are as in ConvertOptions.
Result<VocabularyReport> ConvertVocabulary(
    const std::filesystem::path& checkpoint_path, const std::filesystem::path& output_path,
    const std::optional<ChatTemplateSource>& chat_template = {}, bool overwrite = false);

// The outline of the model file that Convert would write, for planning memory. A folder with only
// Hugging Face's config.json is enough; see OutlineConfiguration.
Result<ModelOutline> OutlineConversion(const std::filesystem::path& checkpoint_path,
                                       const ConvertOptions& options);

// Makes the outline from the config.json in the folder alone. Everything is as in the outline of
// the whole checkpoint but for the size of the tokenizer, which is estimated.
Result<ModelOutline> OutlineConfiguration(const std::filesystem::path& folder,
                                          const ConvertOptions& options);

}  // namespace cria
