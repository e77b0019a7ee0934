#pragma once

#include "cli/serve/serve_options.h"
#include "cria/error.h"

namespace cria::cli {

// Loads the model and serves it until Ctrl-C or SIGTERM.
Status Serve(ServeOptions options);

}  // namespace cria::cli
