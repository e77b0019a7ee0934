#include "converter/input/file_magic.h"

#include <cstddef>
#include <span>
#include <string>

#include "core/platform.h"

namespace cria {

bool BeginsWith(const std::filesystem::path& path, std::string_view magic) {
  const auto file = platform::File::Open(path.string());
  std::string beginning(magic.size(), '\0');
  return file && file->ReadAt(0, std::as_writable_bytes(std::span(beginning))) &&
         beginning == magic;
}

}  // namespace cria
