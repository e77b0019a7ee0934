#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/platform.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/model_file.h"
#include "xnn/packed_weights.h"

namespace cria::xnn {

// The folder in which packed weights are kept between starts.
class PackCache {
 public:
  // With an empty `folder`, nothing is kept.
  explicit PackCache(std::string folder) : folder_(std::move(folder)) {}
  // The user's own folder, if no other is chosen; empty if the user has none. It is inline because
  // the library does not use it.
  static std::string UserFolder() {
    const std::string folder = platform::CacheFolder();
    return folder.empty() ? folder : folder + "/packed";
  }

  const std::string& folder() const { return folder_; }
  // The file for this model: one for each digest, whatever the model's file is called; it is
  // replaced if its layout is not this processor's.
  std::string PathFor(const ModelFile& model) const;
  // Gives the model's packed weights this name if an older version of Cria named them, which put
  // the name of the model's file before the digest. Does nothing if there are none or if the folder
  // cannot be written.
  void RenameOlderFile(const ModelFile& model) const;

  struct Entry {
    std::string path;
    uint64_t bytes = 0;
    std::string model_name;
    std::string digest;  // The model's, as DigestText returns it; empty if it cannot be read.
    uint8_t layer_schemes = 0;  // PackedIdentity's layer_schemes.
    // Why it cannot be used here; empty if it can.
    std::string defect;
  };
  // The entries, sorted by path. If the folder does not exist, there are none.
  Result<std::vector<Entry>> List() const;
  // Removes all packed weights and the remains of interrupted packing. Returns the bytes freed.
  Result<uint64_t> Clear() const;
  // Removes one of List's entries. Returns the bytes freed.
  Result<uint64_t> Remove(const Entry& entry) const;

  // Creates the folder if it is missing.
  Status MakeFolder() const;

 private:
  std::string folder_;
};

struct PackingOptions {
  // Use only the packed weights in this file, which `cria pack -o` made.
  std::string packed_path;
  // Folder for packed weights; empty: they are packed into private memory.
  std::string cache_folder;
  // If there are no packed weights, fail with kNotFound instead of packing.
  bool never_pack = false;
  // Called if the cache cannot be written, before the weights are packed into private memory
  // instead. If it returns an error, they are not packed. May be empty.
  std::function<Status()> check_memory;
  PackingProgress on_progress;
  // Called with a sentence if weights are packed, with the place, or if a file of packed weights is
  // not used, with the reason.
  std::function<void(std::string_view sentence)> on_notice;
};

// The model's packed weights: those in the model file itself, in options.packed_path, or in the
// cache. If those in the cache are missing, damaged or for another layout, the model is packed into
// the cache first. If that is not possible and options.check_memory allows it, it is packed into
// private memory, with a notice.
Result<PackedWeights> LoadPackedWeights(const ModelFile& model, const PackingOptions& options,
                                        const ThreadPool& pool);

}  // namespace cria::xnn
