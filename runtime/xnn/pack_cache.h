#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/model_file.h"
#include "xnn/packed_weights.h"

namespace cria::xnn {

// The folder where packed weights are kept from one start to the next.
class PackCache {
 public:
  // An empty `folder` keeps nothing.
  explicit PackCache(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // The file for this model: one for a digest, replaced when its layout is not this processor's.
  std::string PathFor(const ModelFile& model) const;

  struct Entry {
    std::string path;
    uint64_t bytes = 0;
    std::string model_name;
    // Why it is of no use here; empty where it is.
    std::string defect;
  };
  // By path. A folder that does not exist is empty.
  Result<std::vector<Entry>> List() const;
  // Removes all packed weights and what interrupted packing left behind. Tells the bytes freed.
  Result<uint64_t> Clear() const;

  // Makes the folder where it is missing.
  Status MakeFolder() const;

 private:
  std::string folder_;
};

struct PackingOptions {
  // Packed weights to use and no others: a file that `cria pack -o` made.
  std::string packed_path;
  // Where packed weights are looked for and put; empty: they are packed into private memory.
  std::string cache_folder;
  // Fail with kNotFound where there are no packed weights to use, rather than pack.
  bool never_pack = false;
  PackingProgress on_progress;
  // Told in a sentence what happens with the weights when it is not the usual: that they are packed
  // and to where, and why a file is not used.
  std::function<void(std::string_view sentence)> on_notice;
};

// The model's packed weights: those in the model file itself, in options.packed_path, or in the
// cache, where they are put first if they are missing, damaged or of another layout. Where that
// cannot be, they are packed into private memory, with a notice.
Result<PackedWeights> LoadPackedWeights(const ModelFile& model, const PackingOptions& options,
                                        const ThreadPool& pool);

}  // namespace cria::xnn
