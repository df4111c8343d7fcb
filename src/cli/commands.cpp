#include "commands.h"

namespace proofinfer::cli {
namespace {

constexpr Flag kHelp = {'h', "help", nullptr, "Show this help."};
constexpr Flag kQuiet = {'q', "quiet", nullptr, "No progress, notes or timing on the standard error; errors still go there."};
constexpr Flag kTokenizer = {
    'z', "tokenizer", "FILE",
    "The tokenizer. Without this flag a GGUF model's own; for a model DIR/NAME.bin: DIR/NAME_tokenizer.bin, then DIR/tokenizer.bin, then "
    "tokenizer.bin in the current folder, the first that has as many pieces as the model."};
constexpr Flag kContext = {'\0', "context", "N",
                           "Positions to reserve memory for, at most what the model allows. Default: what --steps asks for; where that is "
                           "the whole context, the model's, but at most 4096."};
constexpr Flag kThreads = {'\0', "threads", "N",
                           "Threads that compute. Default: the processors that this program may use (affinity and control group). The text "
                           "does not depend on it."};
constexpr Flag kIsa = {'\0', "isa", "NAME",
                       "The kernel set: auto, or one that 'proofinfer --version' lists. Default: auto. The text does not depend on it."};
constexpr Flag kNoMap = {'\0', "no-map", nullptr, "Packed files: read them into memory, and verify them, instead of mapping them."};
constexpr Flag kTemperature = {'t', "temperature", "X",
                               "0 takes the likeliest token each time; 1 draws by the model's probabilities; more is wilder. Default: 0."};
constexpr Flag kTopP = {
    'p', "top-p", "P",
    "Draw only among the likeliest tokens that together have this probability; 0 and 1 turn it off. Default: 0.9. Without "
    "effect at temperature 0."};
constexpr Flag kTopK = {'\0', "top-k", "N", "Draw only among the N likeliest tokens; 0 turns it off. Default: 0."};
constexpr Flag kTypicalP = {'\0', "typical-p", "P",
                            "Draw only among the tokens whose surprise is nearest to the expected one, as many as together have this "
                            "probability; 0 and 1 turn it off. Default: 0."};
constexpr Flag kMinP = {'\0', "min-p", "P",
                        "Draw only among the tokens that are at least this share as likely as the likeliest; 0 turns it off. Default: 0."};
constexpr Flag kRepetitionPenalty = {'\0', "repetition-penalty", "X",
                                     "Divide the logits of recent tokens by this, or multiply where they are negative; 1 turns it off. "
                                     "Default: 1."};
constexpr Flag kFrequencyPenalty = {'\0', "frequency-penalty", "X",
                                    "Subtract this from a token's logit for each time that it is recent. Default: 0."};
constexpr Flag kPresencePenalty = {'\0', "presence-penalty", "X", "Subtract this from the logit of every recent token. Default: 0."};
constexpr Flag kPenaltyWindow = {'\0', "penalty-window", "N", "How many of the last generated tokens are recent. Default: 64."};
constexpr Flag kBan = {'\0', "ban", "IDS", "Token ids that are never sampled, separated by commas."};
constexpr Flag kBias = {'\0', "bias", "ID:X,...", "Numbers that are added to the logits of tokens."};
constexpr Flag kSeed = {'s', "seed", "N", "Where the random numbers start; the same seed gives the same text. Default: 1."};
constexpr Flag kSystem = {'y', "system", "TEXT", "In a chat: the system prompt, instead of asking for it. \"\" is none."};
constexpr Flag kSpecial = {'\0', "special", nullptr, "Control pieces spelled in the prompt, such as <|im_end|>, become their ids."};
constexpr Flag kStopString = {
    '\0', "stop-string", "TEXT",
    "A text that ends what is generated; neither it nor anything behind it is printed. May be given several times. Not "
    "with --raw-pieces."};
constexpr Flag kRawPieces = {'\0', "raw-pieces", nullptr,
                             "Print bytes exactly as the llama2.c program does, half characters included. Without this flag the output is "
                             "always valid UTF-8."};

const Command kGenerate = {
    "generate",
    "continue a prompt (the command may be left out)",
    {"generate MODEL [flags]", "MODEL [flags]"},
    "Prints the prompt and the text that the model puts behind it, then a newline, on "
    "the standard output; notes and timing go to the standard error. The same "
    "command gives the same bytes on every machine. The short flags mean what they "
    "mean to the llama2.c program.",
    {{'i', "prompt", "TEXT", "The text to continue. Default: none, the model begins by itself."},
     {'\0', "prompt-file", "FILE", "The prompt is what this file holds, to the byte; - is the standard input."},
     {'n', "steps", "N",
      "Positions to run through, prompt included: a prompt with more tokens is cut off. 0, or more than the context, is the whole context. "
      "Default: 256."},
     kTemperature,
     kTopP,
     kTopK,
     kTypicalP,
     kMinP,
     kRepetitionPenalty,
     kFrequencyPenalty,
     kPresencePenalty,
     kPenaltyWindow,
     kBan,
     kBias,
     kSeed,
     kTokenizer,
     {'m', "mode", "MODE", "generate, or chat: as the command chat, with 256 positions by default. Default: generate."},
     kSystem,
     {'\0', "stop", "IDS",
      "Token ids that end the text when they are sampled, separated by commas; none lets nothing end it. Default: what the vocabulary "
      "says, "
      "the token that begins a text (1) for the files of llama2.c."},
     kStopString,
     kSpecial,
     kRawPieces,
     kContext,
     kThreads,
     kIsa,
     kNoMap,
     {'v', "verbose", nullptr, "Tell the timing at the end even where the standard error is no terminal."},
     kQuiet,
     kHelp},
    {"proofinfer stories260K.bin -i \"Once upon a time\"", "proofinfer stories260K.bin -z tok512.bin -t 0.8 -s 7 -n 0",
     "proofinfer llama2-7b.bin --prompt-file notes.txt --steps 2000 > more.txt"},
    run_generate};

const Command kChat = {
    "chat",
    "talk with a model that was trained for it",
    {"chat MODEL [flags]"},
    "Reads a line of yours by turns and prints the model's answer as it comes, in the chat template of the model's file. "
    "/help tells the commands, /reset forgets the conversation, /quit or Ctrl-D leaves. Ctrl-C stops an answer; between "
    "answers it leaves. When the conversation no longer fits the context its oldest turns are forgotten, with a note. With the files of "
    "llama2.c: asks for "
    "a system prompt (an empty line is none), talks as that program does, and ends when all positions are used.",
    {{'i', "prompt", "TEXT", "The first line of yours, instead of asking for it."},
     kSystem,
     {'\0', "template", "NAME", "The chat template: llama2, llama3, chatml, zephyr or mistral. Default: that of the model's file."},
     {'\0', "max-tokens", "N", "Tokens of an answer at most; 0 is no limit. Default: 0."},
     kStopString,
     {'n', "steps", "N", "Positions to use at once, both sides included. 0, or more than the context, is the whole context. Default: 0."},
     kTemperature,
     kTopP,
     kTopK,
     kTypicalP,
     kMinP,
     kRepetitionPenalty,
     kFrequencyPenalty,
     kPresencePenalty,
     kPenaltyWindow,
     kBan,
     kBias,
     kSeed,
     kTokenizer,
     kRawPieces,
     kContext,
     kThreads,
     kIsa,
     kNoMap,
     kQuiet,
     kHelp},
    {"proofinfer chat SmolLM2-135M-Instruct.gguf -y \"Answer in one sentence.\"",
     "printf 'What is a cat?\\n' | proofinfer chat llama2-7b-chat.bin -y \"\""},
    run_chat};

const Command kScore = {
    "score",
    "tell how probable a model finds texts",
    {"score MODEL [flags] [TEXT | -]"},
    "Prints, for each text, its tokens, how many of them were scored, the perplexity "
    "and the bits a byte: exp of the mean of -ln p, and the sum of -log2 p over the bytes "
    "of what was scored. The first token has nothing before it and is not scored. "
    "Without TEXT, or with -, the text is the standard input, to the byte.",
    {{'\0', "file", "FILE", "The text is what this file holds. May be given several times: texts of their own, evaluated together."},
     {'\0', "lines", nullptr, "Each line is a text of its own; empty ones are left out."},
     {'\0', "tokens", nullptr, "Also print each token with ln p."},
     {'\0', "json", nullptr, "Print JSON instead."},
     {'\0', "context", "N", "Tokens evaluated at once: a longer text is scored in windows. Default: the model's, but at most 4096."},
     {'\0', "stride", "N",
      "How many tokens a window begins behind the one before; what both have is context in the second, which begins with the token that "
      "begins "
      "a text. Default: half of a window."},
     kTokenizer,
     kThreads,
     kIsa,
     kNoMap,
     kQuiet,
     kHelp},
    {"proofinfer score stories260K.bin \"Once upon a time\"", "proofinfer score stories260K.bin --file story.txt --json"},
    run_score};

const Command kTokenize = {
    "tokenize",
    "turn text into token ids, or back",
    {"tokenize -z FILE [flags] [TEXT | -]", "tokenize MODEL [flags] [TEXT | -]", "tokenize -z FILE --decode [ID...]"},
    "Prints the ids of the text on one line. Without TEXT, or with -, the text is "
    "the standard input, to the byte. With --decode the ids may be separated by spaces "
    "or commas, and a first id that begins a text is left out of what is printed.",
    {{'z', "tokenizer", "FILE",
      "The tokenizer: tokenizer.bin, or a GGUF file. Without this flag: MODEL's own if it is a GGUF file, else the one beside MODEL, as "
      "for "
      "generate."},
     {'\0', "vocab", "N", "Pieces to read from the tokenizer. Default: the model's vocabulary; without MODEL, all that the file has."},
     {'\0', "bos", nullptr, "Put the id that begins a text first."},
     {'\0', "eos", nullptr, "Put the id that ends a text last."},
     {'\0', "default", nullptr, "Put those two where the file says that texts have them."},
     {'\0', "special", nullptr, "Turn control pieces spelled in the text, \"<|im_end|>\", into their ids. Otherwise they stay text."},
     {'\0', "pieces", nullptr, "Print a table of ids and pieces instead."},
     {'\0', "ids-only", nullptr, "Leave out the count that a terminal gets on the standard error."},
     {'\0', "decode", nullptr, "Turn ids into text."},
     kQuiet,
     kHelp},
    {"proofinfer tokenize -z tok512.bin --bos \"Once upon a time\"", "proofinfer tokenize stories260K.bin --pieces < story.txt",
     "proofinfer tokenize -z tok512.bin --decode 1 403 407 261 378"},
    run_tokenize};

const Command kInspect = {
    "inspect",
    "show what a model file holds",
    {"inspect MODEL [flags]"},
    "Loads the model, which checks it, and prints its hyper-parameters, format, sizes "
    "in bytes, every tensor with its type, shape and place in the file, and the metadata of a GGUF file.",
    {{'\0', "json", nullptr, "Print JSON instead."},
     {'\0', "verify", nullptr, "Packed files: compare all weights with the fingerprint in the header."},
     {'\0', "context", "N", "Positions for which the memory of one session is told. Default: the model's, but at most 4096."},
     kThreads,
     kIsa,
     kNoMap,
     kQuiet,
     kHelp},
    {"proofinfer inspect stories260K.bin", "proofinfer inspect stories260K.bin --json | python3 -m json.tool"},
    run_inspect};

const Command kConvert = {
    "convert",
    "write a checkpoint in another format",
    {"convert FROM TO [flags]"},
    "Reads a llama2.c checkpoint of any format, or a GGUF file of F32, F16 or BF16 weights, not a packed file, and writes it in another, "
    "row by row in little memory. "
    "The new file takes its name when it is complete; until then nothing of that name changes. "
    "Version 2 quantizes the weights to 8 bits in groups (Q8_0), a quarter of the size.",
    {{'\0', "to", "FORMAT", "legacy, v1 or v2. Default: v2."},
     {'\0', "packed", nullptr,
      "Write a packed file instead: weights as they lie in memory, to be mapped and shared. Needs memory for them."},
     {'\0', "group-size", "N", "v2: weights a group; divides dim and hidden_dim. Default: the largest power of two up to 64 that does."},
     kQuiet,
     kHelp},
    {"proofinfer convert stories15M.bin stories15M-q8.bin", "proofinfer convert stories15M-q8.bin back.bin --to legacy"},
    run_convert};

const Command kBench = {
    "bench",
    "measure loading, prompt and generation speed",
    {"bench MODEL [flags]"},
    "Loads the model, reads a prompt in one go (prefill) and generates token by token "
    "(decode), several times, and prints the medians with the lowest and highest run, and "
    "the largest memory that the program had. No tokenizer is needed.",
    {{'\0', "prompt-tokens", "N", "Tokens of the prompt. Default: 200, or half of the context."},
     {'\0', "decode-tokens", "N", "Tokens to generate. Default: 200, or the rest of the context."},
     {'\0', "repeats", "N", "Measured runs, after one that does not count. Default: 5."},
     {'\0', "sessions", "N", "Also decode N sessions together, each pass one token of each. Default: 0, do not."},
     {'\0', "no-bounds", nullptr, "Do not measure what the machine could do beside it; saves memory for two copies of the weights."},
     {'\0', "json", nullptr, "Print JSON instead, every run included."},
     kThreads,
     kIsa,
     kNoMap,
     kQuiet,
     kHelp},
    {"proofinfer bench stories15M.bin --threads 1", "proofinfer bench stories15M.bin --isa scalar --repeats 3 --json"},
    run_bench};

const Command kSelftest = {"selftest",
                           "check the library on this machine",
                           {"selftest"},
                           "Runs a built-in model on every kernel set that this processor has and compares "
                           "the results, bit for bit, with built-in figures.",
                           {kQuiet, kHelp},
                           {"proofinfer selftest"},
                           run_selftest};

}  // namespace

const std::vector<Command> &commands() {
  static const std::vector<Command> list = {kGenerate, kChat, kScore, kTokenize, kInspect, kConvert, kBench, kSelftest};
  return list;
}

const Command *find_command(std::string_view name) {
  for (const Command &command : commands())
    if (name == command.name) return &command;
  return nullptr;
}

}  // namespace proofinfer::cli
