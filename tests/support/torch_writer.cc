#include "support/torch_writer.h"

#include <array>
#include <format>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/files.h"
#include "support/interleaved_rows.h"

namespace cria::support {
namespace {

using reference::ReferenceModel;
using reference::ReferenceTensor;

template <typename T>
std::string Bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string B16(size_t value) { return Bytes(static_cast<uint16_t>(value)); }
std::string B32(size_t value) { return Bytes(static_cast<uint32_t>(value)); }
std::string B64(size_t value) { return Bytes(static_cast<uint64_t>(value)); }

std::string Text(std::string_view text) { return "X" + B32(text.size()) + std::string(text); }
std::string Integer(size_t value) {
  if (value < 256) return "K" + Bytes(static_cast<uint8_t>(value));
  if (value < 65536) return "M" + B16(value);
  return "J" + B32(value);
}
std::string IntegerTuple(const std::vector<size_t>& values) {
  std::string items;
  for (const size_t value : values) items += Integer(value);
  if (values.size() == 1) return items + "\x85";
  if (values.size() == 2) return items + "\x86";
  return "(" + items + "t";
}

std::string_view StorageName(StorageType type) {
  switch (type) {
    case StorageType::kF32:
      return "FloatStorage";
    case StorageType::kF16:
      return "HalfStorage";
    case StorageType::kBf16:
      return "BFloat16Storage";
    case StorageType::kU8:
      return "ByteStorage";
  }
  throw std::runtime_error("unknown storage type");
}

// The part of a tensor that one of `shards` processors has.
TorchTensor Share(TorchTensor whole, bool by_columns, size_t shard, size_t shards) {
  if (shards == 1) return whole;
  const size_t rows = whole.shape[0];
  const size_t columns = whole.shape[1];
  const size_t share_rows = by_columns ? rows : rows / shards;
  const size_t share_columns = by_columns ? columns / shards : columns;
  TorchTensor part = {whole.name, {share_rows, share_columns}, {}};
  for (size_t row = 0; row < share_rows; ++row) {
    const size_t first =
        by_columns ? row * columns + shard * share_columns : (shard * share_rows + row) * columns;
    const auto begin = whole.values.begin() + static_cast<std::ptrdiff_t>(first);
    part.values.insert(part.values.end(), begin,
                       begin + static_cast<std::ptrdiff_t>(share_columns));
  }
  return part;
}

std::string MetaName(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kNames = {{
      {"model.embed_tokens", "tok_embeddings"},
      {"model.norm", "norm"},
      {"lm_head", "output"},
      {"input_layernorm", "attention_norm"},
      {"self_attn.q_proj", "attention.wq"},
      {"self_attn.k_proj", "attention.wk"},
      {"self_attn.v_proj", "attention.wv"},
      {"self_attn.o_proj", "attention.wo"},
      {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "feed_forward.w1"},
      {"mlp.down_proj", "feed_forward.w2"},
      {"mlp.up_proj", "feed_forward.w3"},
  }};
  std::string prefix;
  if (name.starts_with("model.layers.")) {
    name.remove_prefix(6);
    const size_t end = name.find('.', 7) + 1;
    prefix = name.substr(0, end);
    name.remove_prefix(end);
  }
  const std::string_view module = name.substr(0, name.rfind('.'));
  for (const auto& [hugging_face, meta] : kNames) {
    if (module == hugging_face) return std::format("{}{}.weight", prefix, meta);
  }
  throw std::runtime_error("no such tensor: " + std::string(name));
}

}  // namespace

std::string ZipArchive(const std::vector<ZipFile>& files, bool is_large) {
  constexpr size_t kAllOnes = 0xffffffff;
  std::string archive;
  std::string directory;
  for (const ZipFile& file : files) {
    const size_t offset = archive.size();
    // torch pads the extra field so that data begins at a multiple of 64 bytes.
    const size_t begin = offset + 30 + file.name.size() + 4;
    const size_t padding = (64 - begin % 64) % 64;
    archive += "PK\3\4" + B16(20) + B16(0) + B16(file.method) + B32(0) + B32(0) +
               B32(file.bytes.size()) + B32(file.bytes.size()) + B16(file.name.size()) +
               B16(4 + padding) + file.name + "FB" + B16(padding) + std::string(padding, 'Z') +
               file.bytes;
    std::string extra;
    if (is_large) {
      extra = B16(0x5455) + B16(1) + "x" + B16(1) + B16(24) + B64(file.bytes.size()) +
              B64(file.bytes.size()) + B64(offset);
    }
    const auto number = [&](size_t value) { return B32(is_large ? kAllOnes : value); };
    directory += "PK\1\2" + B16(20) + B16(20) + B16(0) + B16(file.method) + B32(0) + B32(0) +
                 number(file.bytes.size()) + number(file.bytes.size()) + B16(file.name.size()) +
                 B16(extra.size()) + B16(0) + B16(0) + B16(0) + B32(0) + number(offset) +
                 file.name + extra;
  }
  const size_t begin = archive.size();
  archive += directory;
  if (is_large) {
    const size_t end = archive.size();
    archive += "PK\6\6" + B64(44) + B16(45) + B16(45) + B32(0) + B32(0) + B64(files.size()) +
               B64(files.size()) + B64(directory.size()) + B64(begin);
    archive += "PK\6\7" + B32(0) + B64(end) + B32(1);
  }
  const auto number = [&](size_t value) { return B32(is_large ? kAllOnes : value); };
  const size_t entries = is_large ? 0xffff : files.size();
  return archive + "PK\5\6" + B16(0) + B16(0) + B16(entries) + B16(entries) +
         number(directory.size()) + number(begin) + B16(0);
}

std::string TorchPickle(const std::vector<TorchTensor>& tensors, StorageType type) {
  const std::string ordered_dict = std::string("ccollections\nOrderedDict\n") + ")R";
  std::string pickle = "\x80\x02" + ordered_dict + "q" + std::string(1, '\0') + "(";
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TorchTensor& tensor = tensors[i];
    std::vector<size_t> strides(tensor.shape.size(), 1);
    for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * tensor.shape[d];
    pickle += Text(tensor.name) + "r" + B32(1000 + i);
    pickle += "ctorch._utils\n_rebuild_tensor_v2\n";
    pickle += std::format("((X{}storagectorch\n{}\n", B32(7), StorageName(type));
    pickle += Text(std::to_string(i)) + Text("cpu") + Integer(tensor.values.size()) + "tQ";
    pickle += "K" + std::string(1, '\0') + IntegerTuple(tensor.shape) + IntegerTuple(strides);
    pickle += "\x89" + ordered_dict + "tR";
  }
  pickle += "u}" + Text("_metadata") + "h" + std::string(1, '\0') + "sb.";
  return pickle;
}

