#include "server/api/served_model.h"

#include <utility>

namespace cria::server {

ServedModel::ServedModel(Engine& loaded, std::string model_name, const PromptFiles* kept_prompts)
    : engine(loaded),
      name(std::move(model_name)),
      call_style(FindCallStyle(engine.chat_template(), &engine.tokenizer())),
      infill_tokens(FindInfillTokens(engine.tokenizer().vocabulary())),
      prompts(kept_prompts),
      sessions(engine) {}

}  // namespace cria::server
