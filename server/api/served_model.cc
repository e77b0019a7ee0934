#include "server/api/served_model.h"

#include <utility>

#include "decode/decoder_options.h"
#include "text/reasoning.h"

namespace cria::server {

ServedModel::ServedModel(std::string model_name, Parts loaded, Metrics& sums)
    : parts(std::move(loaded)),
      engine(*parts.engine),
      name(std::move(model_name)),
      call_style(FindCallStyle(engine.chat_template(), &engine.tokenizer())),
      infill_tokens(FindInfillTokens(engine.tokenizer().vocabulary())),
      stored(parts.prompts == nullptr ? nullptr : &engine.scheduler().UseStore(*parts.prompts)),
      sessions(engine),
      metrics(sums) {}

ServedModel::~ServedModel() {
  if (stored != nullptr) stored->WriteAll(std::chrono::steady_clock::now() + parts.writing_time);
}

ModelDescription ModelDescription::Of(const ModelFile& file, const EngineOptions& options) {
  const ChatTemplate chat_template(file.chat_template_source(), file.vocabulary(), file.path());
  const MemoryPlanOptions resolved = ResolveOptions(OutlineOf(file), options);
  return {.path = file.path(),
          .size_bytes = file.size_bytes(),
          .digest = file.digest(),
          .architecture = file.config().architecture,
          .thinking_variable = std::string(ThinkingVariable(chat_template)),
          .vocab_size = file.config().vocab_size,
          .longest_context = file.config().longest_context(),
          .context_tokens = MaxSequenceTokens(file.config(), resolved.decoder)};
}

}  // namespace cria::server
