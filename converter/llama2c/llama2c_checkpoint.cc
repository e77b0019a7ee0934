#include "converter/llama2c/llama2c_checkpoint.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/input/byte_reader.h"
#include "converter/input/whole_file.h"
#include "converter/tokenizer/piece_text.h"
#include "converter/tokenizer/scored_pieces.h"
#include "core/format.h"

namespace cria {
namespace {

constexpr std::string_view kMagic = "24ka";  // The number 0x616b3432, little-endian.
constexpr uint64_t kFirstHeaderBytes = 28;
constexpr uint64_t kNumberedHeaderBytes = 256;

struct Header {
  uint32_t version = 0;
  ModelConfig config;
  uint64_t data_begin = 0;
};

// The seven sizes that all versions have, converted to a configuration.
Result<ModelConfig> ReadSizes(ByteReader& reader) {
  std::array<int32_t, 7> sizes;
  for (int32_t& size : sizes) {
    CRIA_ASSIGN_OR_RETURN(size, reader.Read<int32_t>("the header"));
  }
  const auto at = [&](size_t i) { return static_cast<uint32_t>(sizes[i]); };
  ModelConfig config = {.architecture = "LlamaForCausalLM",
                        .hidden_size = at(0),
                        .intermediate_size = at(1),
                        .num_hidden_layers = at(2),
                        .num_attention_heads = at(3),
                        .num_key_value_heads = at(4),
                        .max_position_embeddings = at(6),
                        .rms_norm_eps = 1e-5f,
                        // In version 0, a negative number means that the head is not tied.
                        .tie_word_embeddings = sizes[5] > 0,
                        .layer_kinds = {{.rope_theta = 10000.0f}}};
  config.vocab_size = config.tie_word_embeddings ? at(5) : 0u - at(5);
  if (config.num_attention_heads == 0 || config.hidden_size % config.num_attention_heads != 0) {
    return reader.Bad(Format("its header says {} heads in {} channels", config.num_attention_heads,
                             config.hidden_size));
  }
  config.head_dim = config.hidden_size / config.num_attention_heads;
  if (const Status valid = ValidateConfig(config); !valid) {
    return reader.Bad(valid.error().message(), valid.error().code());
  }
  return config;
}

Result<Header> ReadHeader(const platform::File& file) {
  ByteReader reader(file, 0, file.size_bytes());
  Header header = {.data_begin = kFirstHeaderBytes};
  if (file.size_bytes() >= kNumberedHeaderBytes) {
    ByteReader numbered(file, 0, file.size_bytes());
    CRIA_ASSIGN_OR_RETURN(const std::string magic,
                          numbered.ReadString(kMagic.size(), "the header"));
    if (magic == kMagic) {
      CRIA_ASSIGN_OR_RETURN(header.version, numbered.Read<uint32_t>("the version"));
      if (header.version != 1) {
        return numbered.Bad(
            Format("is version {} of llama2.c's format; versions 0 and 1 can "
                   "be converted{}",
                   header.version, header.version == 2 ? ", which are not quantized" : ""),
            ErrorCode::kUnsupported);
      }
      header.data_begin = kNumberedHeaderBytes;
      CRIA_ASSIGN_OR_RETURN(header.config, ReadSizes(numbered));
      CRIA_ASSIGN_OR_RETURN(const auto is_tied, numbered.Read<uint8_t>("the header"));
      header.config.tie_word_embeddings = is_tied != 0;
      return header;
    }
  }
  CRIA_ASSIGN_OR_RETURN(header.config, ReadSizes(reader));
  return header;
}

// Assigns offsets to tensors, one after another.
class Placer {
 public:
  Placer(std::shared_ptr<const platform::File> file, const Header& header)
      : file_(std::move(file)), config_(header.config), offset_(header.data_begin) {}

  // Adds one tensor for the model if `module` is its whole name, or one for each layer.
  void Add(std::string_view name, std::vector<uint64_t> shape) {
    TensorSource tensor = {.name = std::string(name),
                           .type = ElementType::kF32,
                           .shape = std::move(shape),
                           .file = file_,
                           .offset = offset_};
    // The rows are interleaved, as in Meta's code.
    if (name.contains(".q_proj.") || name.contains(".k_proj.")) {
      tensor.interleaved_head_dim = config_.head_dim;
    }
    offset_ += tensor.num_bytes();
    tensors_.emplace(tensor.name, std::move(tensor));
  }
  void AddToLayers(std::string_view module, const std::vector<uint64_t>& shape) {
    for (uint32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      Add(Format("model.layers.{}.{}.weight", layer, module), shape);
    }
  }
  void Skip(uint64_t bytes) { offset_ += bytes; }

  uint64_t offset() const { return offset_; }
  TensorSources Take() { return std::move(tensors_); }

