#include "converter/tokenizer/tokenizer_file.h"

#include <span>

#include "core/format.h"
#include "core/platform.h"
#include "core/utf8.h"

namespace cria {

Result<std::string> ReadTokenizerFile(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const auto file, platform::File::Open(path.string()));
  if (file.size_bytes() > kMaxTokenizerFileBytes) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: has {} bytes, too many for a tokenizer",
                                                file.path(), file.size_bytes()));
  }
  std::string bytes(file.size_bytes(), '\0');
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
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
