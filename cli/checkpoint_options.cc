#include "cli/checkpoint_options.h"

#include <map>

#include "converter/named_chat_templates.h"

namespace cria::cli {

void AddCheckpointOptions(CLI::App& app, std::string& checkpoint, ConvertOptions& options) {
  static const std::map<std::string, Scheme> kSchemeNames = {
      {"int4", Scheme::kQb4w}, {"int8", Scheme::kQc8w}, {"f32", Scheme::kF32}};
  app.add_option("CHECKPOINT", checkpoint,
                 "A folder with config.json, the tokenizer and safetensors, or a GGUF file")
      ->required();
  const auto add_scheme = [&app](const char* flag, auto& scheme, const char* help) {
    app.add_option_function<std::string>(
           flag, [&scheme](const std::string& name) { scheme = kSchemeNames.at(name); }, help)
        ->check(CLI::IsMember({"int4", "int8", "f32"}));
  };
  add_scheme("--weights", options.weights,
             "How matrices are stored: int4, int8 or f32 (default: int4)");
  app.add_option("--block-size", options.block_size,
                 "int4: most inputs that share a scale: 32, 64, 128 or 256 (default: 32)")
      ->check(CLI::IsMember({32, 64, 128, 256}));
  add_scheme("--embedding", options.embedding,
             "How the embedding table is stored: int4, int8 or f32 (default: int8, f32 in f32 "
             "models)");
  add_scheme("--head", options.head,
             "How the output head is stored: int4, int8 or f32 (default: int8, f32 in f32 models)");
  app.add_option_function<std::string>(
         "--chat-template",
         [&options](const std::string& name_or_path) {
           auto source = ReadChatTemplate(name_or_path);
           if (!source) throw CLI::ValidationError("--chat-template", source.error().message());
           options.chat_template = *std::move(source);
         },
         "Instead of the checkpoint's own chat template: chatml, llama2, llama3, none, or a file "
         "with one")
      ->type_name("NAME|FILE");
}

}  // namespace cria::cli