 private:
  std::shared_ptr<const platform::File> file_;
  const ModelConfig& config_;
  uint64_t offset_;
  TensorSources tensors_;
};

// The order in which llama2.c's export.py writes the tensors.
void PlaceTensors(const Header& header, Placer& placer) {
  const ModelConfig& c = header.config;
  const uint64_t hidden = c.hidden_size;
  const bool is_first = header.version == 0;
  const auto add_norm = [&] { placer.Add("model.norm.weight", {hidden}); };
  const auto add_embedding = [&] {
    placer.Add("model.embed_tokens.weight", {c.vocab_size, hidden});
  };
  const auto add_second_norms = [&] { placer.AddToLayers("post_attention_layernorm", {hidden}); };
  if (is_first) add_embedding();
  placer.AddToLayers("input_layernorm", {hidden});
  if (!is_first) {
    add_second_norms();
    add_norm();
    add_embedding();
  }
  placer.AddToLayers("self_attn.q_proj", {c.query_channels(), hidden});
  placer.AddToLayers("self_attn.k_proj", {c.key_value_channels(), hidden});
  placer.AddToLayers("self_attn.v_proj", {c.key_value_channels(), hidden});
  placer.AddToLayers("self_attn.o_proj", {hidden, c.query_channels()});
  if (is_first) add_second_norms();
  placer.AddToLayers("mlp.gate_proj", {c.intermediate_size, hidden});
  placer.AddToLayers("mlp.down_proj", {hidden, c.intermediate_size});
  placer.AddToLayers("mlp.up_proj", {c.intermediate_size, hidden});
  if (is_first) {
    add_norm();
    // Cosines and sines, which are computed from the configuration.
    placer.Skip(uint64_t{c.max_position_embeddings} * c.head_dim * sizeof(float));
  }
  if (!c.tie_word_embeddings) placer.Add("lm_head.weight", {c.vocab_size, hidden});
}

Result<TokenizerMaterial> ReadTokenizerBeside(const std::filesystem::path& path) {
  const auto folder = path.parent_path();
  for (const char* name : {"tokenizer.model", "tokenizer.json"}) {
    CRIA_ASSIGN_OR_RETURN(const bool exists, FileExists(folder / name));
    if (exists) return ReadTokenizer(folder);
  }
  CRIA_ASSIGN_OR_RETURN(const bool has_scores, FileExists(folder / "tokenizer.bin"));
  if (has_scores) return ReadLlama2cTokenizer(folder / "tokenizer.bin");
  return Fail(ErrorCode::kNotFound,
              Format("{}: there is no tokenizer in its folder: neither tokenizer.model, "
                     "tokenizer.json nor tokenizer.bin; copy one of them there",
                     path.string()));
}

}  // namespace

Result<Checkpoint> OpenLlama2cCheckpoint(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(auto opened, platform::File::Open(path.string()));
  const auto file = std::make_shared<const platform::File>(std::move(opened));
  CRIA_ASSIGN_OR_RETURN(const Header header, ReadHeader(*file));
  Checkpoint checkpoint = {.name = path.stem().string(),
                           .folder = path,
                           .config = header.config,
                           .described_by = "its header"};
  Placer placer(file, header);
  PlaceTensors(header, placer);
  if (placer.offset() != file->size_bytes()) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: has {} bytes, but its header calls for {}; it may have been cut "
                       "short, or is not llama2.c's: copy it again",
                       path.string(), file->size_bytes(), placer.offset()));
  }
  checkpoint.tensors = placer.Take();
  CRIA_ASSIGN_OR_RETURN(checkpoint.tokenizer, ReadTokenizerBeside(path));
  return checkpoint;
}

Result<TokenizerMaterial> ReadLlama2cTokenizer(const std::filesystem::path& path) {
  constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
  CRIA_ASSIGN_OR_RETURN(const auto file, platform::File::Open(path.string()));
  ByteReader reader(file, 0, std::min(file.size_bytes(), kMaxBytes));
  CRIA_RETURN_IF_ERROR(reader.Read<uint32_t>("the longest token's size"));
  std::vector<std::string> texts;
  std::vector<float> scores;
  while (reader.bytes_left() != 0) {
    if (texts.size() == kMaxDraftPieces) return reader.Bad("has too many tokens");
    CRIA_ASSIGN_OR_RETURN(const auto score, reader.Read<float>("a token"));
    CRIA_ASSIGN_OR_RETURN(const auto bytes, reader.Read<uint32_t>("a token"));
    CRIA_ASSIGN_OR_RETURN(std::string text, reader.ReadString(bytes, "a token"));
    scores.push_back(score);
    texts.push_back(std::move(text));
  }
  constexpr std::array<std::string_view, 3> kSpecials = {"<unk>", "<s>", "</s>"};
  if (texts.size() < kSpecials.size()) return reader.Bad("has fewer than three tokens");
  std::vector<ScoredPiece> pieces;
  bool has_bytes = false;
  for (size_t i = 0; i < texts.size(); ++i) {
    ScoredPiece piece = {texts[i], scores[i], PieceType::kNormal};
    if (i < kSpecials.size()) {
      // In the file, the last two have line breaks around them.
      piece.text = kSpecials[i];
      piece.type = i == 0 ? PieceType::kUnknown : PieceType::kControl;
    } else if (ByteOfPieceName(texts[i])) {
      piece.type = PieceType::kByte;
      has_bytes = true;
    }
    pieces.push_back(piece);
  }
  TokenizerMaterial material = {.where = path.string()};
  CRIA_ASSIGN_OR_RETURN(material.draft, DraftOfScoredPieces(pieces, material.where));
  TokenizerRules& rules = material.draft.rules;
  rules.byte_fallback = has_bytes;
  rules.add_dummy_prefix = rules.dummy_prefix_after_special = true;
  rules.add_bos_token = true;
  rules.bos_token_id = 1;
  material.draft.eos_token_id = 2;
  return material;
}

}  // namespace cria
