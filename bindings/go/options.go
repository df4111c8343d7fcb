package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Option is one named setting of a function that loads or creates something. Each function reads the options of its own scope and
// ignores the others, so one list can serve them all; the last of two with one name counts. [Options] lists them with bounds and defaults.
type Option struct {
	name  string
	value any
}

// Threads sets how many threads compute, the caller's included (scope model; default 1).
func Threads(n int) Option { return Option{"threads", int64(n)} }

// Map says whether a packed file is mapped (the default), and so shared with other processes, or read into memory (scope model). A mapped
// file must not be cut while it is in use.
func Map(on bool) Option { return flag("map", on) }

// Verify has all weights of a packed file compared with the fingerprint in its header (scope model; default false).
func Verify(on bool) Option { return flag("verify", on) }

func flag(name string, on bool) Option {
	if on {
		return Option{name, int64(1)}
	}
	return Option{name, int64(0)}
}

// ISA picks a kernel set by name, or "auto" (scopes model, session, batch, scheduler, sampler). The results do not depend on it.
func ISA(name string) Option { return Option{"isa", name} }

// MemoryLimit sets the most bytes that the object may hold at once; 0: no limit (scopes model, tokenizer, session, sampler, batch, scheduler).
func MemoryLimit(bytes uint64) Option { return Option{"memory_limit_bytes", bytes} }

// ContextLength sets the positions to reserve room for; 0: the model's, at most 4096 (scope session).
func ContextLength(positions int) Option { return Option{"context_length", int64(positions)} }

// Temperature divides the logits; 0 takes the likeliest token each time (scope sampler; default 0).
func Temperature(t float64) Option { return Option{"temperature", t} }

// TopP draws only among the likeliest tokens that have this probability together; 0 and 1 turn it off (scope sampler; default 0.9).
func TopP(p float64) Option { return Option{"top_p", p} }

// TopK draws only among the k likeliest tokens; 0 turns it off (scope sampler; default 0).
func TopK(k int) Option { return Option{"top_k", int64(k)} }

// TypicalP draws only among the tokens whose surprise is nearest to the expected one, as many as have this probability together; 0 and 1
// turn it off (scope sampler; default 0).
func TypicalP(p float64) Option { return Option{"typical_p", p} }

// MinP draws only among the tokens that are at least this share as likely as the likeliest; 0 turns it off (scope sampler; default 0).
func MinP(share float64) Option { return Option{"min_p", share} }

// RepetitionPenalty divides the logits of recent tokens, or multiplies them where they are not positive; 1 turns it off (scope sampler; default 1).
func RepetitionPenalty(penalty float64) Option { return Option{"repetition_penalty", penalty} }

// FrequencyPenalty is subtracted from a token's logit for each time that it is recent (scope sampler; default 0).
func FrequencyPenalty(penalty float64) Option { return Option{"frequency_penalty", penalty} }

// PresencePenalty is subtracted from the logit of each recent token (scope sampler; default 0).
func PresencePenalty(penalty float64) Option { return Option{"presence_penalty", penalty} }

// PenaltyWindow sets how many of the last tokens are recent (scope sampler; default 64).
func PenaltyWindow(tokens int) Option { return Option{"penalty_window", int64(tokens)} }

// StopStrings sets texts that end a generation and are cut off; what may still become one is held back (scope generation; default: none).
func StopStrings(texts ...string) Option { return Option{"stop_strings", append([]string{}, texts...)} }

// LogProbs sets how many of the most probable tokens [Generation.LogProbs] tells; 0: none (scope generation; default 0).
func LogProbs(count int) Option { return Option{"logprobs", int64(count)} }

// Seed sets the random generator's initial state (scope sampler; default 1).
func Seed(seed uint64) Option { return Option{"seed", seed} }

// MaxGenerations sets how many generations a scheduler holds at once, 1 to 2048 (scope scheduler; default 64).
func MaxGenerations(n int) Option { return Option{"max_generations", int64(n)} }

// PrefillChunk sets how many prompt tokens one pass of a scheduler evaluates at most beside what decodes, 1 to 2048 (scope scheduler; default 32).
func PrefillChunk(tokens int) Option { return Option{"prefill_chunk", int64(tokens)} }

