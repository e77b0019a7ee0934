#pragma once

#include <string>

#include "cli/flags/template_options.h"
#include "cria/error.h"
#include "text/chat_template.h"
#include "text/reasoning.h"

namespace cria::cli {

// The variables for the template that these options ask for: a JSON object, or "". Fails with
// kUsage if reasoning shall be on or off and the template has no variable for that, or the options'
// own variables set it, too.
Result<std::string> VariablesFor(const ChatTemplate& chat_template, const TemplateOptions& options);

}  // namespace cria::cli
