#pragma once

#include "jinja/natives.h"

// Python's ways to write values into a text. Fields that are not supported fail.
namespace cria::jinja {

// "{} {0} {name}".format(…)
Value FormatMethod(Call& call);

// "{name}".format_map({…})
Value FormatMapMethod(Call& call);

// "%s %5.1f" | format(…)
Value FormatFilter(Call& call);

// "%s" % value, where a tuple has several values, and a dictionary those of %(name)s.
Value ApplyPercent(Context& context, const Text& format, const Value& value);

}  // namespace cria::jinja