// MaxTokens sets the most tokens to generate; 0: until a stop token or the end of the context (scope generation).
func MaxTokens(n int) Option { return Option{"max_tokens", int64(n)} }

// StopTokens sets the ids that end a generation; none at all lets nothing end it (scope generation; default: what the tokenizer's format says).
func StopTokens(tokens ...int32) Option { return Option{"stop_tokens", append([]int32{}, tokens...)} }

// ShareFromBytes sets the bytes of weights or cache below which work is done by one thread, as waking others would take longer (scope
// model; default 131072). The results do not depend on it.
func ShareFromBytes(bytes uint64) Option { return Option{"share_from_bytes", bytes} }

// Set names an option as the C API does. value is an int64, uint64, float64, string, []int32 or []string, as the option's type asks.
func Set(name string, value any) Option { return Option{name, value} }

// set gives the option to a C options object.
func (o Option) set(options *C.proofinfer_options) error {
	name, nameBytes := text(o.name)
	var object *C.proofinfer_error
	var status C.int32_t
	switch v := o.value.(type) {
	case int64:
		status = C.proofinfer_options_set_i64(options, name, nameBytes, C.int64_t(v), &object)
	case uint64:
		status = C.proofinfer_options_set_u64(options, name, nameBytes, C.uint64_t(v), &object)
	case float64:
		status = C.proofinfer_options_set_f64(options, name, nameBytes, C.double(v), &object)
	case string:
		value, valueBytes := text(v)
		status = C.proofinfer_options_set_text(options, name, nameBytes, value, valueBytes, &object)
	case []int32:
		tokens, count := ids(v)
		status = C.proofinfer_options_set_tokens(options, name, nameBytes, tokens, count, &object)
	case []string:
		lengths := make([]C.size_t, len(v))
		for i, text := range v {
			lengths[i] = C.size_t(len(text))
		}
		texts, _ := text(strings.Join(v, ""))
		status = C.proofinfer_options_set_texts(options, name, nameBytes, texts, unsafe.SliceData(lengths), C.size_t(len(v)), &object)
	default:
		return &Error{Code: ErrArgument, Message: fmt.Sprintf(
			"option %q: expected an int64, uint64, float64, string, []int32 or []string, found %T", o.name, o.value)}
	}
	return failure(status, object)
}

// withOptions runs create with a C options object, NULL where there are none, that lives for the call. It checks the version first.
func withOptions(options []Option, create func(*C.proofinfer_options) error) error {
	if err := CheckVersion(); err != nil {
		return err
	}
	if len(options) == 0 {
		return create(nil)
	}
	var object *C.proofinfer_error
	var settings *C.proofinfer_options
	if err := failure(C.proofinfer_options_create(&settings, &object), object); err != nil {
		return err
	}
	defer C.proofinfer_options_free(settings)
	for _, option := range options {
		if err := option.set(settings); err != nil {
			return err
		}
	}
	return create(settings)
}

// OptionInfo describes one option. Bounds and default are text, "" where the type has none.
type OptionInfo struct {
	Name, Type, Default, Lowest, Highest string
	Scope                                string // "model,session"
}

var optionTypes = map[C.int32_t]string{
	C.PROOFINFER_OPTION_I64: "int64", C.PROOFINFER_OPTION_U64: "uint64", C.PROOFINFER_OPTION_F64: "float64",
	C.PROOFINFER_OPTION_TEXT: "string", C.PROOFINFER_OPTION_TOKENS: "[]int32", C.PROOFINFER_OPTION_TEXTS: "[]string",
}

// Options lists every option that the library knows.
func Options() []OptionInfo {
	infos := make([]OptionInfo, C.proofinfer_option_count())
	for i := range infos {
		index := C.size_t(i)
		infos[i] = OptionInfo{
			Name:    C.GoString(C.proofinfer_option_name(index)),
			Type:    optionTypes[C.proofinfer_option_type(index)],
			Default: C.GoString(C.proofinfer_option_default(index)),
			Lowest:  C.GoString(C.proofinfer_option_lowest(index)),
			Highest: C.GoString(C.proofinfer_option_highest(index)),
			Scope:   C.GoString(C.proofinfer_option_scope(index)),
		}
	}
	return infos
}
