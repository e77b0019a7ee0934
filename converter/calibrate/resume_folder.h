#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "converter/calibrate/activation_file.h"
#include "converter/calibrate/calibration_report.h"
#include "converter/write/file_plan.h"
#include "converter/write/scratch_file.h"
#include "cria/error.h"
#include "model/checksum.h"

namespace cria {

// A folder in which a calibration keeps what it has done after each layer, so that one that was
// stopped goes on with the next layer. It has a file for each layer, with factors and codes, and
// one with the activations behind the last of them, which counts the layers.
class ResumeFolder {
 public:
  // `of` identifies the checkpoint, the options and the tokens. Makes the folder if it is missing.
  // Fails with kUsage if the folder is of another calibration, with kInvalidFile if it is damaged.
  static Result<ResumeFolder> Open(const std::filesystem::path& folder, const Digest& of);

  size_t num_layers() const { return state_.num_layers; }
  // What those layers gave.
  const CalibrationProgress& progress() const { return state_.progress; }

  // Fills in what a layer left: its tensors' factors, and their codes, which go to `scratch`.
  Status ReadLayer(size_t layer, const std::shared_ptr<ScratchFile>& scratch,
                   std::span<PlannedTensor* const> tensors) const;
  // The activations behind the last layer, [rows, width].
  Status ReadActivations(size_t num_rows, size_t width, ActivationFile& exact,
                         ActivationFile& stored) const;

  // Adds the next layer. It counts as done when this returns.
  Status Keep(std::span<PlannedTensor* const> tensors, const CalibrationProgress& progress,
              size_t num_rows, size_t width, const ActivationFile& exact,
              const ActivationFile& stored);

  // Removes the files, when nothing is left to do.
  void Remove();

 private:
  struct State {
    char magic[8] = {'C', 'R', 'I', 'A', 'C', 'A', 'L', 'I'};
    Digest of = {};
    uint64_t num_layers = 0;
    CalibrationProgress progress;
  };

  explicit ResumeFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path LayerPath(size_t layer) const;
  std::filesystem::path ActivationPath() const;

  std::filesystem::path folder_;
  State state_;
};

// What identifies a calibration of this plan, whose tensors are known by their layouts, the factors
// that they have so far, and their first values.
Result<Digest> CalibrationIdentity(const FilePlan& plan, std::span<const int32_t> tokens,
                                   size_t window_tokens);

}  // namespace cria
