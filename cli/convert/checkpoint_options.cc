#include "cli/convert/checkpoint_options.h"

#include <type_traits>

#include "converter/tokenizer/named_chat_templates.h"

namespace cria::cli {

void AddCheckpointOptions(CommandLine& command, std::string& checkpoint, ConvertOptions& options) {
  command
      .AddText("CHECKPOINT", checkpoint,
               "A Hugging Face or Meta folder, a GGUF file, a llama2.c model, or hf:ORG/NAME")
      .Required();
  const auto add_scheme = [&command](const char* flag, auto& scheme, const char* help) {
    using SchemeType = std::remove_reference_t<decltype(scheme)>;
    command.AddChoice<SchemeType>(
        flag, scheme, {{"int4", Scheme::kQb4w}, {"int8", Scheme::kQc8w}, {"f32", Scheme::kF32}},
        help);
  };
  add_scheme("--weights", options.weights,
             "How matrices are stored: int4, int8 or f32 (default: int4)");
  command
      .AddChoice(
          "--block-size", options.block_size, {{"32", 32}, {"64", 64}, {"128", 128}, {"256", 256}},
          "int4: maximum number of inputs that share a scale: 32, 64, 128 or 256 (default: 32)")
      .Metavar("UINT");
  add_scheme("--embedding", options.embedding,
             "How the embedding table is stored: int4, int8 or f32 (default: int8, f32 in f32 "
             "models)");
  add_scheme("--head", options.head,
             "How the output head is stored: int4, int8 or f32 (default: int8, f32 in f32 models)");
  command.Add(
      "--chat-template", "NAME|FILE",
      [&options](std::string_view name_or_path) -> Status {
        CRIA_ASSIGN_OR_RETURN(options.chat_template, ReadChatTemplate(std::string(name_or_path)));
        return {};
      },
      "Instead of the checkpoint's own chat template: chatml, llama2, llama3, none, or a file "
      "with one");
}

}  // namespace cria::cli
