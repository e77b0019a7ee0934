#include "converter/calibrate/run_layer.h"

#include <utility>

#include "converter/calibrate/block_steps.h"
#include "converter/calibrate/mixture_steps.h"

namespace cria {
namespace {

Status RunMixture(const Mixture& mixture, const ModelConfig& config, const ThreadPool& threads,
                  const WeightReader& read, bool rounds, Matrix& hidden) {
  CRIA_ASSIGN_OR_RETURN(const MixtureSteps steps, MixtureSteps::Read(mixture, config, threads));
  MixturePass pass(steps, hidden);
  for (size_t i = 0; i < mixture.num_blocks(); ++i) {
    const Block& block = mixture.block(i);
    Matrix inputs = pass.InputsOf(i);
    if (inputs.rows() == 0) continue;
    CRIA_ASSIGN_OR_RETURN(const BlockSteps expert, BlockSteps::Read(block, config, threads));
    CRIA_ASSIGN_OR_RETURN(const Matrix first, read(*block.first));
    CRIA_ASSIGN_OR_RETURN(const Matrix second, read(*block.second));
    pass.Add(i, expert.Products(first, second, rounds, std::move(inputs)));
  }
  steps.AddOutputs(pass.TakeSum(), hidden);
  return {};
}

}  // namespace

Status RunLayer(const LayerBlocks& layer, const ModelConfig& config, const ThreadPool& threads,
                const WeightReader& read, bool rounds, Matrix& hidden) {
  for (const Block& block : layer.blocks) {
    CRIA_ASSIGN_OR_RETURN(const Matrix first, read(*block.first));
    CRIA_ASSIGN_OR_RETURN(const Matrix second, read(*block.second));
    CRIA_ASSIGN_OR_RETURN(const BlockSteps steps, BlockSteps::Read(block, config, threads));
    steps.Run(first, second, rounds, hidden);
  }
  if (!layer.mixture) return {};
  return RunMixture(*layer.mixture, config, threads, read, rounds, hidden);
}

}  // namespace cria
