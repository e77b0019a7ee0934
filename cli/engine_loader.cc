#include "cli/engine_loader.h"

#include <cstdio>
#include <optional>

#include "cli/messages.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"

namespace cria::cli {

Result<std::unique_ptr<Engine>> LoadEngine(const std::string& model_path, EngineOptions options) {
  const InterruptGuard interrupt;
  std::optional<ProgressBar> bar;
  options.packing.on_notice = [&](std::string_view sentence) {
    bar.reset();
    std::fprintf(stderr, "cria: %s\n", Printable(sentence).c_str());
  };
  options.packing.on_progress = [&](uint64_t done, uint64_t total, std::string_view matrix) {
    if (!bar) bar.emplace("packing", std::chrono::seconds(1));
    bar->Update(done, total, matrix);
    return !interrupt.interrupted();
  };
  return Engine::Load(model_path, options);
}

}  // namespace cria::cli
