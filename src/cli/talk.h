// A conversation in the chat template of a model: history, what no longer fits, commands. One thread.
#ifndef PROOFINFER_CLI_TALK_H
#define PROOFINFER_CLI_TALK_H

#include "args.h"
#include "engine.h"

namespace proofinfer::cli {

// Until the input ends or /quit. The exit code.
int talk(const Arguments &arguments, Engine &engine);

}  // namespace proofinfer::cli

#endif
