// proofinfer convert: a checkpoint in another format.
#include "commands.h"
#include "engine.h"
#include "problem.h"
#include "terminal.h"

namespace proofinfer::cli {
namespace {

int32_t read_format(const Arguments &arguments) {
  if (arguments.has("packed")) {
    if (arguments.text("to")) throw UsageProblem("--packed and --to are two formats; expected one");
    return PROOFINFER_FORMAT_PACKED;
  }
  const std::string name = arguments.text("to").value_or("v2");
  if (name == "legacy") return PROOFINFER_FORMAT_LEGACY;
  if (name == "v1") return PROOFINFER_FORMAT_VERSION_1;
  if (name == "v2") return PROOFINFER_FORMAT_VERSION_2;
  throw UsageProblem("--to is \"" + name + "\"; expected legacy, v1 or v2");
}

std::string convert_progress(uint64_t done, uint64_t total) {
  return "converting: " + bytes_text(static_cast<double>(done)) + " of " + bytes_text(static_cast<double>(total));
}

}  // namespace

int run_convert(const Arguments &arguments) {
  arguments.expect_at_most(2);
  if (arguments.positionals().size() < 2) throw UsageProblem("convert needs the checkpoint to read and the one to write");
  const std::string &from = arguments.positionals()[0], &to = arguments.positionals()[1];
  const int32_t format = read_format(arguments);
  const int32_t group_size = static_cast<int32_t>(arguments.integer("group-size", 0, 0, INT32_MAX));
  const bool quiet = arguments.has("quiet");
  proofinfer_cancel *cancel = begin_operation();
  {
    const Progress progress(!quiet, convert_progress);
    call(proofinfer_convert, from.data(), from.size(), to.data(), to.size(), format, group_size, cancel);
  }
  if (format != PROOFINFER_FORMAT_VERSION_2 || group_size != 0 || quiet) return kExitOk;
  // The library chose; say what.
  print_error("group size " + std::to_string(load_model(to, nullptr, true).get(PROOFINFER_MODEL_GROUP_SIZE)) + "\n");
  return kExitOk;
}

}  // namespace proofinfer::cli
