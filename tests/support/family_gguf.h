#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/reference_model.h"
#include "support/gguf_writer.h"
#include "support/gpt_oss_gguf.h"

namespace cria::support {

// Writes a GGUF file of one of the families in family_checkpoint.h from Hugging Face's fields and
// tensors, with the keys, names and changes to weights of llama.cpp's converter.
class FamilyGgufWriter {
 public:
  FamilyGgufWriter(const std::string& architecture, const std::string& config_json);

  // For keys and tensors that the model does not have.
  GgufWriter& writer() { return writer_; }
  // Experts come in their order.
  void Add(reference::ReferenceTensor tensor, const std::string& own_name);
  void Write(const std::filesystem::path& path);

 private:
  // The heads of linear attention.
  struct ValueHeads {
    size_t num_key_heads = 0;
    size_t num_value_heads = 0;
    size_t key_dim = 0;
    size_t value_dim = 0;
  };

  std::string NameOfBlock(const std::string& name) const;
  void AddHeads(const reference::ReferenceTensor& tensor, const std::string& block);
  void ChangeLinearAttention(std::string_view name, reference::ReferenceTensor& tensor) const;
  void AddExpert(const reference::ReferenceTensor& tensor, const std::string& block,
                 std::string_view name);

  std::string architecture_;
  std::string config_;  // As JSON.
  bool is_dense_granite_ = false;
  size_t head_dim_ = 0;
  ValueHeads value_heads_;
  GgufWriter writer_;
  GptOssGguf gpt_oss_;
  // The tensors of all experts together.
  std::map<std::string, reference::ReferenceTensor> experts_;
  std::map<std::string, std::vector<float>> xielu_;  // [layers], by their names.
};

}  // namespace cria::support
