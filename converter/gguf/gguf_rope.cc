#include "converter/gguf/gguf_rope.h"

#include <string>

#include "converter/checkpoint/yarn_magnitude.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

class RopeReader {
 public:
  RopeReader(const GgufMetadata& metadata, std::string_view architecture, bool has_longrope)
      : metadata_(metadata), architecture_(architecture), has_longrope_(has_longrope) {}

  Result<LayerKind> Read(uint32_t context_length) const {
    constexpr float kDefaultBase = 10000.0f;
    LayerKind kind;
    CRIA_ASSIGN_OR_RETURN(kind.rope_theta, metadata_.Number(Key("freq_base"), kDefaultBase));
    CRIA_ASSIGN_OR_RETURN(const float old_factor, metadata_.Number(Key("scale_linear"), 1.0f));
    // As in llama.cpp, a factor without a type is linear, and the factor 0 means none.
    CRIA_ASSIGN_OR_RETURN(const std::string type, metadata_.String(Key("scaling.type"), "linear"));
    if (type == "yarn") {
      CRIA_ASSIGN_OR_RETURN(kind.rope_scaling, ReadYarn(context_length));
      return kind;
    }
    if (type != "none" && type != "linear") {
      return Unsupported("scaling.type", Format("is \"{}\"", Quotable(type)));
    }
    if (!has_longrope_) CRIA_RETURN_IF_ERROR(RefuseUnless("scaling.attn_factor", 1.0f));
    CRIA_RETURN_IF_ERROR(RefuseUnless("scaling.yarn_ext_factor", 0.0f));
    CRIA_ASSIGN_OR_RETURN(const float factor, metadata_.Number(Key("scaling.factor"), old_factor));
    if (type == "linear" && factor != 1.0f && factor != 0.0f) {
      kind.rope_scaling = {.type = RopeScaling::Type::kLinear, .factor = factor};
    }
    return kind;
  }

 private:
  std::string Key(std::string_view name) const { return Format("{}.rope.{}", architecture_, name); }

  std::unexpected<Error> Unsupported(std::string_view name, std::string_view what) const {
    return metadata_.Bad(Key(name), Format("{}, which this version does not support", what),
                         ErrorCode::kUnsupported);
  }

  // For factors of yarn: a negative one means that it is not set.
  Status RefuseUnless(std::string_view name, float supported) const {
    CRIA_ASSIGN_OR_RETURN(const float value, metadata_.Number(Key(name), supported));
    if (value == supported || value < 0.0f) return {};
    return Unsupported(name, Format("is {}", value));
  }

  Result<RopeScaling> ReadYarn(uint32_t context_length) const {
    RopeScaling scaling = {.type = RopeScaling::Type::kYarn};
    // 1 computes what transformers does; less divides the frequencies of fast pairs, too.
    CRIA_RETURN_IF_ERROR(RefuseUnless("scaling.yarn_ext_factor", 1.0f));
    // llama.cpp's converter writes Hugging Face's attention_factor here, but llama.cpp multiplies
    // by it or ignores it, depending on the version.
    CRIA_RETURN_IF_ERROR(RefuseUnless("scaling.yarn_attn_factor", 1.0f));
    CRIA_ASSIGN_OR_RETURN(scaling.factor, metadata_.Number(Key("scaling.factor")));
    CRIA_ASSIGN_OR_RETURN(
        scaling.original_max_position_embeddings,
        metadata_.Integer(Key("scaling.original_context_length"), context_length));
    CRIA_ASSIGN_OR_RETURN(scaling.beta_fast,
                          metadata_.Number(Key("scaling.yarn_beta_fast"), scaling.beta_fast));
    CRIA_ASSIGN_OR_RETURN(scaling.beta_slow,
                          metadata_.Number(Key("scaling.yarn_beta_slow"), scaling.beta_slow));
    // Hugging Face's mscale_all_dim, for an mscale of 1; 0 means that there is none.
    CRIA_ASSIGN_OR_RETURN(const float log_multiplier,
                          metadata_.Number(Key("scaling.yarn_log_multiplier"), 0.0f));
    CRIA_ASSIGN_OR_RETURN(const float attn_factor,
                          metadata_.Number(Key("scaling.attn_factor"), 1.0f));
    scaling.attention_factor = attn_factor * YarnMagnitude(scaling.factor, 1.0f);
    if (log_multiplier != 0.0f) {
      scaling.attention_factor /= YarnMagnitude(scaling.factor, log_multiplier);
    }
    return scaling;
  }

  const GgufMetadata& metadata_;
  std::string_view architecture_;
  bool has_longrope_;
};

}  // namespace

Result<LayerKind> ReadGgufRope(const GgufMetadata& metadata, std::string_view architecture,
                               uint32_t context_length, bool has_longrope) {
  return RopeReader(metadata, architecture, has_longrope).Read(context_length);
}

}  // namespace cria
