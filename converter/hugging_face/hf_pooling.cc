#include "converter/hugging_face/hf_pooling.h"

#include <string>
#include <string_view>
#include <vector>

#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "converter/input/whole_file.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxBytes = 100'000;
constexpr std::string_view kModePrefix = "pooling_mode_";

std::unexpected<Error> Unsupported(std::string_view where, std::string_view what) {
  return Fail(ErrorCode::kUnsupported, Format("{}: {} is not supported", where, what));
}

// The names of the ways of pooling that are chosen. Older files have a field for each; newer ones
// have their names, joined by "+".
Result<std::vector<std::string>> ReadModes(const JsonFields& fields) {
  std::vector<std::string> modes;
  CRIA_ASSIGN_OR_RETURN(const std::string joined, fields.String("pooling_mode"));
  if (!joined.empty()) {
    modes.push_back(joined);
    return modes;
  }
  for (const auto& [name, value] : fields.object().items()) {
    if (!name.starts_with(kModePrefix)) continue;
    CRIA_ASSIGN_OR_RETURN(const bool is_chosen, fields.Bool(name, false));
    if (is_chosen) modes.push_back(name.substr(kModePrefix.size()));
  }
  return modes;
}

Result<Pooling> ReadPoolingModule(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const json config, ReadJsonFile(path, kMaxBytes));
  const JsonFields fields(config, path.string());
  CRIA_ASSIGN_OR_RETURN(const std::vector<std::string> modes, ReadModes(fields));
  if (modes.size() != 1) {
    return Unsupported(path.string(), Format("a pooling with {} modes", modes.size()));
  }
  if (modes.front() == "lasttoken") return Pooling::kLast;
  if (modes.front() == "mean_tokens" || modes.front() == "mean") return Pooling::kMean;
  return Unsupported(path.string(), Format("the pooling \"{}\"", Quotable(modes.front())));
}

// "sentence_transformers.models.Pooling" and "sentence_transformers.….modules.pooling.Pooling" are
// both a Pooling.
std::string_view ClassOf(std::string_view type) { return type.substr(type.rfind('.') + 1); }

}  // namespace

Result<std::optional<Pooling>> ReadHfPooling(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "modules.json";
  CRIA_ASSIGN_OR_RETURN(const bool has_modules, FileExists(path));
  if (!has_modules) return std::nullopt;
  // The file is a list, and what parses checkpoints wants an object.
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxBytes));
  CRIA_ASSIGN_OR_RETURN(const json file,
                        ParseJsonObject("{\"modules\":" + text + "}", path.string()));
  const JsonFields fields(file, path.string());
  CRIA_ASSIGN_OR_RETURN(const json* const modules, fields.Array("modules"));
  std::optional<Pooling> pooling;
  for (size_t i = 0; i < modules->size(); ++i) {
    const std::string name = Format("modules[{}]", i);
    if (!(*modules)[i].is_object()) {
      return fields.Bad(ErrorCode::kInvalidFile, name, "is not an object");
    }
    const JsonFields module((*modules)[i], path.string(), name);
    CRIA_ASSIGN_OR_RETURN(const std::string type, module.String("type"));
    const std::string_view kind = ClassOf(type);
    if (kind == "Transformer" || kind == "Normalize") continue;
    if (kind != "Pooling" || pooling) {
      return Unsupported(path.string(), Format("the module \"{}\" ({})", Quotable(type), name));
    }
    CRIA_ASSIGN_OR_RETURN(const std::string place, module.String("path"));
    if (place.contains('/') || place.contains('\\') || place == "..") {
      return module.Bad(ErrorCode::kInvalidFile, "path", "is not a folder of the checkpoint");
    }
    CRIA_ASSIGN_OR_RETURN(pooling, ReadPoolingModule(folder / place / "config.json"));
  }
  return pooling;
}

}  // namespace cria
