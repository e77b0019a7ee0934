#pragma once

#include "jinja/natives.h"

// Python's way to write values into a text. Only the simplest fields are supported; others fail.
namespace cria::jinja {

// "{} {0} {name}".format(…)
Value FormatMethod(Call& call);

}  // namespace cria::jinja
