#include "cli/convert/checkpoint_options.h"

#include "converter/calibrate/shipped_text.h"
#include "converter/tokenizer/named_chat_templates.h"
#include "core/format.h"
#include "model/path_contents.h"

namespace cria::cli {

void AddCheckpointOptions(CommandLine& command, CheckpointArguments& arguments) {
  ConvertOptions& options = arguments.options;
  command
      .AddText("CHECKPOINT", arguments.checkpoint,
               "A Hugging Face or Meta folder, a GGUF file, a llama2.c model, or hf:ORG/NAME")
      .Required();
  command.AddChoice<WeightsChoice>(
      "--weights", arguments.weights,
      {{"keep", {Scheme::kQc8w, true}},
       {"int2", {Scheme::kW2G64, false}},
       {"int3", {Scheme::kW3G64, false}},
       {"int4", {Scheme::kW4G64, false}},
       {"int5", {Scheme::kW5G64, false}},
       {"int6", {Scheme::kW6G64, false}},
       {"int8", {Scheme::kQc8w, false}},
       {"f32", {Scheme::kF32, false}},
       {"qb4w", {Scheme::kQb4w, false}}},
      "How matrices are stored: keep (with the codes that the "
      "checkpoint has), int2 to int6, int8, f32, or qb4w (int4 in XNNPACK's "
      "format) (default: keep if there are codes, otherwise int4)");
  const auto add_scheme = [&command](const char* flag, std::optional<Scheme>& scheme,
                                     const char* help) {
    command.AddChoice<std::optional<Scheme>>(flag, scheme,
                                             {{"int2", Scheme::kW2G64},
                                              {"int3", Scheme::kW3G64},
                                              {"int4", Scheme::kW4G64},
                                              {"int5", Scheme::kW5G64},
                                              {"int6", Scheme::kW6G64},
                                              {"int8", Scheme::kQc8w},
                                              {"f32", Scheme::kF32},
                                              {"qb4w", Scheme::kQb4w}},
                                             help);
  };
  command
      .AddChoice<std::optional<size_t>>("--block-size", arguments.block_size,
                                        {{"32", 32}, {"64", 64}, {"128", 128}, {"256", 256}},
                                        "int4 in XNNPACK's format, with at most this number of "
                                        "inputs that share a scale: 32, 64, "
                                        "128 or 256 (default of qb4w: 32)")
      .Metavar("UINT");
  add_scheme("--embedding", options.embedding,
             "How the embedding table is stored: int2 to int6, int8, f32 or qb4w (default: as the "
             "checkpoint has it if codes are kept, f32 in f32 models, as a target chooses, "
             "otherwise int8)");
  add_scheme("--head", options.head, "How the output head is stored (default: likewise)");
  command.Add(
      "--chat-template", "NAME|FILE",
      [&options](std::string_view name_or_path) -> Status {
        CRIA_ASSIGN_OR_RETURN(options.chat_template, ReadChatTemplate(std::string(name_or_path)));
        return {};
      },
      "Instead of the checkpoint's own chat template: chatml, llama2, llama3, none, or a file "
      "with one");
}

Status ChooseWeights(const CodesChoice& codes, CheckpointArguments& arguments) {
  ConvertOptions& options = arguments.options;
  options.weights = arguments.weights.scheme;
  if (codes.are_rounded || arguments.block_size) {
    const auto take_xnnpacks = [](Scheme& scheme) {
      if (scheme == Scheme::kW4G64) scheme = Scheme::kQb4w;
    };
    take_xnnpacks(options.weights);
    if (options.embedding) take_xnnpacks(*options.embedding);
    if (options.head) take_xnnpacks(*options.head);
  }
  options.block_size = arguments.block_size.value_or(options.block_size);
  options.finds_codes = arguments.weights.scheme == Scheme::kW4G64 && !arguments.block_size &&
                        !options.target && (!codes.are_chosen || codes.are_rounded);
  const bool is_open = !arguments.weights.keeps_codes && !codes.are_chosen && !options.target;
  options.keeps_codes = arguments.weights.keeps_codes.value_or(is_open);
  if (!options.keeps_codes) return {};
  const ContentKind kind = InspectPath(arguments.checkpoint).kind;
  if (kind == ContentKind::kGguf || kind == ContentKind::kHuggingFaceFolder) {
    CRIA_ASSIGN_OR_RETURN(options.keeps_codes, HasCodesToKeep(arguments.checkpoint));
  } else {
    options.keeps_codes = false;
  }
  if (options.keeps_codes) {
    options.weights = Scheme::kQc8w;
    options.finds_codes = false;
  } else if (arguments.weights.keeps_codes) {
    return Fail(ErrorCode::kUsage,
                Format("{}: has no matrices in blocks, so there are no codes to keep",
                       arguments.checkpoint));
  }
  return {};
}

bool CalibratesByDefault(const ConvertOptions& options, bool rounds) {
  return !rounds && !options.keeps_codes && options.weights != Scheme::kF32;
}

size_t DefaultShippedTextTokens(const ConvertOptions& options, const ModelConfig& config) {
  const bool may_have_few_bits =
      options.target || options.weights == Scheme::kW2G64 || options.weights == Scheme::kW3G64;
  return may_have_few_bits ? kShippedTextTokensForFewBits : ShippedTextTokens(config);
}

}  // namespace cria::cli
