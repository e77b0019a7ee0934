#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converter/hub/checkpoint_name.h"
#include "converter/hub/content_hash.h"
#include "converter/hub/hub_client.h"
#include "cria/error.h"

namespace cria::hub {

// A file of a model on the hub.
struct RemoteFile {
  std::string path;  // A safe one, in the model's folder.
  std::optional<uint64_t> size_bytes;
  std::optional<ExpectedHash> hash;
};

// What the hub says about one commit of a model.
struct ModelInfo {
  std::string commit;
  std::string licence;    // "apache-2.0"; empty if it is not known.
  bool is_gated = false;  // Users must agree to its terms on the model's page.
  std::vector<RemoteFile> files;

  const RemoteFile* Find(std::string_view path) const;
};

// Asks the hub which commit the revision is, and which files that has.
Result<ModelInfo> FetchModelInfo(HubClient& client, const CheckpointName& name);

// Parses the answer. `where` begins error sentences.
Result<ModelInfo> ParseModelInfo(std::string_view text, std::string_view where);

// Where the hub has a file of this commit, as a path of the hub.
std::string FilePathOnHub(const CheckpointName& name, const std::string& commit,
                          std::string_view file);

}  // namespace cria::hub
