#include "cli/engine_loader.h"

#include <cstdio>
#include <optional>

#include "cli/ends.h"
#include "cli/messages.h"
#include "cli/start_engine.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal.h"

namespace cria::cli {

Result<std::unique_ptr<Engine>> LoadEngine(const std::string& model_path, EngineOptions options) {
  std::optional<ProgressBar> bar;
  std::optional<StopSentence> stopped;
  const auto pack = [&] { stopped.emplace("packing was stopped", StopSentence::CtrlC::kExit); };
  options.packing.on_notice = [&](std::string_view sentence) {
    pack();
    bar.reset();
    std::fprintf(stderr, "cria: %s\n", Printable(sentence).c_str());
  };
  options.on_notice = [](std::string_view sentence) {
    std::fprintf(stderr, "cria: %s\n", Printable(sentence).c_str());
  };
  // An answer may be under way.
  options.thermal.on_slowing = [](std::string_view sentence) {
    std::fprintf(stderr, "%scria: %s\n", IsTerminal(stderr) ? "\n" : "",
                 Printable(sentence).c_str());
  };
  options.packing.on_progress = [&](uint64_t done, uint64_t total, std::string_view matrix) {
    if (!stopped) pack();
    if (!bar) bar.emplace("packing", std::chrono::seconds(1));
    bar->Update(done, total, matrix);
    return true;
  };
  return StartEngine(model_path, options);
}

}  // namespace cria::cli
