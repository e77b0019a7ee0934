#include "converter/write/scratch_file.h"

#include <utility>

namespace cria {

Result<ScratchFile> ScratchFile::Create(const std::filesystem::path& output_path) {
  std::filesystem::path path = output_path;
  path += ".scratch";
  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, 0));
  return ScratchFile(std::move(file));
}

uint64_t ScratchFile::Reserve(uint64_t bytes) {
  const uint64_t offset = end_;
  end_ += bytes;
  return offset;
}

}  // namespace cria