void WriteTorchArchive(const std::vector<TorchTensor>& tensors, StorageType type,
                       const std::filesystem::path& path, bool is_large) {
  std::vector<ZipFile> files = {{"consolidated/data.pkl", TorchPickle(tensors, type)},
                                {"consolidated/byteorder", "little"}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    files.push_back({std::format("consolidated/data/{}", i), Encode(type, tensors[i].values)});
  }
  files.push_back({"consolidated/version", "3\n"});
  WriteFile(path, ZipArchive(files, is_large));
}

void WriteMetaCheckpoint(const ReferenceModel& model, StorageType type, size_t shards,
                         bool has_embedding_rows, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const reference::ReferenceConfig& c = model.config;
  nlohmann::json params = {{"dim", c.hidden_size},
                           {"n_layers", c.num_hidden_layers},
                           {"n_heads", c.num_attention_heads},
                           {"n_kv_heads", c.num_key_value_heads},
                           {"vocab_size", -1},
                           {"multiple_of", 32},
                           {"norm_eps", c.rms_norm_eps},
                           {"rope_theta", c.rope_theta},
                           {"max_seq_len", c.max_position_embeddings}};
  WriteFile(folder / "params.json", params.dump());
  for (size_t shard = 0; shard < shards; ++shard) {
    std::vector<TorchTensor> tensors;
    for (const auto& [name, tensor] : model.tensors) {
      TorchTensor whole = {MetaName(name), tensor.shape, tensor.values};
      if (name.contains("q_proj") || name.contains("k_proj")) {
        whole.values = InterleaveRows(tensor, c.head_dim);
      }
      const bool is_embedding = name.contains("embed_tokens");
      const bool by_columns = name.contains("o_proj") || name.contains("down_proj") ||
                              (is_embedding && !has_embedding_rows);
      tensors.push_back(tensor.shape.size() == 1 ? whole : Share(whole, by_columns, shard, shards));
    }
    tensors.push_back({"rope.freqs", {c.head_dim / 2}, std::vector<float>(c.head_dim / 2, 0.5f)});
    WriteTorchArchive(tensors, type, folder / std::format("consolidated.{:02}.pth", shard),
                      shard % 2 == 1);
  }
}

}  // namespace cria::support
