#include "converter/hugging_face/hf_xielu.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "converter/checkpoint/xielu_numbers.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

// Removes a tensor with one element, and returns it; `otherwise`, if there is none.
Result<float> Take(Checkpoint& checkpoint, const std::string& name, const float* otherwise) {
  auto node = checkpoint.tensors.extract(name);
  if (node.empty()) {
    if (otherwise != nullptr) return *otherwise;
    return Fail(ErrorCode::kNotFound,
                Format("{}: tensor \"{}\" is missing, but {} calls for it",
                       checkpoint.folder.string(), name, checkpoint.described_by));
  }
  const TensorSource& source = node.mapped();
  if (source.num_elements() != 1) {
    return Fail(
        ErrorCode::kInvalidFile,
        Format("{}: tensor \"{}\" has shape {}, but {} calls for one number", source.file->path(),
               Quotable(source.name), source.ShapeText(), checkpoint.described_by));
  }
  float value = 0.0f;
  TensorReader reader;
  CRIA_RETURN_IF_ERROR(reader.Read(source, 0, {&value, 1}));
  return value;
}

}  // namespace

Status ReadHfXielu(Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  if (config.hidden_act != HiddenAct::kXielu) return {};
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const auto numbers = std::span(config.xielu).subspan(layer * kXieluNumbers, kXieluNumbers);
    const auto take = [&](std::string_view name, const float* otherwise) {
      return Take(checkpoint, Format("model.layers.{}.mlp.act_fn.{}", layer, name), otherwise);
    };
    CRIA_ASSIGN_OR_RETURN(const float positive, take("alpha_p", nullptr));
    CRIA_ASSIGN_OR_RETURN(const float negative, take("alpha_n", nullptr));
    // Some files leave out what is the same in every model.
    CRIA_ASSIGN_OR_RETURN(const float linear, take("beta", &numbers[2]));
    CRIA_ASSIGN_OR_RETURN(const float limit, take("eps", &numbers[3]));
    std::ranges::copy(XieluNumbersOf(positive, negative, linear, limit), numbers.begin());
  }
  return {};
}

}  // namespace cria
