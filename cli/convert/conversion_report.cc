#include "cli/convert/conversion_report.h"

#include <cstdio>

#include "cli/convert/scheme_table.h"
#include "cli/terminal/printable.h"
#include "core/format.h"

namespace cria::cli {
namespace {

// Empty if it was not measured.
std::string RotationReason(const RotationReport& report) {
  if (report.divergence_ratio == 0.0) return "";
  return Format(
      ": the KL divergence of rounding is {:.2f} of that without, for text that was held back",
      report.divergence_ratio);
}

}  // namespace

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::printf("%s\n", Printable(note).c_str());
}

void PrintReport(const ConvertReport& report, const std::string& output) {
  std::printf("%-26s %-6s %8s %14s %12s %12s %10s\n", "tensors", "scheme", "count", "weights", "MB",
              "RMS error", "relative");
  for (const TensorKindReport& kind : report.kinds) {
    std::printf("%-26s %-6s %8zu %14llu %12.3f %12.3e %9.3f%%\n",
                std::string(TensorRoleName(kind.role)).c_str(),
                std::string(SchemeName(kind.scheme)).c_str(), kind.num_tensors,
                static_cast<unsigned long long>(kind.num_weights),
                static_cast<double>(kind.stored_bytes) / 1e6, kind.rms_error(),
                100.0 * kind.relative_rms_error());
  }
  if (!report.schemes.empty()) {
    std::fputs(SchemeTable(report.schemes, report.calibrated.num_tokens > 0).c_str(), stdout);
  }
  if (!report.errors.empty()) std::fputs(ErrorTable(report.errors).c_str(), stdout);
  PrintNotes(report.notes);
  if (report.equalized.num_equalized > 0) {
    std::printf("large channels were evened out in %zu of %zu places\n",
                report.equalized.num_equalized, report.equalized.num_places);
  }
  if (report.rotation.is_rotated) {
    std::printf("the hidden state is rotated%s\n", RotationReason(report.rotation).c_str());
  }
  if (report.calibrated.num_tokens > 0) {
    std::printf(
        "calibrated %zu of %zu matrices with %zu tokens: squared errors of products are "
        "%.2f of those of rounding, for text that was held back\n",
        report.calibrated.num_calibrated, report.calibrated.num_matrices,
        report.calibrated.num_tokens, report.calibrated.held_back_ratio);
    const KeptPredictions& predictions = report.calibrated.predictions;
    std::printf(
        "the most likely token is that of the original at %.1f%% of %zu positions of this text\n",
        100.0 * static_cast<double>(predictions.num_same) /
            static_cast<double>(predictions.num_tokens),
        predictions.num_tokens);
    if (report.calibrated.num_rounded_experts > 0) {
      std::printf(
          "%zu of %zu experts are rounded, because too few tokens reach them: a longer text, by "
          "--calibrate, may lose less\n",
          report.calibrated.num_rounded_experts, report.calibrated.num_experts);
    }
    if (report.calibrated.num_resumed_layers > 0) {
      std::printf("an earlier run had done the first %zu layers\n",
                  report.calibrated.num_resumed_layers);
    }
    if (report.calibrated.has_few_tokens) {
      std::printf(
          "these are few tokens for this model: a longer text, by --calibrate, may lose less\n");
    }
  }
  std::printf("%s: %s, %llu parameters, %.2f bits per weight, %.1f MB, digest %s\n",
              Printable(output).c_str(), Printable(report.name).c_str(),
              static_cast<unsigned long long>(report.num_parameters), report.bits_per_weight,
              static_cast<double>(report.file_bytes) / 1e6, DigestText(report.digest).c_str());
}

}  // namespace cria::cli
