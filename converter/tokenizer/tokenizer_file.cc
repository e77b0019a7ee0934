#include "converter/tokenizer/tokenizer_file.h"

#include "converter/input/whole_file.h"
#include "core/format.h"
#include "core/utf8.h"

namespace cria {

Result<std::string> ReadTokenizerFile(const std::filesystem::path& path) {
  return ReadWholeFile(path, kMaxTokenizerFileBytes);
}

Result<std::string> ReadTemplateFile(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(std::string text, ReadTokenizerFile(path));
  const size_t valid_bytes = ValidUtf8Prefix(text);
  if (valid_bytes == text.size()) return text;
  return Fail(
      ErrorCode::kInvalidFile,
      Format("{}: is not UTF-8 at byte {}; a chat template must be", path.string(), valid_bytes));
}

}  // namespace cria
