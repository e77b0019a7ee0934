#include "converter/hugging_face/hf_reranking.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "converter/checkpoint/checkpoint.h"
#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "converter/input/whole_file.h"
#include "core/ascii.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxRerankerBytes = 16 << 20;  // What is read of a file at most.
constexpr std::string_view kRerankerArchitecture = "Qwen3ForCausalLM";
constexpr std::string_view kRerankerName = "qwen3-reranker";

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), ToLower);
  return text;
}

// Whether one of the file's titles names the model. A file that is missing or too long has none.
bool TitleNamesIt(const std::filesystem::path& readme) {
  const Result<std::string> text = ReadWholeFile(readme, kMaxRerankerBytes);
  return text && Lower(*text).contains("# " + std::string(kRerankerName));
}

}  // namespace

Result<bool> IsQwen3Reranker(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  CRIA_ASSIGN_OR_RETURN(const json config, ReadJsonFile(path, kMaxRerankerBytes));
  const JsonFields fields(config, path.string());
  const json* const architectures = fields.Find("architectures");
  const bool is_qwen3 =
      architectures != nullptr && *architectures == json::array({kRerankerArchitecture});
  if (!is_qwen3) return false;
  CRIA_ASSIGN_OR_RETURN(const std::string name, fields.String("_name_or_path"));
  return Lower(FolderName(folder)).contains(kRerankerName) || Lower(name).contains(kRerankerName) ||
         TitleNamesIt(folder / "README.md");
}

}  // namespace cria
