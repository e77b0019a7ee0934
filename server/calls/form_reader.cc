#include "server/calls/form_reader.h"

#include <algorithm>

namespace cria::server {

void FormReader::Begin(std::string_view name) {
  arguments_.clear();
  reader_ = MakeArgumentReader(form_, *std::ranges::find(use_.tools, name, &Tool::name));
}

}  // namespace cria::server
