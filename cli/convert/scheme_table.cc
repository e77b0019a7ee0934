#include "cli/convert/scheme_table.h"

#include "core/format.h"

namespace cria::cli {
namespace {

std::string NameOf(const TensorLayout& layout) {
  if (layout.scheme == Scheme::kQc8w) return "int8";
  return Format("int4, blocks of {}", layout.block_size);
}

double BitsOf(const TensorLayout& layout) {
  return 8.0 * static_cast<double>(layout.data_bytes() + layout.scale_bytes()) /
         static_cast<double>(layout.output_channels * layout.input_channels);
}

}  // namespace

std::string SchemeTable(const std::vector<SchemeChoice>& choices, bool is_measured) {
  std::string table = Format("{:<26} {:>10} {:>10} {:>10}  {:<20} {:>5}\n", "costs of matrices",
                             "in int8", "in int4", "as chosen", "scheme", "bits");
  double sum = 0.0;
  for (const SchemeChoice& choice : choices) {
    const SchemeOption& chosen = choice.options[choice.chosen];
    sum += chosen.cost;
    table += Format("{:<26} {:>10.3g} {:>10.3g} {:>10.3g}  {:<20} {:>5.2f}\n", choice.name,
                    choice.options[0].cost, choice.options[1].cost, chosen.cost,
                    NameOf(chosen.layout), BitsOf(chosen.layout));
  }
  table +=
      is_measured
          ? Format(
                "A cost is how far the predictions change, in nats of KL divergence, if this "
                "matrix alone is\nrounded; their sum is {:.3g}.\n",
                sum)
          : "A cost is a matrix's squared error in relation to its squares. It is estimated from "
            "the weights;\nwith a text to calibrate with, it is measured.\n";
  return table;
}

std::string ErrorTable(const std::vector<MatrixError>& errors) {
  // In their order in a layer, which is the same in all.
  std::vector<TensorRole> roles;
  for (const MatrixError& error : errors) {
    if (error.spec.layer == errors.front().spec.layer) roles.push_back(error.spec.role);
  }
  std::string table = "KL divergence, in nats, if only one matrix is stored as in the model\n";
  table += Format("{:<6}", "layer");
  for (const TensorRole role : roles) table += Format(" {:>12}", TensorRoleName(role));
  table += Format(" {:>12}\n", "sum");
  std::vector<double> sums(roles.size());
  const auto add_line = [&](const std::string& name, const std::vector<double>& divergences) {
    table += Format("{:<6}", name);
    double sum = 0.0;
    for (const double each : divergences) {
      sum += each;
      table += Format(" {:>12.3g}", each);
    }
    table += Format(" {:>12.3g}\n", sum);
  };
  std::vector<double> line;
  for (const MatrixError& error : errors) {
    sums[line.size()] += error.divergence;
    line.push_back(error.divergence);
    if (line.size() < roles.size()) continue;
    add_line(Format("{}", error.spec.layer), line);
    line.clear();
  }
  add_line("sum", sums);
  return table;
}

}  // namespace cria::cli
