#include "cli/convert/scheme_table.h"

#include <algorithm>

#include "core/format.h"

namespace cria::cli {
namespace {

std::string NameOf(const TensorLayout& layout) {
  const BlockFormat* const format = layout.block_format();
  return format == nullptr ? "int8" : Format("int{}", format->code_bits);
}

double BitsOf(const TensorLayout& layout) {
  return 8.0 * static_cast<double>(layout.data_bytes() + layout.scale_bytes()) /
         static_cast<double>(layout.output_channels * layout.input_channels);
}

}  // namespace

std::string SchemeTable(const std::vector<SchemeChoice>& choices, bool is_measured) {
  size_t width = 26;
  for (const SchemeChoice& choice : choices) width = std::max(width, choice.name.size());
  std::string table = Format("{:<{}} {:>10} {:>10} {:>10}  {:<6} {:>5}\n", "costs of matrices",
                             width, "in int8", "in int4", "as chosen", "scheme", "bits");
  double sum = 0.0;
  for (const SchemeChoice& choice : choices) {
    const SchemeOption& chosen = choice.options[choice.chosen];
    sum += chosen.cost;
    table += Format("{:<{}} {:>10.3g} {:>10.3g} {:>10.3g}  {:<6} {:>5.2f}\n", choice.name, width,
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
            "the weights;\nwithout --fast, it is measured with a text.\n";
  return table;
}

std::string ErrorTable(const std::vector<MatrixError>& errors) {
  // In their order in a layer. Layers with experts have other ones than dense layers.
  std::vector<TensorRole> roles;
  size_t width = 12;
  for (const MatrixError& error : errors) {
    if (std::ranges::contains(roles, error.spec.role)) continue;
    roles.push_back(error.spec.role);
    width = std::max(width, TensorRoleName(error.spec.role).size());
  }
  std::string table = "KL divergence, in nats, if only one matrix is stored as in the model\n";
  const auto add_line = [&](const std::string& name, const std::vector<std::string>& cells) {
    table += Format("{:<6}", name);
    for (const std::string& cell : cells) table += Format(" {:>{}}", cell, width);
    table += '\n';
  };
  std::vector<std::string> names;
  names.reserve(roles.size() + 1);
  for (const TensorRole role : roles) names.emplace_back(TensorRoleName(role));
  names.emplace_back("sum");
  add_line("layer", names);
  // With the sum of all as the last one.
  std::vector<double> sums(roles.size() + 1);
  for (auto error = errors.begin(); error != errors.end();) {
    const int layer = error->spec.layer;
    std::vector<std::string> cells(roles.size() + 1);
    double sum = 0.0;
    for (; error != errors.end() && error->spec.layer == layer; ++error) {
      const auto column =
          static_cast<size_t>(std::ranges::find(roles, error->spec.role) - roles.begin());
      cells[column] = Format("{:.3g}", error->divergence);
      sums[column] += error->divergence;
      sum += error->divergence;
    }
    cells.back() = Format("{:.3g}", sum);
    sums.back() += sum;
    add_line(Format("{}", layer), cells);
  }
  std::vector<std::string> cells;
  cells.reserve(sums.size());
  for (const double sum : sums) cells.push_back(Format("{:.3g}", sum));
  add_line("sum", cells);
  return table;
}

}  // namespace cria::cli
