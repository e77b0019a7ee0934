// The commands of cria, run by several ranks: rank 0 runs the command, and the others compute their
// part of the model for it.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/cria_commands.h"
#include "cli/messages.h"
#include "cli/mpi/rank_options.h"
#include "cli/mpi/rank_plan.h"
#include "cli/program.h"
#include "cli/serve/shutdown_signals.h"
#include "cli/start_engine.h"
#include "cli/started_by_mpi.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/platform_threads.h"
#include "mpi/launcher.h"
#include "mpi/mpi_transport.h"
#include "ranks/ordered_collective.h"
#include "ranks/ranked_loader.h"

namespace cria::cli {
namespace {

// What the command that runs knows of its ranks.
struct Ranks {
  ranks::RankedLoader* loader = nullptr;  // Null: no ranks run.
  size_t num_running = 0;
  RankOptions options;
};
Ranks& RunningRanks() {
  static Ranks ranks;
  return ranks;
}

void Tell(std::string_view sentence) {
  std::fprintf(stderr, "cria: %s\n", Printable(sentence).c_str());
}

// Empty without one.
std::string CommandOf(const std::vector<std::string>& arguments) {
  return arguments.empty() ? "" : arguments.front();
}

// OpenMPI lets each of two ranks run on a single core, also if each has a board of its own.
void TellOfBinding(const mpi::MpiTransport& transport) {
  const std::string& host = transport.host(transport.rank());
  size_t ranks_on_board = 0;
  for (size_t rank = 0; rank < transport.num_ranks(); ++rank) {
    if (transport.host(rank) == host) ++ranks_on_board;
  }
  const auto online = static_cast<size_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  const size_t allowed = platform::MaxRunningThreads();
  if (ranks_on_board > 1 || allowed >= online) return;
  Tell(
      Format("rank {} ({}) may use {} of the {} cores of its board; if mpirun bound it, `mpirun "
             "--bind-to none` lets it use all",
             transport.rank(), host, allowed, online));
}

// Computes for rank 0 until that ends.
Status FollowRank0(ranks::RankedLoader& loader, const mpi::MpiTransport& transport,
                   bool rank_0_serves) {
  // mpirun passes a signal on to all ranks. Rank 0 finishes the answers under way, which needs the
  // others; so these end when it tells them to, or after a second signal.
  std::optional<ShutdownSignals> held_back;
  if (rank_0_serves) held_back.emplace();
  return loader.Follow([&](std::string_view sentence) {
    Tell(Format("rank {} ({}): {}", transport.rank(), transport.host(transport.rank()), sentence));
  });
}

Status RunAsRank(const std::vector<std::string>& arguments) {
  const RankOptions& options = RunningRanks().options;
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<mpi::MpiTransport> transport,
                        mpi::MpiTransport::Start(options.limits, [](std::string_view sentence) {
                          std::fprintf(stderr, "cria: error: %s\n", Printable(sentence).c_str());
                        }));
  const std::string command = CommandOf(arguments);
  const bool is_first = transport->rank() == 0;
  // Rank 0 tells what is wrong on all of them.
  if (Status checked = CheckRankOptions(options, command, transport->num_ranks()); !checked) {
    if (is_first) return checked;
    return {};
  }
  ranks::OrderedCollective collective(*transport);
  ranks::RankedLoader loader(collective);
  if (Status met = loader.Meet(CRIA_VERSION); !met) {
    if (is_first) return met;
    return {};
  }
  TellOfBinding(*transport);
  if (!is_first) {
    const Status followed = FollowRank0(loader, *transport, command == "serve");
    // Rank 0 waits for this one, and does not know why.
    if (!followed) {
      transport->EndAllBecause(Format("rank {} ({}): {}: all ranks end", transport->rank(),
                                      transport->host(transport->rank()),
                                      followed.error().message()));
    }
    return {};
  }
  SetTerminalTest(mpi::LauncherHasTerminal);
  RunningRanks().loader = &loader;
  RunningRanks().num_running = transport->num_ranks();
  Status result = RunCommand(arguments);
  if (!result && transport->is_broken()) transport->EndAllBecause(result.error().message());
  RunningRanks().loader = nullptr;
  // mpirun may lose what is written after the ranks have left MPI. FinishOutput reports errors.
  std::fflush(stdout);
  const Status ended = loader.End();
  return result ? ended : result;
}

Status RunProgram(std::span<char* const> words) {
  std::vector<std::string> arguments(words.begin(), words.end());
  Result<RankOptions> options = TakeRankOptions(arguments);
  // All have the same options, and rank 0 tells what is wrong with them. mpirun ends it if another
  // rank fails first.
  if (!options && !IsFirstOfMpi()) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    std::exit(kExitUsage);
  }
  CRIA_RETURN_IF_ERROR(options);
  RunningRanks().options = std::move(*options);
  if (IsStartedByMpi()) return RunAsRank(arguments);
  CRIA_RETURN_IF_ERROR(CheckRankOptions(RunningRanks().options, CommandOf(arguments), 0));
  return RunCommand(arguments);
}

}  // namespace

Result<std::unique_ptr<Engine>> StartEngine(const std::string& path, const EngineOptions& options) {
  const Ranks& ranks = RunningRanks();
  if (ranks.loader == nullptr) return Engine::Load(path, options);
  return ranks.loader->Load(path, options, ranks.options.link);
}

size_t NumRanks() { return RunningRanks().loader == nullptr ? 1 : RunningRanks().num_running; }

Status TakeNamedPart(ModelFile& model) {
  const RankOptions& options = RunningRanks().options;
  if (!options.rank) return {};
  return TakePartOf(*options.rank, options.LinkOf(options.num_ranks), model);
}

bool PlansRanks() {
  return RunningRanks().options.num_ranks != 0 || RunningRanks().num_running != 0;
}

Result<bool> PrintPlanOfRanks(const ModelFile& model, const EngineOptions& options,
                              const PlanArguments& arguments) {
  if (!PlansRanks()) return false;
  const RankOptions& ranks = RunningRanks().options;
  const size_t num_ranks = ranks.num_ranks != 0 ? ranks.num_ranks : RunningRanks().num_running;
  CRIA_RETURN_IF_ERROR(
      PrintRankPlan(model, options, ranks.LinkOf(num_ranks), ranks.network, arguments));
  return true;
}

}  // namespace cria::cli

int main(int argc, char** argv) { return cria::cli::RunMain(argc, argv, cria::cli::RunProgram); }
