#pragma once

#include <string>
#include <string_view>

#include "server/calls/call_form.h"
#include "server/requests/json_body.h"
#include "server/requests/tools.h"

namespace cria::server {

// Rules of GBNF, of which `arguments` matches the arguments of a call, in a form other than kJson,
// as they stand behind the name. Parameters come in the order of the tool's schema (in kBraces, in
// that of the alphabet). Values of kTagged match their schemas, texts as far as `enum` goes; in the
// other styles they match type, enum, properties, required and items.
std::string ArgumentRules(const CallForm& form, const Tool& tool);

// A grammar of the names of the tools.
std::string NameGrammar(const ToolUse& use);

// ---- For the styles ----

// The text as a literal of GBNF.
std::string GrammarLiteral(std::string_view text);
// Rules NAME0, NAME1, … of which the first one is any text up to the first `closing`, which
// belongs to it.
std::string TextRules(std::string_view name, std::string_view closing);

std::string TaggedRules(const CallForm& form, const Json& schema);
std::string LiteralRules(const CallForm& form, const Json& schema);

}  // namespace cria::server
