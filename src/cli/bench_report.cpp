// The two forms in which bench tells its figures.
#include <algorithm>

#include "bench.h"
#include "json.h"
#include "terminal.h"

namespace proofinfer::cli {
namespace {

// A larger share of the machine's own speed than this cannot be.
constexpr double kMeasuringError = 1.02;

// Four significant digits, so that a tiny model's microseconds and a large one's minutes both say something.
std::string figure_text(double value) {
  int decimals = 3;
  for (double bound = 9.9995; decimals > 0 && value >= bound; bound *= 10) decimals--;
  for (double bound = 0.99995; decimals < 6 && value < bound && value > 0; bound /= 10) decimals++;
  return number_text(value, decimals);
}

std::string cell(const std::string &text, size_t width, bool right) {
  const std::string spaces(width - std::min(width, text.size()), ' ');
  return right ? spaces + text : text + spaces;
}

std::string line(const std::string &label, const std::string &middle, const std::string &low, const std::string &high,
                 const std::string &unit) {
  return cell(label, 21, false) + cell(middle, 11, true) + cell(low, 11, true) + cell(high, 11, true) + unit + "\n";
}

}  // namespace

std::string bench_table(const LoadedModel &model, const BenchPlan &plan, const std::vector<Figure> &figures) {
  std::string text = "model    " + model.path + " (" + model.text(PROOFINFER_MODEL_FORMAT) + ", " +
                     model.text(PROOFINFER_MODEL_ELEMENT_TYPE) + ", " + std::to_string(model.get(PROOFINFER_MODEL_PARAMETER_COUNT)) +
                     " parameters)\n";
  text += "engine   proofinfer " + std::string(proofinfer_version_text()) + ", kernels " + model.text(PROOFINFER_MODEL_ISA) + ", threads " +
          std::to_string(model.get(PROOFINFER_MODEL_THREADS)) + "\n";
  text += "method   prompt of " + std::to_string(plan.prompt_count) + " tokens, " + std::to_string(plan.decode_count) +
          " decoded, repeats " + std::to_string(plan.repeats) +
          (plan.sessions > 0 ? ", together " + std::to_string(plan.sessions) + " sessions" : "") + "\n\n";
  text += line("", "median", "lowest", "highest", "");
  for (const Figure &figure : figures) {
    const auto [lowest, highest] = std::minmax_element(figure.runs.begin(), figure.runs.end());
    const bool many = figure.runs.size() > 1;
    const bool is_bytes = figure.unit == std::string("bytes");
    const double scale = is_bytes ? 1e-6 : 1;
    text += line(figure.label, figure_text(median(figure.runs) * scale), many ? figure_text(*lowest * scale) : "",
                 many ? figure_text(*highest * scale) : "", is_bytes ? "  MB" : std::string("  ") + figure.unit);
  }
  for (const Figure &figure : figures)
    if (figure.key == std::string("decode_share_of_read_bound") && median(figure.runs) > kMeasuringError)
      text += "\nDecoding seems to read faster than the machine can: a measuring error, for example because the weights fit a cache.\n";
  return text;
}

std::string bench_json(const LoadedModel &model, const BenchPlan &plan, const std::vector<Figure> &figures) {
  JsonWriter json;
  json.open_object();
  json.text("file", model.path);
  json.text("format", model.text(PROOFINFER_MODEL_FORMAT));
  json.text("element_type", model.text(PROOFINFER_MODEL_ELEMENT_TYPE));
  json.integer("parameter_count", model.get(PROOFINFER_MODEL_PARAMETER_COUNT));
  json.integer("file_bytes", model.get(PROOFINFER_MODEL_FILE_BYTES));
  json.integer("weight_bytes", model.get(PROOFINFER_MODEL_WEIGHT_BYTES));
  json.text("version", proofinfer_version_text());
  json.text("build", proofinfer_build_text());
  json.text("isa", model.text(PROOFINFER_MODEL_ISA));
  json.integer("threads", model.get(PROOFINFER_MODEL_THREADS));
  json.integer("prompt_tokens", static_cast<int64_t>(plan.prompt_count));
  json.integer("decode_tokens", static_cast<int64_t>(plan.decode_count));
  json.integer("repeats", static_cast<int64_t>(plan.repeats));
  json.integer("sessions", static_cast<int64_t>(plan.sessions));
  json.open_object("figures");
  for (const Figure &figure : figures) {
    json.open_object(figure.key);
    json.text("unit", figure.unit);
    json.real("median", median(figure.runs));
    json.open_array("runs");
    for (double run : figure.runs) json.real({}, run);
    json.close_array();
    json.close_object();
  }
  json.close_object();
  json.close_object();
  return json.finish();
}

}  // namespace proofinfer::cli
