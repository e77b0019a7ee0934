#include "server/page/page.h"

namespace cria::server {

std::string_view PageContentEncoding() { return "gzip"; }

std::string_view PageContentSecurityPolicy() {
  return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
         "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
         "require-trusted-types-for 'script'; trusted-types 'none'";
}

}  // namespace cria::server
