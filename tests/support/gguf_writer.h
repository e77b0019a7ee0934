#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reference/reference_model.h"
#include "support/byte_level_tokenizer.h"
#include "support/safetensors_writer.h"

namespace cria::support {

// Builds a GGUF file as ggml's docs/gguf.md describes it, valid or broken.
class GgufWriter {
 public:
  // The numbers of the format.
  enum Type : uint32_t {
    kUint8 = 0,
    kUint32 = 4,
    kInt32 = 5,
    kFloat32 = 6,
    kBool = 7,
    kString = 8,
    kArray = 9,
    kUint64 = 10
  };

  void Add(std::string_view key, uint32_t value) { AddRaw(key, kUint32, Bytes(value)); }
  void Add(std::string_view key, int value) { Add(key, static_cast<uint32_t>(value)); }
  void Add(std::string_view key, float value) { AddRaw(key, kFloat32, Bytes(value)); }
  void Add(std::string_view key, bool value) { AddRaw(key, kBool, Bytes<uint8_t>(value)); }
  void Add(std::string_view key, std::string_view value) { AddRaw(key, kString, Text(value)); }
  void Add(std::string_view key, const char* value) { Add(key, std::string_view(value)); }
  void Add(std::string_view key, const std::vector<std::string>& values);
  void Add(std::string_view key, const std::vector<float>& values);
  void Add(std::string_view key, const std::vector<int32_t>& values);
  void Add(std::string_view key, const std::vector<bool>& values);
  // Adds a value of any type and bytes.
  void AddRaw(std::string_view key, uint32_t type, std::string_view value);

  // `type` is ggml's number; the shape is given outermost first.
  void AddTensor(std::string_view name, const std::vector<size_t>& shape, uint32_t type,
                 std::string data);
  void AddTensor(const std::string& name, const std::vector<size_t>& shape, StorageType type,
                 const std::vector<float>& values);
  // Adds further values of the last tensor, of which whole blocks were added until now.
  void Append(const std::vector<float>& values);

  // Values of matrices become Q4_0 instead of the type that is given, if their rows have whole
  // blocks. Biases, routers and norms stay what they are, because llama.cpp wants them in f32.
  bool rounds_matrices = false;

  // Writes the file without a second copy of the tensors in memory.
  void Write(const std::filesystem::path& path) const;
  // The whole file. The next fields make it a broken one if they are changed.
  std::string File() const;
  uint32_t version = 3;
  uint64_t extra_keys = 0;
  uint64_t extra_tensors = 0;
  std::vector<std::pair<size_t, uint64_t>>
      moved_tensors;  // Index, and an offset that replaces the right one.

  template <typename T>
  static std::string Bytes(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  // A string in the format's form.
  static std::string Text(std::string_view text) {
    return Bytes<uint64_t>(text.size()) + std::string(text);
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<size_t> shape;
    uint32_t type;
    std::string data;
  };

  // What stands before the data of the tensors.
  std::string Header() const;

  uint64_t num_keys_ = 0;
  std::string keys_;
  std::vector<Tensor> tensors_;
};

// Adds the metadata of a byte-level tokenizer with the rules of this name, which are Llama 3's.
void AddTokenizer(const ByteLevelTokenizer& tokenizer, ChatTemplateText chat_template,
                  GgufWriter& writer, std::string_view pre_tokenizer = "llama-bpe");

// Adds the configuration and the tokenizer of `model` as metadata of its architecture. The factor
// of attention with yarn is the default, whatever `model` has.
void AddModelMetadata(const reference::ReferenceModel& model, ChatTemplateText chat_template,
                      GgufWriter& writer);

// The divisors of frequencies by Llama 3's scaling, [head_dim / 2].
std::vector<float> Llama3Factors(const reference::ReferenceConfig& config);

// ggml's name of one of Hugging Face's tensors.
std::string GgmlName(std::string_view name);

// Adds a tensor of `model` with ggml's name; queries and keys of the architecture "llama" are
// interleaved.
void AddModelTensor(const reference::ReferenceModel& model, const std::string& name,
                    StorageType type, GgufWriter& writer);

// Writes the whole model with the architecture "llama" (Mistral too), "qwen2" or "qwen3" into one
// file, or into several `parts` beside `path` with llama.cpp's names. Norms and biases are always
// f32. Returns the path of the first file.
std::filesystem::path WriteGguf(const reference::ReferenceModel& model, StorageType type,
                                const std::filesystem::path& path, size_t parts = 1,
                                ChatTemplateText chat_template = ChatTemplateText::kNone);

}  // namespace cria::support
