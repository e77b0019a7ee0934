#include "converter/checkpoint/mxfp4_tensors.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr std::string_view kBlocks = "_blocks";
constexpr std::string_view kScales = "_scales";

std::unexpected<Error> BadPart(const TensorSource& tensor, std::string_view what) {
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: tensor \"{}\" {}", tensor.file->path(), Quotable(tensor.name), what));
}

Result<TensorSource> Join(const TensorSource& blocks, const TensorSource& scales) {
  const uint64_t block_inputs = BlockOf(ElementType::kMxfp4).elements;
  std::vector<uint64_t> wanted = scales.shape;
  wanted.push_back(block_inputs / 2);
  if (blocks.shape != wanted || scales.shape.size() < 2) {
    return BadPart(blocks, Format("has shape {}, which does not fit that of its scales, {}",
                                  blocks.ShapeText(), scales.ShapeText()));
  }
  TensorSource joined = blocks;
  joined.type = ElementType::kMxfp4;
  joined.shape = scales.shape;
  joined.shape.back() *= block_inputs;
  joined.exponents = {.file = scales.file, .offset = scales.offset};
  return joined;
}

}  // namespace

Status JoinMxfp4Tensors(Checkpoint& checkpoint) {
  TensorSources& tensors = checkpoint.tensors;
  TensorSources joined;
  for (const auto& [name, blocks] : tensors) {
    if (blocks.type != ElementType::kU8 || !name.ends_with(kBlocks)) continue;
    const std::string stem = name.substr(0, name.size() - kBlocks.size());
    const auto scales = tensors.find(Format("{}{}", stem, kScales));
    if (scales == tensors.end() || scales->second.type != ElementType::kU8) {
      return BadPart(blocks, "has no scales in bytes beside it");
    }
    if (tensors.contains(stem)) return BadPart(blocks, "is there in another form, too");
    CRIA_ASSIGN_OR_RETURN(TensorSource source, Join(blocks, scales->second));
    joined.emplace(stem, std::move(source));
  }
  for (auto& [stem, source] : joined) {
    tensors.erase(Format("{}{}", stem, kBlocks));
    tensors.erase(Format("{}{}", stem, kScales));
    tensors.emplace(stem, std::move(source));
  }
  return {};
}

}  // namespace cria
