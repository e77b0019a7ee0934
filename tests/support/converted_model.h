#pragma once

#include <filesystem>
#include <string>

#include "converter/convert.h"
#include "model/model_file.h"
#include "reference/reference_model.h"
#include "support/convert_model.h"
#include "support/family_checkpoint.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria::support {

// A folder of its own with the model file of a checkpoint. Tests share it if they can, because
// most of them take less time than a conversion.
class ConvertedModel {
 public:
  explicit ConvertedModel(const CheckpointSpec& spec = SpecGqa(),
                          const ConvertOptions& conversion = {.weights = Scheme::kQc8w}) {
    WriteRandomCheckpoint(spec, Checkpoint());
    ConvertCheckpoint(conversion);
  }
  ConvertedModel(const reference::ReferenceModel& model, const ConvertOptions& conversion,
                 StorageType storage = StorageType::kF32) {
    WriteHuggingFaceDirectory(model, Checkpoint(), {.storage = storage});
    ConvertCheckpoint(conversion);
  }

  ConvertedModel(const FamilyCheckpoint& family, const ConvertOptions& conversion) {
    WriteFamilyDirectory(family, Checkpoint());
    ConvertCheckpoint(conversion);
  }

  // `file` is a GGUF file.
  ConvertedModel(const std::filesystem::path& file, const ConvertOptions& conversion) {
    ConvertModel(file, path(), conversion);
  }

  const std::filesystem::path& folder() const { return directory_.path(); }
  std::string path() const { return folder() / "model.cria"; }
  ModelFile Open() const { return Unwrap(ModelFile::Open(path())); }

 private:
  std::filesystem::path Checkpoint() const { return folder() / "checkpoint"; }
  void ConvertCheckpoint(const ConvertOptions& conversion) const {
    ConvertModel(Checkpoint(), path(), conversion);
    std::filesystem::remove_all(Checkpoint());
  }

  TemporaryDirectory directory_;
};

}  // namespace cria::support
