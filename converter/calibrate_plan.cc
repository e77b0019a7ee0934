#include "converter/calibrate_plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "converter/calibrate/calibrate.h"
#include "core/format.h"

namespace cria {
namespace {

Result<CalibrationReport> CalibrateChoice(const std::filesystem::path& output_path,
                                          const std::optional<std::filesystem::path>& resume_folder,
                                          const ThreadPool& threads,
                                          const ProgressCallback& progress,
                                          const PlannedConversion& planned, FilePlan& plan,
                                          std::vector<ResumeFolder>& resume) {
  const CalibrationTokens& tokens = *planned.tokens;
  CRIA_ASSIGN_OR_RETURN(ScratchFile scratch, ScratchFile::Create(output_path));
  const auto calibrate = [&](ResumeFolder* folder) {
    return Calibrate(tokens, planned.preparation.checkpoint.config, threads,
                     std::make_shared<ScratchFile>(std::move(scratch)), progress, folder, plan);
  };
  if (!resume_folder) return calibrate(nullptr);
  CRIA_ASSIGN_OR_RETURN(const Digest identity,
                        CalibrationIdentity(plan, tokens.ids, tokens.window_tokens));
  CRIA_ASSIGN_OR_RETURN(ResumeFolder folder, ResumeFolder::Open(*resume_folder, identity));
  resume.push_back(std::move(folder));
  return calibrate(&resume.back());
}

}  // namespace

Result<CalibrationReport> CalibratePlan(const std::filesystem::path& output_path,
                                        const std::optional<std::filesystem::path>& resume_folder,
                                        const ThreadPool& threads, const ProgressCallback& progress,
                                        PlannedConversion& planned,
                                        std::vector<ResumeFolder>& resume) {
  const size_t num_choices = std::max<size_t>(1, planned.choices.size());
  const double part = 1.0 / static_cast<double>(num_choices);
  const auto progress_of = [&](double begin, double end) {
    return ProgressOfStep(progress, ConvertStep::kCalibrating, begin, end);
  };
  std::optional<FilePlan> second;
  if (num_choices > 1) {
    second = planned.plan;
    ApplyChoice(planned.matrices, planned.choices[1], *second);
  }
  CRIA_ASSIGN_OR_RETURN(CalibrationReport report,
                        CalibrateChoice(output_path, resume_folder, threads, progress_of(0.0, part),
                                        planned, planned.plan, resume));
  if (!second) return report;
  std::optional<std::filesystem::path> second_folder = resume_folder;
  if (second_folder) *second_folder /= "second-choice";
  CRIA_ASSIGN_OR_RETURN(CalibrationReport second_report,
                        CalibrateChoice(output_path, second_folder, threads, progress_of(part, 1.0),
                                        planned, *second, resume));
  if (second_report.predictions.divergence < report.predictions.divergence) {
    std::swap(report, second_report);
    std::swap(planned.plan, *second);
    std::swap(planned.choices[0], planned.choices[1]);
  }
  planned.preparation.checkpoint.notes.push_back(
      Format("codes were chosen for two ways to spend the bits: what is stored changes predictions "
             "of held-back text by {:.3g} nats of KL divergence, the other way by {:.3g}",
             report.predictions.divergence, second_report.predictions.divergence));
  return report;
}

}  // namespace cria
