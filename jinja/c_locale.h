#pragma once

#include <locale.h>  // newlocale

namespace cria::jinja {

// The locale for reading numbers and writing dates, so that templates do not depend on the locale
// that the program has set.
inline locale_t CLocale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

}  // namespace cria::jinja
