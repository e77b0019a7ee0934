#include "converter/calibrate/block_steps.h"

#include <algorithm>
#include <utility>

#include "converter/calibrate/layer_steps.h"

namespace cria {

Result<BlockSteps> BlockSteps::Read(const Block& block, const ModelConfig& config,
                                    const ThreadPool& threads) {
  BlockSteps steps(block, config, threads);
  CRIA_ASSIGN_OR_RETURN(steps.gain_, ReadVector(block.norm));
  CRIA_ASSIGN_OR_RETURN(steps.output_gain_, ReadVector(block.output_norm));
  CRIA_ASSIGN_OR_RETURN(steps.first_bias_, ReadVector(block.first_bias));
  CRIA_ASSIGN_OR_RETURN(steps.second_bias_, ReadVector(block.second_bias));
  CRIA_ASSIGN_OR_RETURN(steps.scalar_, ReadVector(block.scalar));
  if (block.gate != nullptr) {
    CRIA_ASSIGN_OR_RETURN(steps.gate_, ReadMatrix(*block.gate));
  }
  return steps;
}

Matrix BlockSteps::Inputs(Matrix hidden) const {
  if (gain_.empty()) return hidden;
  NormalizeRows(*threads_, hidden.view(), gain_, config_->rms_norm_eps, hidden.view());
  return hidden;
}

Matrix BlockSteps::Inner(Matrix products, const Matrix& inputs) const {
  AddBias(first_bias_, products.view());
  Matrix output(products.rows(), block_->inner_channels);
  const Matrix gates = gate_.rows() == 0 ? Matrix() : Multiply(*threads_, inputs, gate_);
  block_->inner(products.view(), gates.view(), output.view());
  return output;
}

void BlockSteps::AddOutputs(Matrix products, Matrix& hidden) const {
  if (!output_gain_.empty()) {
    AddBias(second_bias_, products.view());
    NormalizeRows(*threads_, products.view(), output_gain_, config_->rms_norm_eps, products.view());
  }
  for (size_t i = 0; i < hidden.values().size(); ++i) hidden.values()[i] += products.values()[i];
  if (output_gain_.empty()) AddBias(second_bias_, hidden.view());
  if (scalar_.empty()) return;
  for (float& value : hidden.values()) value *= scalar_.front();
}

Matrix BlockSteps::Products(const Matrix& first, const Matrix& second, bool rounds,
                            Matrix inputs) const {
  if (rounds) RoundInputs(*threads_, inputs.view());
  Matrix inner = Inner(Multiply(*threads_, inputs, first), inputs);
  if (rounds) RoundInputs(*threads_, inner.view());
  return Multiply(*threads_, inner, second);
}

void BlockSteps::Run(const Matrix& first, const Matrix& second, bool rounds, Matrix& hidden) const {
  AddOutputs(Products(first, second, rounds, Inputs(hidden)), hidden);
}

}  // namespace cria
